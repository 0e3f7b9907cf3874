"""Finished items: for a time a queue keeps records of what programs acknowledged and popped."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queues import Actions, AsyncStore, Item, Queue, Store, Transaction
from queues.background.sweeper import Sweeper
from queues.errors import BadCursor, BadSetting, NotForAttached
from queues.items import finished, locate
from queues.items.counters import CounterDelta
from tests.conftest import Clock
from tests.full_count import check_full_count

DAY = 86_400.0


@pytest.fixture
def jobs(store: Store) -> Iterator[Queue]:
    """A queue that keeps finished items for a day."""
    jobs = store.create_queue("jobs", bands=[0, 10])
    jobs.configure(keep_finished=timedelta(days=1))
    yield jobs
    if "jobs" in store.directory():
        check_full_count(store, jobs)
        assert [finding for finding in store.doctor.examine().findings if finding.kind != "slot"] == []


def at(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC)


def told(queue: Queue) -> list[tuple[bytes, str, str]]:
    """Return value, state and worker of the finished items, the newest first."""
    return [(item.raw, item.state, item.worker) for item in queue.finished().items]


def finish(queue: Queue, n: int) -> list[Item]:
    """Push items and acknowledge each in a transaction of its own."""
    pushed = [queue.push(b"%d" % k, priority=1) for k in range(n)]
    for _ in pushed:
        queue.ack(queue.lease(worker="w"))
    return pushed


def test_an_acknowledged_item_tells_of_its_life(jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"x", priority=7)
    clock.advance(5)
    lease = jobs.lease(worker="press")
    jobs.release(lease, reason="jam", traceback="Traceback …")
    clock.advance(5)
    lease, taken = jobs.lease(worker="press-2"), at(clock)
    clock.advance(5)
    jobs.ack(lease)
    assert jobs.find(pushed.id) is None
    found = jobs.find_finished(pushed.id)
    assert (found.id, found.priority, found.raw) == (pushed.id, 7, b"x")
    assert (found.state, found.worker, found.attempts) == ("acknowledged", "press-2", 2)
    assert (found.pushed_at, found.leased_at, found.finished_at) == (pushed.pushed_at, taken, at(clock))
    assert [(one.worker, one.error, one.traceback) for one in found.attempt_log] == [("press", "jam", "")]
    assert jobs.finished().items == (found,)
    assert jobs.status().finished == 1


def test_a_popped_item_tells_what_took_it(store: Store, jobs: Queue, clock: Clock) -> None:
    items = [jobs.push(b"%d" % n, priority=n) for n in range(4)]
    clock.advance(1)
    jobs.pop_min()
    store.transact(lambda tr: jobs.pop_max(tr=tr))
    jobs.pop_many(2)
    states = {(item.state, item.worker.endswith(f":{os.getpid()}"), item.leased_at) for item in jobs.finished().items}
    assert states == {("popped", True, None)}
    assert {item.id for item in jobs.finished().items} == {item.id for item in items}
    lines = store.create_queue("lines", kind="fifo")
    lines.configure(keep_finished=60)
    line = lines.enqueue(b"x")
    lines.dequeue()
    assert lines.find_finished(line.id).priority is None


def test_a_queue_without_the_setting_writes_nothing(store: Store) -> None:
    plain = store.create_queue("plain")
    finish(plain, 2)
    plain.push(b"x", priority=1)
    plain.pop_min()
    assert plain.finished().items == ()
    begin, end = store.context.keyspace.finished.all
    assert store.read(lambda tr: tr.get_key(begin, end).wait()) is None


def test_items_are_finished_by_each_verb_of_programs(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(6)])
    first, second, *many = jobs.lease_many(5, worker="w")
    with first:
        pass
    store.transact(lambda tr: jobs.ack(second, tr=tr))
    assert jobs.ack_many(many) == []
    jobs.ack(first)
    assert jobs.ack_many(many) == []
    assert sorted(raw for raw, _, _ in told(jobs)) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(("back", "attempts"), [("ready", None), ("dead", 1)])
def test_an_item_that_is_acknowledged_after_its_lease_expired_is_told_of(
    jobs: Queue, clock: Clock, back: str, attempts: int | None
) -> None:
    jobs.configure(max_attempts=attempts)
    item, began = jobs.push(b"x", priority=1), at(clock)
    lease = jobs.lease(worker="slow", seconds=1)
    clock.advance(2)
    jobs.expire()
    assert jobs.find(item.id).state == back
    jobs.ack(lease)
    found = jobs.find_finished(item.id)
    assert (found.raw, found.priority, found.worker, found.leased_at) == (b"x", 1, "slow", began)


def test_a_stale_acknowledgement_leaves_no_record(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    lease = jobs.lease(worker="slow", seconds=1)
    clock.advance(2)
    jobs.expire()
    again = jobs.lease(worker="quick")
    assert jobs.ack_many([lease]) == [lease.token]
    assert told(jobs) == []
    jobs.ack(again)
    assert told(jobs) == [(b"x", "acknowledged", "quick")]


def test_a_transaction_that_fails_leaves_item_and_no_record(store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=1)

    def fail(tr: Any) -> None:
        assert jobs.pop_min(tr=tr) is not None
        raise KeyError

    with pytest.raises(KeyError):
        store.transact(fail)
    assert (jobs.depth(), told(jobs)) == (1, [])


def test_what_people_do_is_in_audit_and_trash_alone(ann: Actions, jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    ann.pop("jobs")
    lease = ann.lease("jobs", seconds=60)
    ann.ack("jobs", lease.item.id)
    ann.delete_item("jobs", jobs.peek_min().id)
    jobs.remove(jobs.peek_min().id)
    assert (jobs.depth(), told(jobs)) == (0, [])


async def test_coroutines_finish_items_too(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(3)])
    queue = await AsyncStore(store).priority_queue("jobs")
    await queue.pop_min()
    await queue.pop_many(1)
    async with await queue.lease(worker="w"):
        pass
    page = await queue.finished()
    assert sorted(item.state for item in page.items) == ["acknowledged", "popped", "popped"]
    assert (await queue.find_finished(page.items[0].id)) == page.items[0]


def test_a_value_and_a_long_log_are_cut(jobs: Queue) -> None:
    jobs.configure(max_attempts=None)
    item = jobs.push(b"x" * 1_000, priority=1)
    for _ in range(10):
        jobs.release(jobs.lease(worker="w"), reason="y" * 1_000)
    jobs.ack(jobs.lease(worker="w"))
    found = jobs.find_finished(item.id)
    assert (found.raw, found.size, found.truncated) == (b"x" * 256, 1_000, True)
    assert (found.attempts, [one.number for one in found.attempt_log]) == (11, [5, 6, 7, 8, 9, 10])


def test_pages_go_from_the_newest_to_the_oldest(store: Store, jobs: Queue, clock: Clock) -> None:
    pushed = []
    for _ in range(5):
        pushed += finish(jobs, 1)
        clock.advance(1)
    first = jobs.finished(limit=2)
    second = jobs.finished(limit=2, after=first.cursor)
    last = jobs.finished(limit=2, after=second.cursor)
    ids = [item.id for page in (first, second, last) for item in page.items]
    assert (ids, last.cursor) == ([item.id for item in reversed(pushed)], None)
    with pytest.raises(BadCursor):
        jobs.finished(after=jobs.items(limit=1).cursor or "x")


def test_records_end_after_their_time(store: Store, jobs: Queue, clock: Clock) -> None:
    (old,) = finish(jobs, 1)
    clock.advance(DAY / 2)
    (young,) = finish(jobs, 1)
    assert store.sweep().finished == 0
    clock.advance(DAY / 2 + 1)
    assert store.sweep().finished == 1
    assert (jobs.find_finished(old.id), jobs.find_finished(young.id).id) == (None, young.id)
    assert jobs.status().finished == 1


def test_records_of_a_clock_that_was_set_back_do_not_stay_on_top(store: Store, jobs: Queue, clock: Clock) -> None:
    clock.advance(30 * DAY)
    finish(jobs, 1)
    clock.advance(-30 * DAY)
    (now,) = finish(jobs, 1)
    assert store.sweep().finished == 1
    assert [item.id for item in jobs.finished().items] == [now.id]


def test_the_oldest_records_beyond_the_number_are_removed(
    store: Store, jobs: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished, "MOST", 3)
    pushed = []
    for _ in range(5):
        pushed += finish(jobs, 1)
        clock.advance(0.001)
    assert store.sweep().finished == 2
    assert [item.id for item in jobs.finished().items] == [item.id for item in reversed(pushed[2:])]
    assert store.sweep().finished == 0


def test_many_queues_with_nothing_to_remove_do_not_hold_up_a_round(store: Store) -> None:
    for n in range(40):
        queue = store.create_queue(f"q{n}")
        queue.configure(keep_finished=60)
        finish(queue, 1)
    sweeper, rounds = Sweeper(store.context), 1
    while sweeper.round().rest == 0:
        rounds += 1
    assert rounds >= 5, "each round looks at a few of them, after what is due"


def test_an_item_that_finishes_long_after_a_sweep_began_is_kept(store: Store, clock: Clock) -> None:
    queues = [store.create_queue(f"q{n}") for n in range(40)]
    for each in queues:
        each.configure(keep_finished=60)
        finish(each, 1)
    queue = max(queues, key=lambda each: each.id)  # a sweep comes to it last
    sweeper = Sweeper(store.context)
    sweeper.round()
    clock.advance(300)
    (fresh,) = finish(queue, 1)
    while sweeper.round().rest == 0:
        pass
    assert [item.id for item in queue.finished().items] == [fresh.id]


def test_switching_it_off_removes_what_was_kept(store: Store, jobs: Queue) -> None:
    finish(jobs, 2)
    jobs.configure(keep_finished=None)
    finish(jobs, 1)
    assert len(told(jobs)) == 2
    assert store.sweep().finished == 2
    assert (told(jobs), jobs.status().finished) == ([], 0)
    begin, end = store.context.keyspace.finished.all
    assert store.read(lambda tr: tr.get_key(begin, end).wait()) is None


def test_an_item_that_came_back_and_finished_again_is_found_by_its_later_record(
    store: Store, jobs: Queue, clock: Clock
) -> None:
    item = jobs.push(b"x", priority=1)
    keyspace = store.context.keyspace

    def keep(tr: Transaction) -> None:
        (there,) = locate.find(tr, keyspace, jobs.config, [item.id], skip_missing=False).stored_items
        delta = CounterDelta(keyspace.queue(jobs.id), wake=False)
        finished.keep(tr, keyspace, jobs.config, [there], delta, now_ms=store.context.clock.now_ms(), taker="first")
        delta.apply(tr)

    store.transact(keep)
    clock.advance(DAY / 2)
    jobs.pop_min()
    clock.advance(DAY / 2 + 1)
    assert store.sweep().finished == 1
    assert jobs.find_finished(item.id).worker != "first"
    assert jobs.status().finished == 1


def test_records_go_and_come_with_their_queue(store: Store, ann: Actions, jobs: Queue, clock: Clock) -> None:
    (item,) = finish(jobs, 1)
    trash_id = ann.delete_queue("jobs", confirm="jobs")
    clock.advance(2 * DAY)
    assert store.sweep().finished == 0
    ann.undo(trash_id)
    assert store.queue("jobs").find_finished(item.id) is not None
    ann.rename_queue("jobs", "done")
    assert store.queue("done").find_finished(item.id) is not None
    ann.delete_queue("done", confirm="done")
    clock.advance(8 * DAY)
    store.sweep()
    begin, end = store.context.keyspace.finished.all
    assert store.read(lambda tr: tr.get_key(begin, end).wait()) is None


@pytest.mark.parametrize("seconds", [-1, 0.5, True, "1 d", float("inf"), float("nan"), 367 * DAY])
def test_a_time_that_is_none_is_refused(jobs: Queue, seconds: Any) -> None:
    with pytest.raises(BadSetting, match="Finished items are kept") as refused:
        jobs.configure(keep_finished=seconds)
    assert refused.value.name == "keep_finished"
    assert jobs.config.keep_finished == DAY


def test_zero_is_off_and_an_attached_queue_has_none(store: Store, jobs: Queue) -> None:
    jobs.configure(keep_finished=0)
    assert jobs.config.keep_finished is None
    legacy = store.attach("legacy", prefix=("P",))
    with pytest.raises(NotForAttached):
        legacy.configure(keep_finished=60)
    with pytest.raises(NotForAttached):
        legacy.finished()
    assert legacy.find_finished("0" * 40) is None
