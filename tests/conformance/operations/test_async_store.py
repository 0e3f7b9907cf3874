"""The store for coroutines, and that each verb of threads is one of coroutines with the same arguments."""

import inspect
from typing import Any

import pytest

from queues import AsyncQueue, AsyncStore, FifoQueue, PriorityQueue, Store
from queues.errors import QueueNotFound, StoreClosed, WrongKind

#: What a store offers to threads only: services, values that are made without waiting, and the clock.
THREADS_ONLY = {
    *("actions", "job_runner", "space", "remember", "wait_for_items", "interrupt", "upkeep", "recorder", "suggesting"),
    *("now", "size", "set_clock"),
    *("attach", "detach", "priority_queue", "fifo_queue"),
}


def verbs(*types: type) -> dict[str, Any]:
    return {
        name: value
        for each in types
        for base in reversed(each.__mro__)
        for name, value in vars(base).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def arguments(verb: Any) -> list[tuple[str, Any, Any, Any]]:
    """Return name, kind, default and annotation of each argument but `self` and `tr`."""
    parameters = list(inspect.signature(verb).parameters.values())[1:]
    return [(each.name, each.kind, each.default, each.annotation) for each in parameters if each.name != "tr"]


@pytest.mark.parametrize(
    ("coroutines", "threads", "but"),
    [(AsyncQueue, (PriorityQueue, FifoQueue), set()), (AsyncStore, (Store,), THREADS_ONLY)],
    ids=["queue", "store"],
)
def test_coroutines_have_the_verbs_of_threads(coroutines: type, threads: tuple[type, ...], but: set[str]) -> None:
    ours, theirs = verbs(coroutines), verbs(*threads)
    assert set(ours) == set(theirs) - but
    for name, verb in ours.items():
        assert inspect.iscoroutinefunction(verb), name
        assert arguments(verb) == arguments(theirs[name]), name
        assert "tr" not in inspect.signature(verb).parameters


async def test_a_store_is_used_by_coroutines(store: Store) -> None:
    async with AsyncStore(store) as opened:
        jobs = await opened.create_queue("jobs", codec="json")
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
        assert (await opened.sweep()).promoted == 0
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
    with pytest.raises(WrongKind):
        await jobs.peek()
    with pytest.raises(TypeError, match="takes no tr="):
        await jobs.depth(tr=None)
