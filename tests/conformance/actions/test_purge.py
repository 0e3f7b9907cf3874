"""Purging in O(1), its undo, the merge behind it, and the sweep of what was not undone in time."""

from datetime import timedelta

import pytest

from queues import Actions, Queue, Store
from queues.background.sweeper import Sweeper
from queues.errors import (
    AlreadyRestored,
    ConfirmationMismatch,
    DepthChanged,
    QueueNotFound,
    StillMerging,
    TrashNotFound,
)
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.dumps import EVERYTHING, dump, states
from tests.full_count import check_full_count
from tests.sweeps import merge_generations, sweep_trash

WEEK = KEPT_MS / 1000


def everything(store: Store) -> dict[bytes, bytes]:
    """Return all that a store holds but slots, which a cluster's clients write."""
    begin, end = store.context.keyspace.range
    pairs = store.read(lambda tr: tr.get_range(begin, end, limit=EVERYTHING).wait())
    return {key: value for key, value in pairs if not key.startswith(store.context.keyspace.slots)}


def fill(queue: Queue, n: int) -> None:
    for first in range(0, n, 500):
        size = min(500, n - first)
        queue.push_many([(b"%d" % number, number % 7) for number in range(first, first + size)])
    queue.push_many([(b"later", 1), (b"later", 2)], delay=timedelta(hours=1))


def purge(store: Store, name: str = "jobs") -> str:
    (trash_id,) = store.actions("ann").purge(name, confirm=name).trash_ids
    return trash_id


def merge_all(store: Store) -> int:
    return merge_generations(store, limit=EVERYTHING)


def test_a_purge_takes_ready_and_delayed_and_its_undo_leaves_no_trace(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs", bands=[2, 5])
    jobs.configure(max_attempts=1)
    jobs.push(b"dying", priority=0)
    jobs.lease(seconds=1)
    clock.advance(2)
    jobs.expire()
    jobs.push(b"held", priority=0)
    lease = jobs.lease(seconds=60)
    fill(jobs, 30)
    before, was = dump(store, jobs), jobs.status()
    seen = jobs.items().items
    trash_id = purge(store)
    assert states(store, jobs) == {"leased": 1, "dead": 1}
    assert jobs.items().items == ()
    assert jobs.oldest() is None
    assert jobs.find(seen[0].id) is None
    assert jobs.pop_min() is None
    check_full_count(store, jobs)
    now = jobs.status()
    assert (now.arrived, now.left) == (was.arrived, was.left + 30), "what was purged has left"
    entry = store.trash.get(trash_id)
    assert (entry.act, entry.what, entry.count, entry.queue) == ("purge", "items", 32, "jobs")
    assert store.actions("bob").undo(trash_id).count == 32
    assert dump(store, jobs) == before
    assert (jobs.status().arrived, jobs.status().left) == (now.arrived + 30, now.left)
    assert jobs.items().items == seen
    check_full_count(store, jobs)
    jobs.ack(lease)
    with pytest.raises(AlreadyRestored):
        store.actions("bob").undo(trash_id)
    assert [entry.verb for entry in store.audit.entries(limit=2).entries] == ["undo", "purge"]


def test_pushes_after_a_purge_and_its_undo_are_in_one_order(store: Store, jobs: Queue) -> None:
    old = jobs.push_many([(b"old%d" % n, n) for n in (1, 3, 5)])
    trash_id = purge(store)
    new = jobs.push_many([(b"new%d" % n, n) for n in (0, 3, 9)])
    store.actions("ann").undo(trash_id)
    assert jobs.config.generations != store.queue("jobs").config.generations
    order = [b"new0", b"old1", b"old3", b"new3", b"old5", b"new9"]
    assert [item.value for item in jobs.items(limit=4).items] == order[:4]
    assert [item.value for item in jobs.items(limit=4, after=jobs.items(limit=4).cursor).items] == order[4:]
    assert jobs.depth() == 6
    assert jobs.oldest().id == old[0].id
    assert {jobs.find(item.id).value for item in old + new} == set(order)
    assert check_full_count(store, jobs) == 6
    assert jobs.pop_max().value == b"new9"
    assert jobs.pop_min().value == b"new0"
    popped = store.actions("ann").pop("jobs")
    assert popped.item.value == b"old1"
    arrived, left = jobs.status().arrived, jobs.status().left
    assert merge_all(store) == 2
    assert len(store.queue("jobs").config.generations) == 1
    assert (jobs.status().arrived, jobs.status().left) == (arrived, left), "a merge brings and takes nothing"
    assert check_full_count(store, jobs) == 3
    store.actions("ann").undo(popped.trash_id)
    assert [item.value for item in jobs.pop_many(9)] == order[1:5]
    assert merge_all(store) == 0
    assert store.context.kv.read(lambda tr: tr.get_key(*store.context.keyspace.merges.all).wait()) is None


def test_a_merge_keeps_attempts_delays_and_order_and_goes_on_where_it_was(store: Store) -> None:
    jobs = store.create_queue("jobs", bands=[3])
    jobs.push(b"tried", priority=0)
    jobs.release(jobs.lease())
    fill(jobs, 250)
    seen, delayed = jobs.items(limit=1_000).items, jobs.delayed().items
    trash_id = purge(store)
    newcomer = jobs.push(b"new", priority=1)
    store.actions("ann").undo(trash_id)
    begun = merge_generations(store, limit=1)
    assert 0 < begun < 250, "a step, not all of it"
    assert check_full_count(store, jobs) == 252
    assert jobs.find(seen[-1].id) is not None
    assert merge_all(store) + begun == 253
    assert check_full_count(store, jobs) == 252
    assert [item for item in jobs.items(limit=1_000).items if item.id != newcomer.id] == list(seen)
    assert jobs.delayed().items == delayed
    assert jobs.find(seen[0].id).attempts == 1
    assert jobs.lease().item.attempts == 2


def test_at_most_two_generations_hold_items(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    trash_ids = []
    for n in range(3):
        jobs.push(b"%d" % n, priority=n)
        trash_ids.append(purge(store))
    jobs.push(b"3", priority=3)
    ann.undo(trash_ids[0])
    with pytest.raises(StillMerging, match="jobs are still being merged"):
        ann.undo(trash_ids[1])
    assert [item.value for item in jobs.items().items] == [b"0", b"3"]
    merge_all(store)
    ann.undo(trash_ids[1])
    assert [item.value for item in jobs.items().items] == [b"0", b"1", b"3"]
    # A purge of both gives two entries, and both come back.
    before = dump(store, jobs)
    both = ann.purge("jobs", confirm="jobs", expect_depth=3)
    assert (both.count, len(both.trash_ids)) == (3, 2)
    assert jobs.depth() == 0
    for trash_id in both.trash_ids:
        ann.undo(trash_id)
    assert dump(store, jobs) == before
    ann.purge("jobs", confirm="jobs")
    ann.undo(trash_ids[2])
    assert [item.value for item in jobs.items().items] == [b"2"]
    assert check_full_count(store, jobs) == 1


def test_purging_needs_the_name_and_the_depth_that_was_shown(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    assert ann.purge("jobs", confirm="jobs").trash_ids == ()
    fill(jobs, 10)
    before = everything(store)
    with pytest.raises(ConfirmationMismatch):
        ann.purge("jobs", confirm="Jobs")
    with pytest.raises(DepthChanged, match="12 items now, not the 9"):
        ann.purge("jobs", confirm="jobs", expect_depth=9, tolerance=2)
    with pytest.raises(QueueNotFound):
        ann.purge("jobs", confirm="jobs", expect_id=jobs.id + 1)
    assert everything(store) == before
    assert ann.purge("jobs", confirm="jobs", expect_depth=10, tolerance=2).count == 12


def test_a_purge_and_its_undo_cost_the_same_at_any_depth(store: Store, ann: Actions) -> None:
    costs = []
    for name, depth in (("few", 10), ("many", 2_000)):
        queue = ann.create_queue(name)
        fill(queue, depth)
        trash_ids: list[str] = []
        acts = (
            lambda name=name, ids=trash_ids: ids.append(purge(store, name)),
            lambda ids=trash_ids: ann.undo(ids[0]),
        )
        for act in acts:
            was, reads = everything(store), store.context.kv.reads()
            act()
            reads = store.context.kv.reads() - reads
            now = everything(store)
            costs.append((reads, sum(was.get(key) != now.get(key) for key in was.keys() | now.keys())))
    assert costs[:2] == costs[2:]
    assert all(reads <= 20 and written <= 30 for reads, written in costs), costs


def test_an_attached_queue_is_purged_too(ann: Actions) -> None:
    legacy = ann.attach("legacy", prefix=b"\x15old\x00")
    legacy.push_many([(b"a", 1), (b"b", 2)])
    purged = ann.purge("legacy", confirm="legacy", expect_depth=2)
    assert (purged.count, legacy.depth()) == (2, 0)
    ann.undo(purged.trash_ids[0])
    assert legacy.depth() == 2


def test_what_is_beyond_its_deadline_is_cleared_whole_and_cannot_be_undone(store: Store, clock: Clock) -> None:
    ann = store.actions("ann")
    jobs, gone = ann.create_queue("jobs"), ann.create_queue("gone")
    keep = ann.create_queue("keep")
    keep.push(b"kept", priority=1)
    clean = everything(store).keys()
    fill(jobs, 700)
    fill(gone, 300)
    page = ann.delete_items("jobs", [item.id for item in jobs.items(limit=50).items])
    ann.pop("jobs")
    purged = purge(store)
    moved = keep.push(b"to move", priority=2)
    ann.move_items("keep", [moved.id], "jobs")
    jobs.remove(moved.id)
    deleted = ann.delete_queue("gone", confirm="gone")
    clock.advance(WEEK - 1)
    assert sweep_trash(store) == 0
    clock.advance(2)
    while sweep_trash(store, limit=200):
        assert check_full_count(store, jobs) == 0
    assert store.trash.entries().entries == ()
    for trash_id in (page.trash_id, purged, deleted):
        with pytest.raises(TrashNotFound):
            ann.undo(trash_id)
    keyspace = store.context.keyspace
    Sweeper(store.context).sweep()  # takes what is gone from the due index
    audit = keyspace.root + b"\x02audit\x00"
    left = {key for key in everything(store) if key not in clean and not key.startswith(audit)}
    left -= {keyspace.due_wake}
    for key in left:
        queue_id = keyspace.queues.elements(key)[0]
        assert queue_id in (jobs.id, keep.id), "a key of a queue that is gone"
        elements = keyspace.queue(queue_id).elements(key)
        assert elements[0] in ("v", "w", "T", "h") or elements[1:2] in (("n",), ("b",)), elements
    assert keep.peek_min().value == b"kept"
    assert sweep_trash(store) == 0


def test_an_entry_that_is_deleting_is_not_undone_while_it_is_cleared(store: Store, ann: Actions, clock: Clock) -> None:
    jobs = ann.create_queue("jobs")
    fill(jobs, 600)
    trash_id = purge(store)
    clock.advance(WEEK + 1)
    assert store.trash.get(trash_id).count == 602, "it may be undone until it is swept"
    assert 0 < sweep_trash(store, limit=10) < 602
    with pytest.raises(TrashNotFound, match="time may have run out"):
        ann.undo(trash_id)
    assert store.trash.entries().entries == ()
    jobs.push(b"new", priority=1)
    sweep_trash(store)
    assert check_full_count(store, jobs) == 1


def test_what_was_restored_is_only_forgotten(store: Store, ann: Actions, clock: Clock) -> None:
    jobs = ann.create_queue("jobs")
    fill(jobs, 20)
    trash_id = purge(store)
    ann.undo(trash_id)
    other = ann.delete_queue("jobs", confirm="jobs")
    ann.undo(other)
    before = dump(store, jobs)
    clock.advance(WEEK + 1)
    sweep_trash(store)
    assert dump(store, jobs) == before
    assert store.context.kv.read(lambda tr: tr.get_key(*store.context.keyspace.trash.all).wait()) is None


def test_a_deleted_queue_comes_back_with_its_purges_and_its_merge(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    jobs.push(b"old", priority=1)
    first = purge(store)
    jobs.push(b"new", priority=2)
    ann.undo(first)
    deleted = ann.delete_queue("jobs", confirm="jobs")
    assert merge_all(store) == 0
    with pytest.raises(QueueNotFound):
        ann.purge("jobs", confirm="jobs")
    ann.undo(deleted)
    assert merge_all(store) == 1
    assert [item.value for item in jobs.items().items] == [b"old", b"new"]
    check_full_count(store, jobs)
