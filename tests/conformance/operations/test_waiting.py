"""Blocking: a waiter gets what comes, whatever makes it come, and only one waiter of a process is woken for it.

Waits have no timeout of their own here, so that a wake-up that is lost is seen as such; LONG is only when a test gives
up. How soon waiters wake is measured by `benchmarks/wake_up.py`, what idle ones cost by `benchmarks/idle_waiters.py`.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from queues import AsyncFifoQueue, AsyncPriorityQueue, Item, Queue, Store, open_store
from queues.errors import BadTime, QueueNotFound, StoreClosed
from queues.serving.waiters import Call, Waiter, WaitQueue
from tests.conftest import Clock
from tests.others import PREFIX, Others
from tests.waiting import LONG, await_true, begin

T = TypeVar("T")


def begin_pops(queue: Queue, n: int = 1) -> list[Future[Item | None]]:
    """Begin so many pops, and return when they all wait in line and one of them watches."""
    before = stored(queue)
    pops = [begin(lambda: queue.pop_min(wait=True)) for _ in range(n)]
    await_true(lambda: stored(queue) == before + n and watchers(queue) == 1)
    return pops


def stored(queue: Queue) -> int:
    """Return how many waiters of a queue sleep or watch."""
    line = queue.opened.context.wait_queues.of(queue.id)
    with line.mutex:
        return len(line.asleep) + (line.leader is not None) if not line.taking else -1


def watchers(queue: Queue) -> int:
    """Return how many threads watch the store."""
    kv = queue.opened.context.kv
    owner = getattr(kv, "engine", None) or getattr(kv, "memory", kv)
    return len(owner.board)


def test_verbs_do_not_wait_by_default(store: Store) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail", kind="fifo")
    assert jobs.pop_min() is None
    assert jobs.pop_max(wait=0) is None
    assert mail.dequeue(wait=0) is None
    jobs.push(b"a", priority=1)
    assert jobs.pop_min(wait=0).value == b"a"


def test_what_is_there_is_taken_at_once(store: Store) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail", kind="fifo")
    jobs.push_many([(b"low", 1), (b"high", 2)])
    mail.enqueue(b"first")
    assert jobs.pop_max(wait=True).value == b"high"
    assert jobs.pop_min(wait=True).value == b"low"
    assert mail.dequeue(wait=True).value == b"first"


@pytest.mark.parametrize("timeout", [0.02, 0.2])
def test_a_wait_ends_when_its_time_is_up(jobs: Queue, timeout: float) -> None:
    begun = time.monotonic()
    pops = [begin(lambda: jobs.pop_min(wait=timeout)) for _ in range(5)]
    assert [pop.result(LONG) for pop in pops] == [None] * 5
    assert time.monotonic() - begun >= timeout
    assert stored(jobs) == 0


@pytest.mark.parametrize("led", [False, True])
def test_nothing_sleeps_past_the_time_that_it_was_given(
    store: Store, jobs: Queue, monkeypatch: pytest.MonkeyPatch, led: bool
) -> None:
    """How late a wait ends is the machine's: what it hands to the watch, or to its sleep in line, ends in time."""
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    if led:
        begin_pops(jobs)  # another one watches, for ever
    watch, sleep, enter = store.context.kv.watch, WaitQueue.sleep, WaitQueue.enter
    #: When each sleep ends at the earliest and at the latest: a watch counts from some moment since the one before.
    ends: list[tuple[float, float]] = []
    moments: list[float] = []
    entered: list[float] = []

    def timed_watch(known: Any, *, timeout: float) -> bool:
        ends.append((moments[-1] + timeout, time.monotonic() + timeout))
        try:
            return watch(known, timeout=timeout)
        finally:
            moments.append(time.monotonic())

    def timed_sleep(line: WaitQueue, waiter: Waiter, deadline: float) -> Call | None:
        ends.append((deadline, deadline))
        return sleep(line, waiter, deadline)

    def timed_enter(line: WaitQueue, waiter: Waiter) -> None:
        entered.append(time.monotonic())
        moments.append(entered[-1])
        enter(line, waiter)

    monkeypatch.setattr(store.context.kv, "watch", timed_watch)
    monkeypatch.setattr(WaitQueue, "sleep", timed_sleep)
    monkeypatch.setattr(WaitQueue, "enter", timed_enter)
    for timeout in (0.03, 0.1):
        ends.clear()
        begun = time.monotonic()
        assert jobs.pop_min(wait=timeout) is None
        # Its deadline was set before it entered the line.
        assert ends
        assert ends[0][1] >= begun + timeout
        assert all(earliest <= entered[-1] + timeout for earliest, _ in ends)
    assert stored(jobs) == led


@pytest.mark.parametrize("verb", ["pop_min", "pop_max", "dequeue"])
def test_an_item_that_comes_ends_the_wait(store: Store, verb: str) -> None:
    queue = store.create_queue("jobs", kind="fifo" if verb == "dequeue" else "priority")
    for n in range(20):  # with luck the push comes at every moment of the way into sleep
        taking = begin(lambda: getattr(queue, verb)(wait=True))
        item = queue.enqueue(b"a") if verb == "dequeue" else queue.push(b"a", priority=n)
        assert taking.result(LONG) == item


def test_an_item_of_any_process_ends_one_wait(store: Store, jobs: Queue) -> None:
    pops = begin_pops(jobs, 8)
    for n in range(8):
        item = store.queue("jobs").push(b"%d" % n, priority=n)
        done = wait(pops, LONG, return_when="FIRST_COMPLETED").done
        await_true(lambda n=n: stored(jobs) == 7 - n)
        assert [pop.result() for pop in done] == [item]
        pops = [pop for pop in pops if pop not in done]
    assert not pops


def test_the_first_to_wait_gets_the_first_item(jobs: Queue) -> None:
    pops = [begin_pops(jobs)[0] for _ in range(4)]
    for pop in pops:
        item = jobs.push(b"x", priority=1)
        assert pop.result(LONG) == item
        await_true(lambda: watchers(jobs) == 1 or all(pop.done() for pop in pops))


def test_many_items_at_once_end_as_many_waits(jobs: Queue) -> None:
    pops = begin_pops(jobs, 12)
    items = jobs.push_many([(b"%d" % n, n) for n in range(10)])
    await_true(lambda: stored(jobs) == 2)
    taken = [pop.result() for pop in pops if pop.done()]
    assert sorted(item.id for item in taken) == sorted(item.id for item in items)
    jobs.push_many([(b"x", 0), (b"y", 0)])
    assert all(pop.result(LONG) for pop in pops)


def test_an_item_costs_the_same_however_many_wait(jobs: Queue) -> None:
    cost = []
    for waiting in (3, 60):
        pops = begin_pops(jobs, waiting - stored(jobs))
        before = jobs.opened.context.kv.reads()
        jobs.push(b"x", priority=1)
        await_true(lambda waiting=waiting: stored(jobs) == waiting - 1 and watchers(jobs) == 1)
        cost.append(jobs.opened.context.kv.reads() - before)
    assert cost[1] < 60  # sixty waiters that each look read four keys and more
    assert cost[1] <= cost[0] + 20  # what a spurious look costs, which an engine may add
    jobs.push_many([(b"x", 1)] * (stored(jobs)))
    assert all(pop.result(LONG) for pop in pops)


def test_nothing_is_lost_or_doubled_among_many(jobs: Queue) -> None:
    rounds, waiting = 40, 8

    def work() -> list[str]:
        taken: list[str] = []
        while (item := jobs.pop_min(wait=True)).value != b"end":
            taken.append(item.id)
        return taken

    workers = [begin(work) for _ in range(waiting)]
    pushed = [item.id for n in range(rounds) for item in jobs.push_many([(b"x", n)] * (1 + n % 3))]
    jobs.push_many([(b"end", 1_000)] * waiting)
    taken = [item_id for worker in workers for item_id in worker.result(LONG)]
    assert sorted(taken) == sorted(pushed)
    assert jobs.depth() == 0


def test_a_waiter_that_gives_up_while_watching_passes_the_watch_on(jobs: Queue) -> None:
    first = begin(lambda: jobs.pop_min(wait=0.05))
    await_true(lambda: watchers(jobs) == 1 or first.done())
    others = [begin(lambda: jobs.pop_min(wait=True)) for _ in range(2)]
    assert first.result(LONG) is None
    jobs.push_many([(b"x", 1)] * 2)
    assert all(other.result(LONG) for other in others)


def test_giving_up_never_loses_an_item(jobs: Queue) -> None:
    def work(patience: float) -> list[str]:
        pops = (jobs.pop_min(wait=patience) for _ in range(20))
        return [item.id for item in pops if item is not None]

    workers = [begin(lambda n=n: work(0.001 * n)) for n in range(5)]
    pushed = []
    while not all(worker.done() for worker in workers):
        pushed.append(jobs.push(b"x", priority=1).id)
    taken = [item_id for worker in workers for item_id in worker.result(LONG)]
    while left := jobs.pop_many(1_000):
        taken += [item.id for item in left]
    assert sorted(taken) == sorted(pushed)


# What makes items come besides a push


def test_a_restored_item_ends_the_wait(store: Store, jobs: Queue) -> None:
    item = jobs.push(b"a", priority=1)
    (popped,) = store.actions("ann").pop_many("jobs", 1)
    (pop,) = begin_pops(jobs)
    store.restore(popped.trash_id)
    assert pop.result(LONG).id == item.id


def test_the_undo_of_a_purge_ends_the_wait_and_the_purge_does_not(store: Store) -> None:
    jobs, acts = store.create_queue("jobs"), store.actions("ann")
    items = jobs.push_many([(b"%d" % n, n) for n in range(2)])
    jobs.pause(by="ann", reason="a purge is coming")
    pops = begin_pops(jobs, 2)
    (trash_id,) = acts.purge("jobs", confirm="jobs").trash_ids
    jobs.resume()
    newcomer = jobs.push(b"new", priority=-1)
    assert next(iter(wait(pops, LONG, FIRST_COMPLETED).done)).result() == newcomer, "of the newer generation"
    assert sum(pop.done() for pop in pops) == 1
    acts.undo(trash_id)
    wait(pops, LONG)
    assert {pop.result().id for pop in pops} == {newcomer.id, items[0].id}
    assert jobs.depth() == 1


def test_a_purge_takes_along_what_a_wait_slept_towards(store: Store, clock: Clock) -> None:
    """The item that was due is in the trash; back again, it ends the wait when it is due."""
    jobs, acts = store.create_queue("jobs"), store.actions("ann")
    item = jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    (pop,) = begin_pops(jobs)
    (trash_id,) = acts.purge("jobs", confirm="jobs").trash_ids
    clock.advance(3600)
    jobs.push(b"x", priority=1, delay=timedelta(hours=1))
    assert not pop.done()
    acts.undo(trash_id)
    assert pop.result(LONG).id == item.id


@pytest.mark.parametrize("act", ["delete", "move out", "reprioritize", "edit"])
def test_what_an_undo_brings_back_ends_the_wait(store: Store, act: str) -> None:
    jobs, other, acts = store.create_queue("jobs"), store.create_queue("other"), store.actions("ann")
    item = jobs.push(b"a", priority=1)
    if act == "delete":
        trash_id = acts.delete_items("jobs", [item.id]).trash_id
    elif act == "move out":
        trash_id = acts.move_items("jobs", [item.id], "other").trash_id
    else:  # moved out after it was changed: undone the other way round
        changed = (
            acts.reprioritize("jobs", [item.id], priority=9)
            if act == "reprioritize"
            else acts.edit_item("jobs", item.id, b"edited", expect=b"a")
        )
        trash_id = acts.move_items("jobs", [item.id], "other").trash_id
        assert changed.count == 1
    (pop,) = begin_pops(jobs)
    acts.undo(trash_id)
    assert pop.result(LONG).id == item.id
    assert other.depth() == 0


@pytest.mark.parametrize("how", ["move", "retry", "bulk move", "deleted and restored"])
def test_an_act_that_brings_an_item_ends_the_wait(store: Store, how: str) -> None:
    jobs, other, acts = store.create_queue("jobs"), store.create_queue("other"), store.actions("ann")
    if how == "retry":
        jobs.configure(max_attempts=1)
        jobs.push(b"a", priority=1)
        item_id = jobs.release(jobs.lease()).id
    else:
        item_id = other.push(b"a", priority=1).id
    (pop,) = begin_pops(jobs)
    if how == "retry":
        acts.retry_dead("jobs", [item_id])
    elif how == "move":
        acts.move_items("other", [item_id], "jobs")
    elif how == "bulk move":
        acts.run_bulk(acts.begin_bulk("move", "other", to="jobs").id)
    else:
        trash_id = acts.delete_queue("other", confirm="other")
        acts.undo(trash_id)
        acts.move_items("other", [item_id], "jobs")
    assert pop.result(LONG).value == b"a"


def test_a_push_in_a_transaction_with_other_callers_ends_the_wait(store: Store) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail")
    mail.push(b"moved", priority=1)
    (pop,) = begin_pops(jobs)

    def move(tr: object) -> None:
        jobs.push(mail.pop_min(tr=tr).value, priority=3, tr=tr)

    store.transact(move)
    assert pop.result(LONG).value == b"moved"


def test_a_wait_survives_a_rename(store: Store, jobs: Queue) -> None:
    (pop,) = begin_pops(jobs)
    store.rename_queue("jobs", "work")
    store.queue("work").push(b"a", priority=1)
    assert pop.result(LONG).value == b"a"
    assert jobs.name == "work"


@pytest.mark.parametrize(
    ("end", "error"),
    [("delete_queue", QueueNotFound), ("detach", QueueNotFound), ("close", StoreClosed)],
)
def test_the_end_of_a_queue_or_a_store_ends_every_wait(store: Store, end: str, error: type[Exception]) -> None:
    pops = begin_pops(store.attach("jobs", prefix=PREFIX) if end == "detach" else store.create_queue("jobs"), 20)
    getattr(store, end)(*([] if end == "close" else ["jobs"]))
    for pop in pops:
        with pytest.raises(error):
            pop.result(LONG)


def test_an_interrupt_is_no_reason_to_return(store: Store, jobs: Queue) -> None:
    pops = begin_pops(jobs, 3)
    for _ in range(20):
        store.interrupt()
    await_true(lambda: stored(jobs) == 3 and watchers(jobs) == 1)
    jobs.push_many([(b"x", 1)] * 3)
    assert all(pop.result(LONG) for pop in pops)


# Pause


def test_a_wait_sits_out_a_pause(jobs: Queue) -> None:
    jobs.pause(reason="ledger closing")
    item = jobs.push(b"a", priority=1)
    pops = begin_pops(jobs, 2)
    assert jobs.pop_max(wait=0.02) is None
    assert jobs.depth() == 1
    jobs.resume()
    jobs.push(b"b", priority=2)
    assert sorted(pop.result(LONG).value for pop in pops) == [b"a", b"b"]
    assert item.id


def test_a_pause_begins_while_a_caller_waits(jobs: Queue) -> None:
    (pop,) = begin_pops(jobs)
    jobs.pause(reason="r")
    jobs.push(b"a", priority=1)
    await_true(lambda: watchers(jobs) == 1)
    assert not pop.done()
    jobs.resume()
    assert pop.result(LONG).value == b"a"


def test_a_pause_that_ends_by_itself_ends_the_wait(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.pause(reason="r", until=datetime.fromtimestamp(clock.now, UTC) + timedelta(seconds=5))
    jobs.push(b"a", priority=1)
    (pop,) = begin_pops(jobs)
    clock.advance(5)
    await_true(pop.done, meanwhile=store.interrupt)  # the waiter sleeps by the real clock, and looks at this one
    assert pop.result().value == b"a"


def test_a_wait_ends_at_the_end_of_a_pause_without_a_sound() -> None:
    with open_store("memory:") as real:
        jobs = real.create_queue("jobs")
        jobs.pause(reason="r", until=datetime.now(UTC) + timedelta(milliseconds=100))
        jobs.push(b"a", priority=1)
        assert begin(lambda: jobs.pop_min(wait=True)).result(LONG).value == b"a"


# Delayed items


def test_a_delayed_item_ends_the_wait_when_it_is_due(store: Store, jobs: Queue, clock: Clock) -> None:
    soon = jobs.push(b"in a minute", priority=9, delay=timedelta(minutes=1))
    late = jobs.push(b"in an hour", priority=1, delay=timedelta(hours=1))
    pops = begin_pops(jobs, 2)
    clock.advance(59.9)
    store.interrupt()
    await_true(lambda: watchers(jobs) == 1)
    assert jobs.depth("delayed") == 2  # never early
    for step, item in ((0.1, soon), (3_540, late)):
        clock.advance(step)
        await_true(
            lambda item=item: any(pop.done() and pop.result().id == item.id for pop in pops),
            meanwhile=store.interrupt,  # the waiter sleeps by the real clock, and looks at this one whenever it wakes
        )


def test_a_wait_ends_at_the_due_time_of_a_newcomer_that_is_earlier() -> None:
    with open_store("memory:") as real:
        jobs = real.create_queue("jobs")
        jobs.push(b"late", priority=1, delay=timedelta(seconds=LONG))
        (pop,) = begin_pops(jobs)
        item = jobs.push(b"soon", priority=1, delay=timedelta(milliseconds=50))
        assert pop.result(LONG).id == item.id
        assert datetime.now(UTC) >= item.due_at


@pytest.mark.parametrize("verb", ["promote_now", "reschedule", "promote"])
def test_what_makes_a_delayed_item_ready_ends_the_wait(jobs: Queue, clock: Clock, verb: str) -> None:
    item = jobs.push(b"a", priority=1, delay=timedelta(hours=1))
    (pop,) = begin_pops(jobs)
    if verb == "promote":
        clock.advance(3_600)
        jobs.promote()
    elif verb == "reschedule":
        jobs.reschedule(item.id, delay=timedelta(0))
    else:
        jobs.promote_now(item.id)
    assert pop.result(LONG).id == item.id


# Leases


@pytest.mark.parametrize("verb", ["lease_many", "pop_many"])
def test_a_take_of_many_waits_for_the_first_item(jobs: Queue, verb: str) -> None:
    take = getattr(jobs, verb)
    assert take(3, wait=0.02) == []
    taking = begin(lambda: take(3, wait=True))
    items = jobs.push_many([(b"a", 1), (b"b", 2)])
    taken = taking.result(LONG)
    assert [one.item.id if verb == "lease_many" else one.id for one in taken] == [item.id for item in items]


@pytest.mark.parametrize("delay", [None, timedelta(0)])
def test_a_released_item_ends_the_wait(jobs: Queue, delay: timedelta | None) -> None:
    item = jobs.push(b"a", priority=1)
    lease = jobs.lease()
    (pop,) = begin_pops(jobs)
    jobs.release(lease, delay=delay)
    assert pop.result(LONG).id == item.id


def test_an_item_whose_lease_expires_ends_the_wait(store: Store, jobs: Queue, clock: Clock) -> None:
    item = jobs.push(b"a", priority=1)
    jobs.lease(seconds=30)
    (pop,) = begin_pops(jobs)
    clock.advance(29.9)
    store.interrupt()
    await_true(lambda: watchers(jobs) == 1)
    assert jobs.depth("leased") == 1
    clock.advance(0.1)
    await_true(pop.done, meanwhile=store.interrupt)
    assert pop.result().id == item.id


def test_a_wait_ends_when_a_lease_expires_without_a_sound() -> None:
    with open_store("memory:") as real:
        jobs = real.create_queue("jobs")
        item = jobs.push(b"a", priority=1)
        (pop,) = [begin(lambda: jobs.pop_min(wait=True)) for lease in jobs.lease_many(1, seconds=0.1)]
        assert pop.result(LONG).id == item.id


# Attached queues


def test_a_wait_on_an_attached_queue_sees_what_other_programs_push(store: Store) -> None:
    legacy, others = store.attach("legacy", prefix=PREFIX), Others(store)
    pops = begin_pops(legacy, 3)
    for n in range(3):
        others.push((n, b"%d" % n))
    assert sorted(pop.result(LONG).value for pop in pops) == [b"0", b"1", b"2"]
    (pop,) = begin_pops(legacy)
    legacy.push(b"ours", priority=1)
    assert pop.result(LONG).value == b"ours"
    assert legacy.pop_max(wait=0.02) is None


# Refusals


def taking_verbs(store: Store) -> list[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Return each verb that waits for items, for threads and for coroutines."""
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail", kind="fifo")
    return [
        (jobs.pop_min, AsyncPriorityQueue(jobs).pop_min),
        (jobs.pop_max, AsyncPriorityQueue(jobs).pop_max),
        (mail.dequeue, AsyncFifoQueue(mail).dequeue),
        (jobs.lease, AsyncPriorityQueue(jobs).lease),
        (partial(jobs.lease_many, 2), partial(AsyncPriorityQueue(jobs).lease_many, 2)),
        (partial(jobs.pop_many, 2), partial(AsyncPriorityQueue(jobs).pop_many, 2)),
        (partial(mail.dequeue_many, 2), partial(AsyncFifoQueue(mail).dequeue_many, 2)),
    ]


@pytest.mark.parametrize("wait", [False, 0, 0.01, timedelta(milliseconds=10)])
def test_every_verb_takes_every_form_of_a_wait(store: Store, wait: Any) -> None:
    for verb, coroutine in taking_verbs(store):
        assert not verb(wait=wait)
        assert not asyncio.run(coroutine(wait=wait))


def test_every_verb_waits_forever(store: Store) -> None:
    verbs = taking_verbs(store)
    jobs, mail = store.queue("jobs"), store.queue("mail")
    for verb, coroutine in verbs:
        for take in (partial(verb, wait=True), lambda made=coroutine: asyncio.run(made(wait=True))):
            taking = begin(take)
            jobs.push(b"a", 1)
            mail.enqueue(b"a")
            assert taking.result(LONG)
            while jobs.pop_min() or mail.dequeue():
                continue


@pytest.mark.parametrize("wait", [-1, float("nan"), "3", None, timedelta(seconds=-1)])
def test_a_wait_of_another_form_is_refused(store: Store, wait: object) -> None:
    for verb, coroutine in taking_verbs(store):
        with pytest.raises(BadTime, match="wait"):
            verb(wait=wait)
        with pytest.raises(BadTime, match="wait"):
            asyncio.run(coroutine(wait=wait))


def test_a_transaction_does_not_wait(store: Store, jobs: Queue) -> None:
    with pytest.raises(BadTime, match="not both"):
        store.transact(lambda tr: jobs.pop_min(wait=1.0, tr=tr))
