"""Sweeping by the due index: what falls due is done in time, in queues without pops too; idle queues cost nothing."""

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

import pytest

from queues import Actions, Queue, Store
from queues.background import due_index
from queues.background.sweeper import LONGEST, Sweeper, Swept
from queues.items.counters import total
from queues.kv.commit_slots import Mark, SlotPool
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.dumps import EVERYTHING
from tests.full_count import check_full_count
from tests.step_by_step import begin, on_concurrent_engines

WEEK = KEPT_MS / 1000


@pytest.fixture
def sweeper(store: Store) -> Sweeper:
    made = Sweeper(store.context, count=lambda: 0.0)
    made.sweep()
    return made


@pytest.fixture
def jobs(store: Store) -> Iterator[Queue]:
    jobs = store.create_queue("jobs")
    yield jobs
    check_full_count(store, jobs)


def marks(store: Store) -> list[tuple[int, int]]:
    """Return (second, queue id) of what is in the due index."""
    pairs = store.read(lambda tr: tr.get_range(*store.context.keyspace.due_index, limit=EVERYTHING).wait())
    return [store.context.keyspace.due.elements(key) for key, _ in pairs]


def woken(store: Store, known: Mapping[bytes, bytes | None]) -> bool:
    """Say whether a sweeper that sleeps now has been woken: something that it watches is not what it knows."""
    return store.read(lambda tr: any(tr.get(key).wait() != value for key, value in known.items()))


def test_an_item_of_an_idle_queue_is_ready_when_it_is_due_and_never_early(
    store: Store, jobs: Queue, sweeper: Sweeper, clock: Clock
) -> None:
    jobs.push(b"soon", priority=1, delay=timedelta(seconds=2.345))
    assert sweeper.round().rest == pytest.approx(2.0), "until its second has come"
    clock.advance(2.0)
    done = sweeper.round()
    assert (done.swept, done.rest) == (Swept(), pytest.approx(0.345))
    clock.advance(0.344)
    assert not sweeper.round().swept
    clock.advance(0.001)
    assert sweeper.sweep() == Swept(promoted=1)
    assert jobs.peek_min().value == b"soon"
    assert marks(store) == []
    assert sweeper.round().rest == LONGEST


def test_leases_that_expired_end_and_the_last_one_kills(jobs: Queue, sweeper: Sweeper, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    for attempt in range(1, 6):
        assert jobs.lease(seconds=7)
        clock.advance(6.99)
        assert not sweeper.sweep()
        clock.advance(0.01)
        assert sweeper.sweep() == Swept(expired=1), attempt
    assert (jobs.depth(), jobs.depth("dead")) == (0, 1)


def test_what_falls_due_soon_wakes_sleepers_and_what_is_far_does_not(
    store: Store, jobs: Queue, sweeper: Sweeper
) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(9)])
    known = sweeper.round().known
    jobs.push(b"far", priority=1, delay=timedelta(hours=1))
    lease = jobs.lease(seconds=60)
    assert not woken(store, known), "it looks again before that"
    jobs.extend(lease, seconds=61)
    jobs.ack(lease)
    jobs.push(b"x", priority=1)
    jobs.pop_min()
    assert not woken(store, known), "nothing that a sweep does anything about"
    for act in (
        lambda: jobs.push(b"near", priority=1, delay=timedelta(seconds=2 * LONGEST - 0.1)),
        lambda: jobs.lease(seconds=2 * LONGEST - 0.1),
        lambda: jobs.release(jobs.lease(), delay=timedelta(seconds=1)),
        lambda: jobs.reschedule(jobs.delayed().items[0].id, delay=timedelta(seconds=1)),
        lambda: jobs.extend(jobs.lease(), seconds=1),
    ):
        known = sweeper.round().known
        act()
        assert woken(store, known)


def test_an_idle_store_costs_five_reads_a_round_however_many_queues_there_are(
    store: Store, sweeper: Sweeper, clock: Clock
) -> None:
    for n in range(30):
        queue = store.create_queue(f"q:{n}")
        queue.push(b"x", priority=1)
        queue.push(b"later", priority=1, delay=timedelta(minutes=5))
    sweeper.round()
    before = store.context.kv.reads()
    for _ in range(10):
        assert sweeper.round().rest == LONGEST
        clock.advance(LONGEST)
    assert store.context.kv.reads() - before == 10 * 5


def test_a_lease_that_was_acknowledged_leaves_the_due_index_when_its_second_has_come(
    store: Store, jobs: Queue, sweeper: Sweeper, clock: Clock
) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(40)])
    for n in range(20):
        jobs.ack(jobs.lease(seconds=30 + n))
    kept = jobs.lease(seconds=90.5)
    assert len(marks(store)) == 21
    clock.advance(60)
    assert not sweeper.sweep()
    assert [second for second, _ in marks(store)] == [kept.expires_at.timestamp() // 1]
    clock.advance(30)
    assert sweeper.round().rest == pytest.approx(0.5)


def test_more_queues_and_items_than_one_round_does(store: Store, sweeper: Sweeper, clock: Clock) -> None:
    queues = [store.create_queue(f"q:{n}") for n in range(60)]
    for queue in queues:
        queue.push(b"x", priority=1, delay=timedelta(seconds=1))
    queues[0].push_many([(b"%d" % n, n) for n in range(900)], delay=timedelta(seconds=1))
    queues[0].push_many([(b"%d" % n, n) for n in range(400)], delay=timedelta(seconds=1))
    clock.advance(5)
    with pytest.MonkeyPatch.context() as few:
        few.setattr("queues.background.sweeper.QUEUES", 25)
        first = sweeper.round()
        assert 0 < first.swept.promoted < 1_360
        assert first.rest == 0, "there is more"
        assert first.swept + sweeper.sweep() == Swept(promoted=1_360)
    assert (queues[0].depth(), queues[59].depth(), marks(store)) == (1_301, 1, [])


def test_every_way_back_is_on_the_due_index(store: Store, ann: Actions, sweeper: Sweeper, clock: Clock) -> None:
    def filled(name: str) -> Queue:
        queue = store.create_queue(name)
        queue.push(b"delayed", priority=1, delay=timedelta(seconds=30))
        queue.push(b"leased", priority=1)
        queue.lease(seconds=30)
        return queue

    deleted, purged, item, moved = (filled(name) for name in ("deleted", "purged", "item", "moved"))
    target = store.create_queue("target")
    delayed = {queue.name: queue.delayed().items[0].id for queue in (item, moved)}
    undos = [
        ann.delete_queue("deleted", confirm="deleted"),
        ann.purge("purged", confirm="purged").trash_ids[0],
        ann.delete_items("item", [delayed["item"], item.leased().items[0].id]).trash_id,
    ]
    ann.move_items("moved", [delayed["moved"]], "target")
    clock.advance(60)
    assert sweeper.sweep() == Swept(promoted=1, expired=2), "target's item, and the leases of purged and moved"
    known = sweeper.round().known
    for trash_id in undos:
        ann.undo(trash_id)
        assert woken(store, known)
        known = sweeper.round().known
    sweeper.sweep()
    depths = {queue.name: queue.depth() for queue in (deleted, purged, item, moved, target)}
    assert depths == {"deleted": 2, "purged": 2, "item": 2, "moved": 1, "target": 1}
    for queue in (deleted, purged, item, moved, target):
        check_full_count(store, queue)


def test_trash_deadlines_undone_purges_and_slots_are_swept(
    store: Store, ann: Actions, jobs: Queue, sweeper: Sweeper, clock: Clock
) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(10)])
    trash_id = ann.purge("jobs", confirm="jobs").trash_ids[0]
    jobs.push(b"new", priority=1)
    known = sweeper.round().known
    ann.undo(trash_id)
    assert woken(store, known)
    assert sweeper.sweep().merged == 10
    assert len(store.queue("jobs").config.generations) == 1
    ann.delete_items("jobs", [jobs.peek_min().id])
    clock.advance(WEEK - 5)
    assert sweeper.round().rest == pytest.approx(5.0), "exactly until the deadline"
    clock.advance(5)
    assert sweeper.sweep().trash > 0
    assert store.trash.entries().entries == ()
    key = SlotPool(store.context.keyspace.slots).take().key
    store.transact(lambda tr: tr.set(key, Mark(sequence=1, attempt=0, ms=0).encode()))
    assert Sweeper(store.context).sweep().slots >= 1, "at the beginning and once a day"
    assert store.read(lambda tr: tr.get(key).wait()) is None


def test_a_queue_that_fails_keeps_no_other_from_being_swept(
    store: Store, jobs: Queue, sweeper: Sweeper, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    broken, newer = store.create_queue("broken"), store.create_queue("newer")
    for queue in (broken, newer, jobs):
        queue.push(b"x", priority=1, delay=timedelta(seconds=1))
    keys = broken.opened.keys.generation(1)
    config = store.context.keyspace.configs.key(newer.id)
    was = store.read(lambda tr: tr.get(config).wait())

    def damage(tr: object) -> None:
        ((key, _),) = tr.get_range(*keys.delayed.all, limit=2).wait()
        tr.set(key, b"no record")
        tr.set(config, b"\xff" + was[1:])

    store.transact(damage)
    clock.advance(2)
    with caplog.at_level(logging.WARNING):
        assert sweeper.sweep() == Swept(promoted=1)
        assert sweeper.round().rest == LONGEST, "no busy loop"
    assert len([record for record in caplog.records if record.name != "queues.kv"]) == 2, "each is told once"
    assert jobs.depth() == 1
    store.transact(lambda tr: tr.set(config, was))
    assert sweeper.sweep() == Swept(promoted=1), "its place in the due index was kept"


def test_what_workers_did_already_is_only_taken_off_the_due_index(
    store: Store, jobs: Queue, sweeper: Sweeper, clock: Clock
) -> None:
    jobs.push(b"x", priority=1, delay=timedelta(seconds=1))
    clock.advance(1)
    jobs.promote()
    assert not sweeper.sweep()
    assert (jobs.depth(), marks(store)) == (1, [])


@on_concurrent_engines
@pytest.mark.parametrize("sweep_first", [True, False])
def test_a_mark_that_is_set_anew_is_not_cleared(store: Store, clock: Clock, sweep_first: bool) -> None:
    """A sweep that saw nothing there must not clear what a push has put there since."""
    jobs = store.create_queue("jobs")
    jobs.ack(leased(jobs, 1.5))
    clock.advance(1)
    stale = store.read(
        lambda tr: due_index.look(tr, store.context.keyspace, now_ms=int(clock() * 1000), limit=10)
    ).queues
    assert len(stale) == 1
    push, settle = begin(store), begin(store)
    jobs.push(b"x", priority=1, delay=timedelta(seconds=0.5), tr=push)
    due_index.settle(settle, store.context.keyspace, stale)
    if sweep_first:
        settle.commit()
        push.commit()
    else:
        push.commit()
        settle.refused()
    check_full_count(store, jobs)


def leased(jobs: Queue, seconds: float) -> str:
    jobs.push(b"x", priority=1)
    return jobs.lease(seconds=seconds).token


@on_concurrent_engines
def test_marks_conflict_with_nothing(store: Store) -> None:
    jobs, other = store.create_queue("jobs"), store.create_queue("other")
    verbs: list[Callable[[object], object]] = [
        lambda tr: jobs.push(b"x", priority=1, delay=timedelta(seconds=1), tr=tr),
        lambda tr: jobs.push(b"y", priority=1, delay=timedelta(seconds=1), tr=tr),
        lambda tr: other.push(b"z", priority=1, delay=timedelta(seconds=1), tr=tr),
    ]
    steps = [begin(store) for _ in verbs]
    for verb, step in zip(verbs, steps, strict=True):
        verb(step)
    for step in steps:
        step.commit()
    wakes = store.read(lambda tr: total(tr.get(store.context.keyspace.due_wake).wait()))
    assert wakes == 3
    assert len(marks(store)) == 2
