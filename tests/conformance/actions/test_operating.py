"""Pause, rename, delete and restore."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from queues import Queue, Store
from queues.errors import (
    AlreadyRestored,
    QueueExists,
    QueueNotFound,
    QueuePaused,
    TrashNotFound,
)
from tests.conftest import Clock


def test_pause_stops_taking_and_nothing_else(store: Store) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail", kind="fifo")
    jobs.push(b"a", priority=1)
    mail.enqueue(b"a")
    for queue in (jobs, mail):
        queue.pause(reason="ledger closing", by="ann")
    for take in (jobs.pop_min, jobs.pop_max, lambda: jobs.pop_many(3), mail.dequeue):
        with pytest.raises(QueuePaused, match="ann: ledger closing"):
            take()
    jobs.push(b"b", priority=0)
    assert jobs.peek_min().value == b"b"
    assert jobs.depth() == 2
    assert jobs.pause_state.reason == "ledger closing"
    jobs.resume()
    assert jobs.pause_state is None
    assert jobs.pop_min().value == b"b"


def test_another_handle_sees_the_pause_at_once(store: Store) -> None:
    mine, theirs = store.create_queue("jobs"), store.queue("jobs")
    mine.pause(reason="r")
    with pytest.raises(QueuePaused):
        theirs.pop_min()
    theirs.resume()
    assert mine.pop_min() is None


def test_a_queue_that_is_opened_shows_what_is_stored(store: Store) -> None:
    """Also after a change by another handle, and one that was not committed."""
    store.create_queue("jobs")
    for taken_back in (False, True):
        opened = store.queue("jobs")
        with contextlib.suppress(ZeroDivisionError):
            store.transact(
                lambda tr, opened=opened, back=taken_back: (opened.pause(reason="r", tr=tr), 1 // (not back))
            )
        assert (store.queue("jobs").pause_state is None) == taken_back
        store.queue("jobs").resume()
        assert store.queue("jobs").pause_state is None
        opened.pop_min()
        assert store.queue("jobs").pause_state is None


def test_a_pause_ends_by_itself(jobs: Queue, clock: Clock) -> None:
    until = datetime.fromtimestamp(clock.now, UTC) + timedelta(minutes=5)
    jobs.pause(reason="r", until=until)
    assert jobs.status().pause.until == until
    clock.advance(299)
    with pytest.raises(QueuePaused):
        jobs.pop_min()
    clock.advance(1)
    assert jobs.pop_min() is None
    assert jobs.pause_state is None


def test_a_pause_that_ends_in_the_past_or_nowhere_is_refused(jobs: Queue, clock: Clock) -> None:
    with pytest.raises(TypeError, match="time zone"):
        jobs.pause(reason="r", until=datetime(2099, 1, 1))
    with pytest.raises(ValueError, match="passed"):
        jobs.pause(reason="r", until=datetime.fromtimestamp(clock.now, UTC))
    assert jobs.pop_min() is None


def test_the_handle_of_a_deleted_queue_says_so_though_its_name_is_used_again(store: Store) -> None:
    jobs = store.create_queue("jobs")
    store.delete_queue("jobs")
    again = store.create_queue("jobs")
    for verb in (jobs.pop_min, jobs.depth, jobs.status, lambda: jobs.push(b"x", priority=1), jobs.consumers):
        with pytest.raises(QueueNotFound, match="The queue that had the name “jobs” is gone"):
            verb()
    assert again.depth() == 0


def test_deleting_is_undone_whole(store: Store) -> None:
    jobs = store.create_queue("jobs", bands=[5])
    jobs.push_many([(b"%d" % n, n) for n in range(10)])
    items, before = jobs.items(), jobs.status()
    trash_id = store.delete_queue("jobs")
    with pytest.raises(QueueNotFound):
        store.queue("jobs")
    for verb in (jobs.pop_min, jobs.depth, jobs.peek_max, jobs.status, lambda: jobs.push(b"x", priority=1)):
        with pytest.raises(QueueNotFound, match="jobs"):
            verb()
    (entry,) = store.trash.entries().entries
    assert (entry.id, entry.what, entry.queue, entry.count) == (trash_id, "queue", "jobs", 10)
    assert entry.deadline - entry.at == timedelta(days=7)
    assert store.restore(trash_id).id == jobs.id
    assert jobs.items() == items
    assert jobs.status().totals == before.totals
    assert jobs.status().bands == before.bands
    assert store.trash.entries().entries == ()
    with pytest.raises(AlreadyRestored):
        store.restore(trash_id)


def test_a_name_taken_meanwhile_stops_the_restore(store: Store) -> None:
    store.create_queue("jobs").push(b"old", priority=1)
    trash_id = store.delete_queue("jobs")
    store.create_queue("jobs")
    with pytest.raises(QueueExists):
        store.restore(trash_id)
    store.rename_queue("jobs", "newer")
    store.restore(trash_id)
    assert store.queue("jobs").depth() == 1
    assert store.queue("newer").depth() == 0


def test_what_is_not_in_the_trash_is_not_restored(store: Store) -> None:
    for trash_id in ("", "zz", "0" * 40):
        with pytest.raises(TrashNotFound):
            store.restore(trash_id)
        with pytest.raises(TrashNotFound):
            store.trash.get(trash_id)


def test_something_else_under_the_root_shows_as_drift(store: Store, jobs: Queue) -> None:
    """Counters that lie are shown, never hidden: here an item is removed behind the queue's back."""
    jobs.push(b"x", priority=1)
    keys = jobs.opened.keys.generation(1)
    store.transact(lambda tr: [tr.clear(key) for key, _ in tr.get_range(*keys.ready.all, limit=9).wait()])
    assert not jobs.status().drift
    assert jobs.pop_min() is None
    assert jobs.status().drift
