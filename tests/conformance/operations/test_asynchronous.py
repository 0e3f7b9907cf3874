"""The verbs for coroutines: as those for threads, one wake-up of the loop a batch, nothing lost to a cancellation."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial, partialmethod
from typing import Any

import pytest

from queues import AsyncFifoQueue, AsyncPriorityQueue, Item, Queue, Store
from queues.admin import for_coroutines
from queues.aio.mailbox import Mailbox
from queues.errors import (
    BadPriority,
    BadTime,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    StaleLease,
    StoreClosed,
    ValueTooLarge,
    WrongKind,
)
from queues.kv.port import Transaction
from queues.operations.open_queue import Request
from queues.operations.pop import PopRequest
from queues.operations.push import PushRequest
from queues.operations.settle import AckRequest, ExtendRequest
from tests.conftest import Clock
from tests.full_count import check_full_count

#: Seconds after which a test gives up; no test depends on how soon something happens.
LONG = 120


async def test_every_verb_answers_as_its_twin(store: Store, jobs: Queue, clock: Clock) -> None:
    queue = AsyncPriorityQueue(jobs)
    pushed = [await queue.push(b"%d" % n, priority=n) for n in (3, 1, 2)]
    assert jobs.peek_min() == pushed[1]
    assert await queue.pop_min() == pushed[1]
    assert await queue.pop_max() == pushed[0]
    more = await queue.push_many([(b"a", 1), (b"b", 1, timedelta(hours=1)), (b"c", 0)])
    assert [item.state for item in more] == ["ready", "delayed", "ready"]
    assert [item.value for item in await queue.pop_many(5, end="max")] == [b"2", b"a", b"c"]
    assert await queue.pop_min() is None
    assert await queue.push_many([]) == []
    await queue.push(b"x", priority=1)
    lease = await queue.lease(seconds=30, worker="w")
    assert lease.item.worker == "w"
    extended = await queue.extend(lease, seconds=90)
    assert extended.expires_at > lease.expires_at
    assert (await queue.release(lease, count_attempt=False)).attempts == 0
    lease = await queue.lease()
    assert (await queue.release(lease)).attempts == 1
    with pytest.raises(StaleLease):
        await queue.ack(lease)
    lease = await queue.lease()
    await queue.ack(lease)
    await queue.ack(lease)
    assert await queue.ack_many([lease]) == []
    assert await queue.lease() is None
    clock.advance(3601)
    assert (await queue.pop_min()).value == b"b", "what is late is made ready first"
    assert check_full_count(store, jobs) == 0


async def test_coroutines_use_fifo_queues(store: Store) -> None:
    queue = AsyncFifoQueue(store.create_queue("line", kind="fifo"))
    await queue.enqueue(b"a")
    await queue.enqueue_many([b"b", b"c"])
    assert [await queue.dequeue(), await queue.dequeue(wait=1)] == [await_value(b"a"), await_value(b"b")]
    assert [item.value for item in await queue.dequeue_many(5)] == [b"c"]
    with pytest.raises(WrongKind):
        await queue.lease(end="max")


class await_value:  # noqa: N801 - reads like what it stands for
    """Equals an item of this value."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and other.value == self._value

    __hash__ = None


async def test_it_refuses_what_its_twin_refuses(store: Store, jobs: Queue) -> None:
    queue = AsyncPriorityQueue(jobs)

    async def refused(error: type[Exception], verb: Awaitable[object]) -> None:
        with pytest.raises(error):
            await verb

    await refused(ValueTooLarge, queue.push(bytes(90_001), priority=1))
    await refused(BadPriority, queue.push(b"", priority="1"))
    await refused(BadTime, queue.pop_min(wait=-1))
    await queue.push(b"x", priority=1)
    jobs.pause(reason="r")
    await refused(QueuePaused, queue.pop_min())
    assert await queue.pop_min(wait=0) is None
    jobs.resume()
    store.delete_queue("jobs")
    await refused(QueueNotFound, queue.pop_min())
    await refused(QueueNotFound, queue.push(b"x", priority=1))
    await refused(QueueNotFound, queue.lease(wait=1))


class Held:
    """Holds up the first batch of a kind of requests until told, and notes the requests of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, queue: Queue, kind: type[Request[Any]] = PopRequest) -> None:
        self.batches: list[list[Any]] = []
        self.began, self.go = threading.Event(), threading.Event()
        batch = queue.opened.batch(kind)
        monkeypatch.setattr(batch, "execute", partial(self._held, batch.execute))

    def _held(self, execute: Callable[..., Any], tr: Transaction, requests: Sequence[Any]) -> Any:
        self.batches.append(list(requests))
        self.began.set()
        assert self.go.wait(LONG)
        return execute(tr, requests)

    async def until_it_began(self) -> None:
        while not self.began.is_set():
            await asyncio.sleep(0.001)

    async def answers(self, first: Coroutine[Any, Any, Any], others: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Return the answers of the callers that wait while the first is served; exceptions are answers."""
        leads = asyncio.create_task(first)
        await self.until_it_began()
        tasks = [asyncio.create_task(other) for other in others]
        await asyncio.sleep(0)
        self.go.set()
        await leads
        return await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def repeated(self) -> int:
        """Requests that were served more than once."""
        served = [getattr(request, "value", request) for batch in self.batches for request in batch]
        return len(served) - len(set(served))


async def test_a_batch_wakes_the_loop_once(jobs: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(40)])
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    landed: list[int] = []
    land = Mailbox.land
    monkeypatch.setattr(Mailbox, "land", lambda self, tickets: (landed.append(len(tickets)), land(self, tickets))[1])
    first = asyncio.create_task(queue.pop_min())
    await held.until_it_began()
    others = [asyncio.create_task(queue.pop_min()) for _ in range(30)]
    await asyncio.sleep(0)
    held.go.set()
    items = [await first, *(await asyncio.gather(*others))]
    assert [item.value for item in items if item] == [b"%d" % n for n in range(31)]
    assert sum(landed) == 31
    assert len(landed) <= 10, "those that come while it is held share commits"


async def test_a_request_that_waits_is_taken_back_when_canceled(jobs: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(9)])
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    first = asyncio.create_task(queue.pop_min())
    await held.until_it_began()
    gone, stays = asyncio.create_task(queue.pop_min()), asyncio.create_task(queue.pop_min())
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    held.go.set()
    assert [(await first).value, (await stays).value] == [b"0", b"1"]
    assert jobs.depth() == 7


async def test_a_request_that_is_served_is_answered_in_spite_of_a_cancellation(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The item is handed over; the cancellation comes when the task waits again."""
    jobs.push(b"x", priority=1)
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    got: list[Item | None] = []

    async def take_and_go_on() -> None:
        got.append(await queue.pop_min())
        await asyncio.sleep(LONG)

    task = asyncio.create_task(take_and_go_on())
    await held.until_it_began()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # more than once, too
    await asyncio.sleep(0)
    assert not task.done()
    held.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert got == [await_value(b"x")]
    assert jobs.depth() == 0


async def test_a_served_request_that_takes_nothing_is_canceled(jobs: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    task = asyncio.create_task(queue.pop_min())
    await held.until_it_began()
    task.cancel()
    await asyncio.sleep(0)
    held.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("limit", [asyncio.timeout, None])
async def test_a_timeout_of_asyncio_gets_the_item_or_leaves_it(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch, limit: Callable[[float], Any] | None
) -> None:
    jobs.push(b"x", priority=1)
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    loop = asyncio.get_running_loop()
    passing, stands = loop.time, loop.time()
    loop.time = lambda: passing() if held.began.is_set() else stands
    loop.call_later(0.2, held.go.set)
    if limit is None:
        item = await asyncio.wait_for(queue.pop_min(), 0.05)
    else:
        async with limit(0.05):
            item = await queue.pop_min()
    await asyncio.sleep(0)  # no cancellation is left over
    await asyncio.sleep(0)
    assert item == await_value(b"x")


async def test_a_timeout_of_asyncio_that_passed_while_an_item_was_taken_ends_its_block(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.push(b"x", priority=1)
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    got: list[Item | None] = []
    task = asyncio.current_task()

    async def pass_while_it_is_held(limit: asyncio.Timeout) -> None:
        await held.until_it_began()
        limit.reschedule(asyncio.get_running_loop().time())
        while not task.cancelling():
            await asyncio.sleep(0)
        held.go.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            passing = asyncio.create_task(pass_while_it_is_held(limit))
            got.append(await queue.pop_min())
            await asyncio.sleep(LONG)
    await passing
    assert task.cancelling() == 0
    await asyncio.sleep(0)
    assert got == [await_value(b"x")]


async def test_a_task_group_that_fails_while_an_item_is_taken_tells_why(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.push(b"x", priority=1)
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)
    got: list[Item | None] = []

    async def fail() -> None:
        await held.until_it_began()
        asyncio.get_running_loop().call_later(0.05, held.go.set)
        raise LookupError

    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            got.append(await queue.pop_min())
            await asyncio.sleep(LONG)
    assert [type(error) for error in failed.value.exceptions] == [LookupError]
    task = asyncio.current_task()
    assert task.cancelling() == 0, "the group took its cancellation back"
    assert got == [await_value(b"x")]


async def test_an_acknowledgement_that_was_done_is_told_in_spite_of_a_cancellation(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nothing was stale is an answer, though an empty one."""
    jobs.push(b"x", priority=1)
    lease = jobs.lease()
    queue = AsyncPriorityQueue(jobs)
    held = Held(monkeypatch, jobs, AckRequest)
    told: list[list[str]] = []

    async def acknowledge_and_go_on() -> None:
        told.append(await queue.ack_many([lease]))
        await asyncio.sleep(LONG)

    task = asyncio.create_task(acknowledge_and_go_on())
    await held.until_it_began()
    task.cancel()
    await asyncio.sleep(0)
    held.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == [[]]
    assert jobs.depth("leased") == 0


async def test_a_stale_lease_does_not_repeat_other_requests(
    store: Store, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(9)])
    leases = jobs.lease_many(9)
    jobs.ack(leases[4])
    jobs.release(leases[5])
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs, ExtendRequest)
    others = [queue.extend(lease, seconds=600) for lease in leases[1:5]]
    others += [queue.release(lease) for lease in leases[5:8]]
    answers = await held.answers(queue.extend(leases[0], seconds=600), others)
    assert [type(answer).__name__ for answer in answers] == ["Lease"] * 3 + ["StaleLease"] * 2 + ["Item"] * 2
    assert held.repeated == 0
    assert [jobs.depth("leased"), jobs.depth()] == [5, 3]
    assert check_full_count(store, jobs) == jobs.depth()


async def test_a_value_that_is_too_large_does_not_repeat_other_requests(
    store: Store, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.configure(max_value=3)
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs, PushRequest)
    others = [queue.push(value, priority=1) for value in (b"1", b"long", b"22", b"longer", b"333")]
    answers = await held.answers(queue.push(b"0", priority=1), others)
    assert [answer.value if isinstance(answer, Item) else type(answer) for answer in answers] == [
        b"1",
        ValueTooLarge,
        b"22",
        ValueTooLarge,
        b"333",
    ]
    assert held.repeated == 0
    assert len(held.batches) <= 3, "they went in together: two batches may be under way at once"
    assert jobs.depth() == 4
    assert check_full_count(store, jobs) == jobs.depth()


async def test_a_full_queue_refuses_only_pushes_without_room(
    store: Store, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.configure(max_depth=3)
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs, PushRequest)
    others = [queue.push_many([(value, 1)] * len(value)) for value in (b"1", b"22", b"1")]
    answers = await held.answers(queue.push(b"0", priority=1), others)
    # Two batches may be under way: which come first is theirs, and those that fit are never refused with the rest.
    assert {type(answer) for answer in answers} == {list, QueueFull}
    assert 3 <= jobs.depth() <= 4, "what is pushed at the very same moment may pass the limit by as much"
    assert check_full_count(store, jobs) == jobs.depth()


async def test_waiters_are_woken_one_for_an_item(jobs: Queue) -> None:
    queue = AsyncPriorityQueue(jobs)
    before = set(threading.enumerate())
    waiters = [asyncio.create_task(queue.pop_min(wait=LONG)) for _ in range(20)]
    leases = asyncio.create_task(queue.lease_many(1, wait=LONG))
    await asyncio.sleep(0.05)
    for n in range(21):
        await queue.push(b"%d" % n, priority=1)
    taken = [item.value for item in await asyncio.gather(*waiters) if item]
    taken += [lease.item.value for lease in await leases]
    assert sorted(taken, key=int) == [b"%d" % n for n in range(21)]
    assert len(set(threading.enumerate()) - before) < 10, "no thread for each waiter"


async def test_threads_and_coroutines_wait_in_one_line(jobs: Queue) -> None:
    queue = AsyncPriorityQueue(jobs)
    both = [asyncio.create_task(asyncio.to_thread(jobs.pop_min, wait=LONG)) for _ in range(3)]
    both += [asyncio.create_task(queue.pop_min(wait=LONG)) for _ in range(3)]
    await asyncio.sleep(0.05)
    for n in range(6):
        await queue.push(b"%d" % n, priority=n)
    taken = [item.value for item in await asyncio.gather(*both) if item]
    assert sorted(taken) == [b"%d" % n for n in range(6)]
    assert jobs.depth() == 0


async def test_a_waiter_that_gives_up_takes_nothing_and_lets_the_next_one_lead(jobs: Queue) -> None:
    queue = AsyncPriorityQueue(jobs)
    assert await queue.pop_min(wait=0.01) is None
    assert await queue.lease(wait=0.01) is None
    leader = asyncio.create_task(queue.pop_min(wait=True))
    await asyncio.sleep(0.02)
    nexts = [asyncio.create_task(queue.pop_min(wait=LONG)) for _ in range(2)]
    await asyncio.sleep(0.02)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    await queue.push_many([(b"a", 1), (b"b", 2)])
    assert {item.value for item in await asyncio.gather(*nexts) if item} == {b"a", b"b"}
    assert jobs.depth() == 0


async def test_waiters_go_on_after_one_for_which_no_thread_could_be_started(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = AsyncPriorityQueue(jobs)
    with monkeypatch.context() as short:
        short.setattr(threading.Thread, "start", partialmethod(_start_but_none_that_looks_out, threading.Thread.start))
        with pytest.raises(RuntimeError, match="new thread"):
            await queue.pop_min(wait=LONG)
    waiting = asyncio.create_task(queue.pop_min(wait=LONG))
    await asyncio.sleep(0.02)
    await queue.push(b"a", priority=1)
    assert (await waiting).value == b"a"


def _start_but_none_that_looks_out(thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
    if thread.name == "pq-lookout":
        raise RuntimeError("can't start new thread")
    start(thread)


async def test_canceled_again_and_again_nothing_is_lost(jobs: Queue) -> None:
    """Takers are canceled at random moments; what they took, they have."""
    total = 200
    queue = AsyncPriorityQueue(jobs)
    got: list[bytes] = []

    async def take() -> None:
        item = await queue.pop_min(wait=LONG)
        got.append(item.value)

    async def push() -> None:
        for n in range(0, total, 10):
            await queue.push_many([(b"%d" % i, i) for i in range(n, n + 10)])

    pushing = asyncio.create_task(push())
    wave = 0
    while len(got) < total:
        wave += 1
        tasks = [asyncio.create_task(take()) for _ in range(8)]
        for _ in range(wave % 7):
            await asyncio.sleep(0.0005 * (wave % 3))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if wave % 7 == 6 and pushing.done() and jobs.depth():
            got.extend(item.value for item in await queue.pop_many(5))
    await pushing
    assert sorted(got, key=int) == [b"%d" % n for n in range(total)]
    assert jobs.depth() == 0


async def test_closing_the_store_ends_waits(store: Store, jobs: Queue) -> None:
    queue = AsyncPriorityQueue(jobs)
    waiters = [asyncio.create_task(queue.pop_min(wait=LONG)) for _ in range(3)]
    await asyncio.sleep(0.05)
    await asyncio.to_thread(store.close)
    results = await asyncio.gather(*waiters, return_exceptions=True)
    assert {type(result) for result in results} == {StoreClosed}
    with pytest.raises(StoreClosed):
        await queue.push(b"x", priority=1)


def test_a_loop_that_ended_does_no_harm(jobs: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2)])
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)

    async def leave_behind() -> None:
        task = asyncio.get_running_loop().create_task(queue.pop_min())
        await held.until_it_began()
        task._log_destroy_pending = False  # noqa: SLF001 # as asyncio.gather does

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave_behind())
    loop.close()
    held.go.set()
    assert jobs.pop_min().value == b"b"
    assert asyncio.run(queue.pop_min()) is None


def test_a_task_that_ends_the_loop_leaves_the_rest_their_answers(jobs: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)

    async def pop_and_end() -> None:
        await queue.pop_min()
        raise SystemExit

    async def begin() -> list[asyncio.Task[Item | None]]:
        loop = asyncio.get_running_loop()
        first = loop.create_task(queue.pop_min())
        await held.until_it_began()
        ends, others = loop.create_task(pop_and_end()), [loop.create_task(queue.pop_min()) for _ in range(2)]
        await asyncio.sleep(0)
        ends.add_done_callback(lambda task: task.exception())  # seen here
        return [first, *others]

    loop = asyncio.new_event_loop()
    tasks = loop.run_until_complete(begin())
    held.go.set()  # not before: an answer that came while the loop was ending would end that
    with pytest.raises(SystemExit):
        loop.run_until_complete(asyncio.wait(tasks, timeout=LONG))
    _, waiting = loop.run_until_complete(asyncio.wait(tasks, timeout=LONG))
    assert not waiting
    loop.close()
    assert sorted(item.value for task in tasks if (item := task.result())) == [b"0", b"2", b"3"]


async def test_a_task_that_was_canceled_before_it_asks_takes_nothing(
    jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(3)])
    queue, held = AsyncPriorityQueue(jobs), Held(monkeypatch, jobs)

    async def cancel_itself() -> None:
        task = asyncio.current_task()
        task.cancel("enough")
        await queue.pop_min()

    first = asyncio.create_task(queue.pop_min())
    await held.until_it_began()
    gone = asyncio.create_task(cancel_itself())
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await gone
    held.go.set()
    await first
    assert jobs.depth() == 2


async def test_a_loop_executes_what_nothing_is_in_the_way_of(store: Store, jobs: Queue) -> None:
    queue = for_coroutines(jobs, in_loop=True)
    jobs.push(b"a", 1)
    pushing = queue.push(b"b", 2)
    if store.url.startswith("lmdb:"):
        with pytest.raises(StopIteration):  # it never waits for another thread
            pushing.send(None)
    else:
        await pushing
    jobs.configure(max_depth=2)
    with pytest.raises(QueueFull):
        await queue.push(b"c", 3)
    assert [item.value for item in await queue.pop_many(5)] == [b"a", b"b"]
    assert await queue.lease() is None


async def test_a_loop_executes_nothing_beside_other_threads(
    store: Store, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = for_coroutines(jobs, in_loop=True)
    await queue.push(b"0", 0)
    held = Held(monkeypatch, jobs)
    first = asyncio.create_task(asyncio.to_thread(jobs.pop_min))
    await held.until_it_began()
    more = asyncio.create_task(queue.push(b"1", 1))
    await asyncio.sleep(0)
    assert not more.done()
    held.go.set()
    assert (await first).value == b"0"
    await more
    many = await asyncio.gather(
        *(queue.push(b"x", n) for n in range(50)), *(asyncio.to_thread(jobs.push, b"y", n) for n in range(50))
    )
    assert len({item.id for item in many}) == 100
    assert check_full_count(store, jobs) == 101
