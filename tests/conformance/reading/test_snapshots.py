"""Snapshots: many queues at one read version, and no wake-up lost."""

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from queues import Queue, Store, Transaction
from queues.errors import TooLarge
from tests.conftest import Clock

LONG = 120.0  # seconds; reached only when something hangs


def test_a_status_shows_both_ends_the_mix_and_the_oldest(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs", bands=[0, 10])
    first = jobs.push(b"oldest", priority=5)
    clock.advance(60)
    low = jobs.push(b"x" * 300, priority=-4)
    high = jobs.push(b"max", priority=10)
    status = jobs.status()
    assert status.min.id == low.id
    assert (status.min.value, status.min.size) == (b"x" * 256, 300)
    assert replace(status.max, ready_at=high.ready_at) == high
    assert status.oldest == first.pushed_at
    assert [(band.label, band.depth) for band in status.bands] == [("< 0", 1), ("0 … < 10", 1), ("≥ 10", 1)]
    assert (status.arrived, status.left) == (3, 0)
    jobs.pop_min()
    status = jobs.status()
    assert [band.depth for band in status.bands] == [0, 1, 1]
    assert (status.arrived, status.left, status.totals.ready) == (3, 1, 2)
    assert status.next_due is None
    assert status.next_expiry is None


def test_a_renamed_queue_that_cannot_be_read_goes_by_its_new_name(store: Store, jobs: Queue) -> None:
    damaged = store.context.keyspace.queue(jobs.id)

    def damage(tr: Transaction) -> None:
        tr.set(damaged.expiries.at(b"\x00\x07"), b"")
        tr.add(damaged.change, 1)

    store.transact(damage)
    first = store.snapshot([jobs.id], tolerant=True)
    assert (first.queues[jobs.id].name, bool(first.queues[jobs.id].unreadable)) == ("jobs", True)
    assert store.snapshot([jobs.id], previous=first, tolerant=True).queues[jobs.id] is first.queues[jobs.id]
    store.rename_queue("jobs", "mail")
    assert store.snapshot([jobs.id], previous=first, tolerant=True).queues[jobs.id].name == "mail"


def test_unchanged_queues_keep_their_very_objects(store: Store, clock: Clock) -> None:
    a, b = store.create_queue("a"), store.create_queue("b")
    first = store.snapshot([a.id, b.id])
    a.push(b"x", priority=1)
    clock.advance(1)
    second = store.snapshot([a.id, b.id], previous=first)
    assert second.queues[b.id] is first.queues[b.id]
    assert second.queues[a.id].totals.ready == 1
    assert second.version > first.version
    assert second.at == datetime.fromtimestamp(clock.now, UTC)
    assert second.directory_change == first.directory_change


def test_gone_queues_are_absent_and_come_back(store: Store, jobs: Queue) -> None:
    first = store.snapshot([jobs.id, 12345])
    assert set(first.queues) == {jobs.id}
    trash_id = store.delete_queue("jobs")
    second = store.snapshot([jobs.id], previous=first)
    assert second.queues == {}
    assert second.directory_change > first.directory_change
    store.restore(trash_id)
    assert store.snapshot([jobs.id], previous=second).queues[jobs.id].name == "jobs"
    store.rename_queue("jobs", "tasks")
    assert store.snapshot([jobs.id], previous=second).queues[jobs.id].name == "tasks"


def test_a_change_before_the_wait_is_not_lost(store: Store, jobs: Queue) -> None:
    snapshot = store.snapshot([jobs.id])
    assert not store.wait_for_change(snapshot, timeout=0)
    jobs.push(b"x", priority=1)
    assert store.wait_for_change(snapshot, timeout=LONG)
    snapshot = store.snapshot([jobs.id])
    store.create_queue("another")
    assert store.wait_for_change(snapshot, timeout=LONG)
    snapshot = store.snapshot([])
    store.delete_queue("another")
    assert store.wait_for_change(snapshot, timeout=LONG)


def test_a_waiting_thread_is_woken_by_a_change_and_by_an_interrupt(store: Store, jobs: Queue) -> None:
    for wake in (lambda: jobs.push(b"x", priority=1), store.interrupt):
        snapshot = store.snapshot([jobs.id])
        woken: list[bool] = []
        waiter = threading.Thread(
            target=lambda seen=snapshot, out=woken: out.append(store.wait_for_change(seen, timeout=30))
        )
        waiter.start()
        while waiter.is_alive():
            wake()
            waiter.join(0.05)
        assert woken == [True]


def test_a_snapshot_has_a_limit(store: Store) -> None:
    with pytest.raises(TooLarge, match="500"):
        store.snapshot(list(range(501)))


def test_moving_between_queues_never_changes_the_sum(store: Store) -> None:
    a, b = store.create_queue("a"), store.create_queue("b")
    a.push_many([(b"x", n) for n in range(50)])
    seen_enough = threading.Event()

    def move() -> None:
        here, there = a, b
        while not seen_enough.is_set():

            def step(tr, here=here, there=there):
                item = here.pop_min(tr=tr)
                there.push(item.value, priority=item.priority, tr=tr)

            store.transact(step)
            here, there = there, here

    mover = threading.Thread(target=move)
    mover.start()
    snapshot, versions = None, set()
    try:
        while len(versions) < 100:
            snapshot = store.snapshot([a.id, b.id], previous=snapshot)
            assert sum(status.totals.ready for status in snapshot.queues.values()) == 50
            versions.add(snapshot.version)
    finally:
        seen_enough.set()
        mover.join()
