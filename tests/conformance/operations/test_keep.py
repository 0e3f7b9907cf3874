"""How long the trash keeps what acts take: a week, a shorter time, or not at all."""

from datetime import timedelta

import pytest

from queues import Queue, Store
from queues.errors import BadTime, TrashNotFound
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.dumps import EVERYTHING
from tests.full_count import check_full_count
from tests.sweeps import sweep_trash

NOT_AT_ALL = timedelta(0)


def trash_keys(store: Store) -> int:
    """Return how many keys the trash takes in the store: entries, their parts, and their deadlines."""
    begin, end = store.context.keyspace.range
    prefix = store.context.keyspace.trash.key(b"\x01" * 20)[:-24]
    keys = [key for key, _ in store.read(lambda tr: tr.get_range(begin, end, limit=EVERYTHING).wait())]
    return sum(key.startswith(prefix) for key in keys)


def test_pops_of_a_program_can_leave_nothing_behind(store: Store, jobs: Queue) -> None:
    before = trash_keys(store)
    program = store.actions("cron", via="cli", keep=NOT_AT_ALL)
    for number in range(50):
        jobs.push(b"%d" % number, priority=number)
    taken = [program.pop("jobs") for _ in range(20)] + program.pop_many("jobs", 30, end="max")
    assert [popped is not None and popped.trash_id for popped in taken] == [None] * 50
    assert trash_keys(store) == before
    assert store.trash.entries().entries == ()
    last = store.audit.entries().entries[0]
    assert (last.count, last.actor, last.after) == (30, "cron", {"kept_seconds": 0})
    check_full_count(store, jobs)
    jobs.push(b"x", priority=1)
    store.actions("ann").pop("jobs")
    assert trash_keys(store) == before + 2, "as a rule there is an entry, and its deadline"


def test_a_shorter_time_is_swept_when_it_is_over(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    popped = store.actions("cron", keep=timedelta(minutes=10)).pop("jobs")
    usual = store.actions("ann").pop("jobs")
    entries = {entry.id: entry for entry in store.trash.entries().entries}
    assert entries[popped.trash_id].deadline - entries[popped.trash_id].at == timedelta(minutes=10)
    assert entries[usual.trash_id].deadline - entries[usual.trash_id].at == timedelta(milliseconds=KEPT_MS)
    clock.advance(601)
    assert sweep_trash(store) > 0
    with pytest.raises(TrashNotFound):
        store.actions("ann").undo(popped.trash_id)
    store.actions("ann").undo(usual.trash_id)
    assert [item.value for item in jobs.items().items] == [b"b", b"c"]
    jobs.push(b"d", priority=0)
    again = store.actions("cron", keep=timedelta(minutes=10)).pop("jobs")
    assert store.actions("ann").undo(again.trash_id).item.value == b"d", "in time it comes back"


def test_deleting_and_purging_keep_nothing_where_told_so(store: Store, jobs: Queue) -> None:
    before = trash_keys(store)
    jobs.push_many([(b"%d" % number, number) for number in range(10)])
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    lease = jobs.lease(seconds=60)
    program = store.actions("cron", keep=NOT_AT_ALL)
    deleted = program.delete_items("jobs", [lease.item.id, jobs.items().items[0].id])
    assert (deleted.count, deleted.trash_id) == (2, None)
    assert trash_keys(store) == before
    purged = program.purge("jobs", confirm="jobs")
    assert (purged.count, purged.trash_ids) == (9, ())
    assert sweep_trash(store) > 0, "what lay there is cleared in steps, by whatever sweeps"
    assert trash_keys(store) == before
    assert jobs.depth() == 0
    check_full_count(store, jobs)


def test_the_undo_of_a_push_names_no_entry_where_nothing_is_kept(store: Store, jobs: Queue) -> None:
    for keep, kept in ((timedelta(hours=1), True), (NOT_AT_ALL, False)):
        pushed = store.actions("ann").push_undoably("jobs", [(b"x", 1)])
        undone = store.actions("cron", keep=keep).undo(pushed.trash_id)
        assert (undone.count, undone.trash_id is not None) == (1, kept)
    assert jobs.depth() == 0


def test_a_deleted_queue_is_kept_for_as_long_as_told(store: Store, jobs: Queue, clock: Clock) -> None:
    before = trash_keys(store)
    jobs.push(b"a", priority=1)
    hour = store.actions("cron", keep=timedelta(hours=1))
    deleted = hour.delete_queue("jobs", confirm="jobs")
    entry = store.trash.get(deleted)
    assert entry.deadline - entry.at == timedelta(hours=1)
    assert store.audit.entries().entries[0].after == {"kept_seconds": 3600}
    store.actions("ann").undo(deleted)
    assert jobs.depth() == 1
    store.actions("cron", keep=NOT_AT_ALL).delete_queue("jobs", confirm="jobs")
    assert sweep_trash(store) > 0
    assert store.trash.entries().entries == ()
    clock.advance(KEPT_MS / 1000)
    sweep_trash(store)
    assert trash_keys(store) == before


@pytest.mark.parametrize("wrong", [timedelta(seconds=-1), timedelta(milliseconds=KEPT_MS + 1)])
def test_the_trash_stays_bounded(store: Store, wrong: timedelta) -> None:
    with pytest.raises(BadTime, match="0 seconds"):
        store.actions("cron", keep=wrong)
    store.actions("cron", keep=timedelta(days=7))
