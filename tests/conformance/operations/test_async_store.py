"""The store for coroutines, and that each verb of threads is one of coroutines with the same arguments."""

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from queues import (
    AsyncFifoQueue,
    AsyncPriorityQueue,
    AsyncSpace,
    AsyncStore,
    FifoQueue,
    PriorityQueue,
    Space,
    Store,
)
from queues.errors import NotForAttached, QueueNotFound, StoreClosed
from tests.waiting import LONG

#: What makes services of threads, and what touches only the memory of this process.
THREADS_ONLY = {"actions", "job_runner", "upkeep", "recorder", "suggesting", "remember", "interrupt", "space"}


def verbs(of: type) -> dict[str, Any]:
    return {
        name: value
        for base in reversed(of.__mro__)
        for name, value in vars(base).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def arguments(verb: Any) -> list[tuple[str, Any, Any, Any]]:
    """Return name, kind, default and annotation of each argument but `self` and `tr`."""
    parameters = list(inspect.signature(verb).parameters.values())[1:]
    return [(each.name, each.kind, each.default, each.annotation) for each in parameters if each.name != "tr"]


@pytest.mark.parametrize(
    ("coroutines", "threads"),
    [(AsyncPriorityQueue, PriorityQueue), (AsyncFifoQueue, FifoQueue), (AsyncStore, Store), (AsyncSpace, Space)],
)
def test_coroutines_have_the_verbs_of_threads(coroutines: type, threads: type) -> None:
    ours, theirs = verbs(coroutines), verbs(threads)
    assert set(ours) - {"space"} == set(theirs) - THREADS_ONLY
    for name in set(ours) - {"space"}:
        assert inspect.iscoroutinefunction(ours[name]), name
        assert arguments(ours[name]) == arguments(theirs[name]), name
        assert "tr" not in inspect.signature(ours[name]).parameters


async def test_a_store_is_used_by_coroutines(store: Store) -> None:
    async with AsyncStore(store) as opened:
        jobs = await opened.create_queue("jobs", codec="json")
        assert (jobs.name, jobs.kind, jobs.priority_type, jobs.codec) == ("jobs", "priority", "int", "json")
        assert jobs.id == jobs.sync.id
        mail = await opened.create_queue("mail", kind="fifo")
        await jobs.push({"n": 1}, 1)
        moved = await opened.transact(lambda tr: mail.sync.enqueue(jobs.sync.pop_min(tr=tr).raw, tr=tr))
        assert (await mail.peek()).id == moved.id
        assert await opened.read(lambda tr: (jobs.sync.depth(tr=tr), mail.sync.depth(tr=tr))) == (0, 1)
        assert [queue.sync.name for queue in await opened.queues()] == ["jobs", "mail"]
        assert (await (await opened.rename_queue("mail", "post")).dequeue()).raw == b'{"n":1}'
        await opened.restore(await opened.delete_queue("jobs"))
        assert (await opened.queue("jobs")).sync.codec == "json"
        with pytest.raises(QueueNotFound):
            await opened.queue("mail")
        assert type(await opened.fifo_queue("post")) is AsyncFifoQueue
        assert (await opened.sweep()).promoted == 0
        totals = opened.space("totals")
        await totals.set("sent", b"1")
        assert await totals.get("sent") == b"1"
    with pytest.raises(StoreClosed):
        await opened.queue("jobs")


async def test_coroutines_look_and_operate(store: Store) -> None:
    jobs = await AsyncStore(store).create_queue("jobs")
    item = await jobs.push(b"a", 1, delay=60)
    assert (await jobs.depth("delayed"), (await jobs.find(item.id)).state) == (1, "delayed")
    assert (await jobs.promote_now(item.id)).state == "ready"
    await jobs.pause(reason="r")
    assert (await jobs.status()).pause.reason == "r"
    await jobs.resume()
    await jobs.configure(max_attempts=1)
    async with await jobs.lease():
        assert [held.id for held in (await jobs.leased()).items] == [item.id]
    assert not await jobs.wait(0.01)
    with pytest.raises(TypeError, match="takes no tr="):
        await jobs.depth(tr=None)


async def test_coroutines_that_wait_hold_no_thread(store: Store) -> None:
    jobs = await AsyncStore(store).create_queue("jobs")
    with ThreadPoolExecutor(1) as one_thread:
        asyncio.get_running_loop().set_default_executor(one_thread)
        waiters = [asyncio.create_task(jobs.wait(LONG)) for _ in range(3)]
        async with asyncio.timeout(LONG / 2):
            for _ in waiters:
                assert await jobs.depth() == 0
        await jobs.push(b"a", 1)
        assert await asyncio.gather(*waiters) == [True, True, True]


async def test_coroutines_use_attached_queues(store: Store) -> None:
    opened = AsyncStore(store)
    legacy = await opened.attach("legacy", prefix=("legacy",))
    pushed = await legacy.push(b"a", 2)
    await legacy.push_many([(b"b", 1), (b"c", 3)])
    assert await legacy.depth() == 3
    assert [item.value for item in await legacy.peek_many(2)] == [b"b", b"a"]
    assert (await legacy.pop_min(wait=1)).value == b"b"
    assert (await legacy.pop_max()).value == b"c"
    assert await legacy.remove(pushed.id) == pushed
    assert await legacy.pop_min(wait=0.01) is None
    for refused in (legacy.lease(), legacy.push(b"a", 1, delay=1), legacy.pause(reason="r"), legacy.delayed()):
        with pytest.raises(NotForAttached):
            await refused
    waiter = asyncio.create_task(legacy.pop_min(wait=120))
    await asyncio.sleep(0.01)
    await legacy.push(b"d", 1)
    assert (await waiter).value == b"d"
    await opened.detach("legacy")
    with pytest.raises(QueueNotFound):
        await legacy.pop_min()
