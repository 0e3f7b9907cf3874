"""Every verb that takes a duration takes seconds and timedeltas alike."""

from datetime import timedelta

import pytest

from queues import Queue, Store
from queues.errors import BadTime
from queues.workers import Backoff, Worker
from tests.conftest import Clock

WRONG = [True, float("nan"), "5"]
NEGATIVE = [-1, -0.5, timedelta(seconds=-1)]


def test_delays_and_leases_are_seconds_or_timedeltas(store: Store, jobs: Queue, clock: Clock) -> None:
    mail = store.create_queue("mail", kind="fifo")
    for minute in (60, 60.0, timedelta(minutes=1)):
        due = clock.now + 60
        pushed = jobs.push(b"x", priority=1, delay=minute)
        others = [*jobs.push_many([(b"x", 1, minute)]), *jobs.push_many([(b"x", 1)], delay=minute)]
        others += [mail.enqueue(b"x", delay=minute), jobs.reschedule(pushed.id, delay=minute)]
        others += [store.actions("ops").push("jobs", b"x", priority=1, delay=minute)]
        assert {item.due_at.timestamp() for item in (pushed, *others)} == {due}
        jobs.push(b"x", priority=0)
        lease = jobs.lease(seconds=minute)
        assert lease.expires_at.timestamp() == due
        clock.advance(1)
        assert jobs.extend(lease, seconds=minute).expires_at.timestamp() == due + 1
        assert jobs.release(lease, delay=minute).due_at.timestamp() == due + 1


def test_waits_take_seconds_and_timedeltas(store: Store, jobs: Queue) -> None:
    snapshot = store.snapshot([jobs.id])
    for nothing in (0, timedelta(0)):
        assert jobs.pop_min(wait=nothing) is None
        assert not jobs.wait(nothing)
        assert not store.wait_for_change(snapshot, timeout=nothing)
        assert not store.wait_for_items([jobs.outlook()], timeout=nothing)


@pytest.mark.parametrize("past", NEGATIVE)
def test_a_delay_that_has_passed_is_none(jobs: Queue, past: float) -> None:
    assert jobs.push(b"x", priority=1, delay=past).state == "ready"
    assert jobs.push_many([(b"x", 1, past)])[0].state == "ready"


@pytest.mark.parametrize("wrong", [*WRONG, *NEGATIVE])
def test_a_wrong_duration_is_refused_by_every_verb(store: Store, jobs: Queue, wrong: float) -> None:
    item = jobs.push(b"x", priority=1, delay=5)
    jobs.push(b"x", priority=1)
    lease = jobs.lease()
    before = jobs.status()
    snapshot = store.snapshot([jobs.id])
    delays = (
        lambda: jobs.push(b"x", priority=1, delay=wrong),
        lambda: jobs.push_many([(b"x", 1, wrong)]),
        lambda: jobs.reschedule(item.id, delay=wrong),
        lambda: jobs.release(lease, delay=wrong),
    )
    for act in (
        *(() if wrong in NEGATIVE else delays),
        lambda: jobs.lease(seconds=wrong),
        lambda: jobs.extend(lease, seconds=wrong),
        lambda: store.wait_for_change(snapshot, timeout=wrong),
        lambda: store.wait_for_items([], timeout=wrong),
        lambda: store.actions("ops", keep=wrong),
        lambda: Worker().handles("jobs", seconds=wrong),
        lambda: Backoff(first=wrong),
        lambda: Backoff(most=wrong),
    ):
        with pytest.raises(BadTime):
            act()
    assert jobs.status() == before


def test_workers_take_seconds_and_timedeltas(clock: Clock) -> None:
    def run(job: object) -> None:
        """Do nothing."""

    worker = Worker()
    worker.handles("jobs", seconds=timedelta(minutes=1))(run)
    assert worker.handler("jobs").seconds == 60
    backoff = Backoff(first=timedelta(seconds=2), most=timedelta(seconds=5), jitter=0)
    assert [backoff.delay(n).total_seconds() for n in (1, 2, 3)] == [2, 4, 5]
