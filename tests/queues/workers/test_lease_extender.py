"""Extension of leases by a thread: by elapsed time, through a sleep of the machine, and for leases of any length."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from queues import AsyncPriorityQueue, Queue
from queues.operations.lease_block import AsyncBinding, LeaseKeeper, QueueBinding
from queues.workers.lease_extender import HeldLease, LeaseExtender
from tests.conftest import Clock
from tests.waiting import LONG, await_true

#: Seconds of a lease, of which a machine sleeps some.
LEASE, SLEEP = 3_000.0, 2_000.0
#: More seconds than a lock can wait.
AGES = 2 * threading.TIMEOUT_MAX


@pytest.fixture
def elapsed() -> Clock:
    """Elapsed time of a machine: it goes on while no thread of the machine runs."""
    return Clock(0.0)


@pytest.fixture
def extender(elapsed: Clock) -> Iterator[LeaseExtender]:
    extender = LeaseExtender(lost=lambda token: None, clock=elapsed)
    thread = threading.Thread(target=extender.run, daemon=True)
    thread.start()
    yield extender
    extender.stop()
    thread.join(LONG)


def extensions(jobs: Queue) -> int:
    return jobs.totals().traffic.get("extend", 0)


def held(jobs: Queue, seconds: float) -> HeldLease:
    """Lease an item, for as long as it takes."""
    jobs.push(b"x", priority=1)
    return HeldLease(queue=lambda: jobs, name="jobs", token=jobs.lease(seconds=LEASE).token, seconds=seconds)


def test_a_lease_is_extended_soon_after_the_machine_slept(extender: LeaseExtender, jobs: Queue, elapsed: Clock) -> None:
    extender.keep(held(jobs, LEASE))
    elapsed.advance(SLEEP)
    await_true(lambda: extensions(jobs) == 1)
    elapsed.advance(SLEEP)
    await_true(lambda: extensions(jobs) == 2)


def test_a_lease_of_ages_keeps_no_other_from_being_extended(
    extender: LeaseExtender, jobs: Queue, elapsed: Clock
) -> None:
    extender.keep(held(jobs, AGES))
    extender.keep(held(jobs, LEASE))
    elapsed.advance(SLEEP)
    await_true(lambda: extensions(jobs) == 1)


@pytest.mark.parametrize("seconds", [LEASE, AGES])
def test_a_keeper_extends_its_lease_by_elapsed_time_and_ends(elapsed: Clock, seconds: float) -> None:
    extended = threading.Semaphore(0)
    keeper = LeaseKeeper(extended.release, seconds, clock=elapsed)
    keeping = threading.Thread(target=keeper.run, daemon=True)
    keeping.start()
    for _ in range(2):
        await_true(lambda: extended.acquire(blocking=False), meanwhile=lambda: elapsed.advance(seconds / 10))
    keeper.stop()
    keeping.join(LONG)
    assert not keeping.is_alive()


def test_the_block_of_a_lease_extends_it_soon_after_the_machine_slept(jobs: Queue, elapsed: Clock) -> None:
    jobs.push(b"x", priority=1)
    lease = jobs.lease(seconds=LEASE)
    binding = QueueBinding(jobs, seconds=LEASE, keep=True, clock=elapsed)
    with binding.block(lease):
        await_true(lambda: extensions(jobs) >= 1, meanwhile=lambda: elapsed.advance(SLEEP))
    assert jobs.totals().traffic["ack"] == 1


def test_the_block_of_a_coroutine_extends_its_lease_soon_after_the_machine_slept(jobs: Queue, elapsed: Clock) -> None:
    jobs.push(b"x", priority=1)
    lease = jobs.lease(seconds=LEASE)
    binding = AsyncBinding(AsyncPriorityQueue(jobs), seconds=LEASE, keep=True, clock=elapsed)

    async def work() -> None:
        async with binding.async_block(lease):
            await asyncio.to_thread(await_true, lambda: extensions(jobs) >= 1, meanwhile=lambda: elapsed.advance(SLEEP))

    asyncio.run(work())
    assert jobs.totals().traffic["ack"] == 1
