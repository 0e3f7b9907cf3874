"""The wake and change keys: every change wakes, and in time all waiters that may get an item."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from queues import Queue, Store
from queues.items.counters import total
from tests.conftest import Clock

HOUR = timedelta(hours=1)


@pytest.fixture
def jobs(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(12)])
    return jobs


def told(store: Store, jobs: Queue, verb: Callable[[], object]) -> tuple[int, bool]:
    """Return how often viewers were told of a change, and whether waiters were told of anything."""
    keys = store.context.keyspace.queue(jobs.id)

    def look() -> tuple[int, int]:
        return store.read(lambda tr: (total(tr.get(keys.change).wait()), total(tr.get(keys.wake).wait())))

    before = look()
    verb()
    after = look()
    return after[0] - before[0], after[1] > before[1]


def test_waiters_are_told_of_what_they_may_take_or_wake_up_for(store: Store, jobs: Queue, clock: Clock) -> None:
    def tells(verb: Callable[[], object]) -> bool:
        changes, wakes = told(store, jobs, verb)
        assert changes == 1, "each transaction tells viewers once"
        return wakes

    a, b, c, d, e, f = jobs.lease_many(6, seconds=3600)
    soon, late = jobs.push_many([(b"soon", 1), (b"late", 1)], delay=HOUR)
    assert tells(lambda: jobs.push(b"x", priority=1, delay=timedelta(seconds=10)))
    assert tells(lambda: jobs.push_many([(b"x", 1), (b"x", 1, HOUR)]))
    assert not tells(lambda: jobs.push(b"x", priority=1, delay=HOUR)), "no wait is so long"
    assert not tells(lambda: jobs.lease(seconds=3600))
    assert tells(lambda: jobs.lease(seconds=10))
    assert not tells(lambda: jobs.ack(a))
    assert not tells(lambda: jobs.extend(b, seconds=3600))
    assert tells(lambda: jobs.extend(b, seconds=10))
    assert tells(lambda: jobs.release(c))
    assert tells(lambda: jobs.release(d, delay=timedelta(seconds=10)))
    assert not tells(lambda: jobs.release(e, delay=HOUR))
    assert not tells(lambda: jobs.reschedule(late.id, delay=2 * HOUR))
    assert tells(lambda: jobs.reschedule(late.id, delay=timedelta(seconds=10)))
    assert tells(lambda: jobs.promote_now(soon.id))
    clock.advance(10)
    assert tells(jobs.promote)
    assert tells(jobs.expire)
    assert tells(lambda: jobs.configure(max_attempts=1))
    assert not tells(lambda: jobs.release(f)), "a dead item is not ready"
    assert tells(lambda: jobs.retry_dead(f.item.id))
    jobs.release(jobs.lease())
    assert not tells(lambda: jobs.delete_dead(jobs.dead().items[0].id))


def test_what_changes_nothing_wakes_no_caller(store: Store, jobs: Queue) -> None:
    lease = jobs.lease()
    jobs.ack(lease)
    jobs.push(b"x", priority=1, delay=HOUR)
    for verb in (
        lambda: jobs.ack(lease),
        lambda: jobs.ack_many([lease]),
        jobs.promote,
        jobs.expire,
        lambda: jobs.promote_now("0" * 40),
        lambda: jobs.retry_dead("0" * 40),
        lambda: jobs.delete_dead("0" * 40),
        lambda: jobs.configure(max_attempts=5),
        jobs.delayed,
        jobs.leased,
        jobs.dead,
        jobs.status,
    ):
        assert told(store, jobs, verb) == (0, False)
