"""A lease as a context manager: acknowledged on success, released on failure, extended while its block runs."""

import asyncio
import copy
import pickle
from contextlib import suppress
from dataclasses import asdict

import pytest

from queues import AsyncPriorityQueue, Lease, Queue, Store
from queues.errors import LeaseNotBound, StaleLease
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.waiting import LONG, await_true


@pytest.fixture
def jobs(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push(b"1", priority=1)
    return jobs


def test_a_block_that_succeeds_acknowledges(store: Store, jobs: Queue) -> None:
    with jobs.lease() as lease:
        assert lease.item.value == b"1"
        assert jobs.depth("leased") == 1
    assert jobs.totals().leased == jobs.depth() == 0
    check_full_count(store, jobs)


def test_a_block_that_fails_releases_with_the_error_as_reason(store: Store, jobs: Queue) -> None:
    for attempt in (1, 2, 3, 4, 5):
        with pytest.raises(ZeroDivisionError), jobs.lease() as lease:
            assert lease.item.attempts == attempt
            raise ZeroDivisionError("five by nothing")
    (dead,) = jobs.dead().items
    assert (dead.attempts, dead.reason) == (5, "ZeroDivisionError: five by nothing")
    check_full_count(store, jobs)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_block_that_is_stopped_counts_no_attempt(jobs: Queue, stop: type[BaseException]) -> None:
    with pytest.raises(stop), jobs.lease():
        raise stop
    assert jobs.lease().item.attempts == 1


def test_an_acknowledgement_that_comes_too_late_is_told(jobs: Queue, clock: Clock) -> None:
    with pytest.raises(StaleLease), jobs.lease(seconds=5):
        clock.advance(6)
        jobs.expire()
        jobs.lease()


def test_the_error_of_a_block_goes_on_when_the_item_cannot_be_released(jobs: Queue, clock: Clock) -> None:
    with pytest.raises(ZeroDivisionError) as caught, jobs.lease(seconds=5):
        clock.advance(6)
        jobs.expire()
        raise ZeroDivisionError
    (note,) = caught.value.__notes__
    assert note.startswith("The leased item was not released")
    assert jobs.depth() == 1


def test_what_was_acknowledged_in_a_transaction_of_the_block_is_done_once(store: Store, jobs: Queue) -> None:
    results = store.space("results")
    with jobs.lease() as lease:

        def finish(tr) -> None:
            jobs.ack(lease, must_hold=True, tr=tr)
            results.set(lease.item.id, b"done", tr=tr)

        store.transact(finish)
    assert (jobs.depth("leased"), results.get(lease.item.id)) == (0, b"done")


def test_a_kept_lease_is_extended_while_its_block_runs(jobs: Queue, clock: Clock) -> None:
    with jobs.lease(seconds=0.3, keep=True) as lease:
        for _ in range(3):
            clock.advance(0.25)
            now = clock.now
            await_true(lambda: jobs.leased().items[0].expires_at.timestamp() >= now + 0.29)  # noqa: B023
            assert jobs.expire() == 0
        assert jobs.leased().items[0].expires_at > lease.expires_at
    assert jobs.totals().traffic["ack"] == 1


def test_a_lease_that_is_not_kept_expires_within_its_block(jobs: Queue, clock: Clock) -> None:
    with jobs.lease(seconds=0.3):
        clock.advance(0.4)
        assert jobs.expire() == 1


def test_a_lease_stays_a_value(jobs: Queue) -> None:
    lease = jobs.lease()
    for twin in (pickle.loads(pickle.dumps(lease)), copy.copy(lease), copy.deepcopy(lease)):
        assert (twin, hash(twin), repr(twin)) == (lease, hash(lease), repr(lease))
        assert asdict(twin) == asdict(lease)
        with pytest.raises(LeaseNotBound), twin:
            pytest.fail("the block has begun")
    jobs.ack(pickle.loads(pickle.dumps(lease)))


def test_an_extended_lease_settles_itself_too(jobs: Queue) -> None:
    lease = jobs.lease(seconds=5)
    extended = jobs.extend(lease, seconds=50)
    assert (extended.token, extended.expires_at > lease.expires_at) == (lease.token, True)
    with extended:
        pass
    assert jobs.depth("leased") == 0
    with pytest.raises(LeaseNotBound), _extended_by_token(jobs):
        pytest.fail("a token knows no queue")


def _extended_by_token(jobs: Queue) -> Lease:
    jobs.push(b"2", priority=1)
    return jobs.extend(jobs.lease().token, seconds=5)


def run(work) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(LONG):
            await work()

    asyncio.run(in_time())


def test_coroutines_settle_leases_by_blocks(jobs: Queue, clock: Clock) -> None:
    queue = AsyncPriorityQueue(jobs)

    async def work() -> None:
        with pytest.raises(ZeroDivisionError):
            async with await queue.lease():
                raise ZeroDivisionError("async")
        async with await queue.lease(seconds=0.3, keep=True) as lease:
            assert lease.item.attempts == 2
            clock.advance(0.25)
            until = clock.now + 0.29
            while jobs.leased().items[0].expires_at.timestamp() < until:
                await asyncio.sleep(0.005)
        assert jobs.depth("leased") == 0

    run(work)


def test_a_canceled_block_releases_without_an_attempt(jobs: Queue) -> None:
    queue = AsyncPriorityQueue(jobs)

    async def work() -> None:
        begun = asyncio.Event()

        async def handle() -> None:
            async with await queue.lease(keep=True):
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(handle())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await queue.lease()).item.attempts == 1

    run(work)


@pytest.mark.parametrize("keep", [False, True])
def test_a_cancellation_at_any_moment_leaves_no_lease_behind(jobs: Queue, keep: bool) -> None:
    queue = AsyncPriorityQueue(jobs)

    async def work() -> None:
        for moment in range(30):
            for twice in (False, True):
                handled: list[Lease] = []

                async def handle(handled: list[Lease] = handled) -> None:
                    lease = await queue.lease(keep=keep)
                    async with lease:
                        handled.append(lease)

                task = asyncio.create_task(handle())
                for _ in range(moment):
                    await asyncio.sleep(0)
                task.cancel()
                if twice:
                    await asyncio.sleep(0)
                    task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                left = await queue.totals()
                assert (left.ready, left.leased) in ((0, 0), (1, 0)), (moment, twice)
                assert handled or left.ready, "what was not handled is there"
                if not left.ready:
                    await queue.push(b"1", priority=1)
                else:
                    assert (await queue.peek_min()).attempts == 0

    run(work)


def test_threads_use_with_and_coroutines_async_with(jobs: Queue) -> None:
    jobs.push(b"2", priority=2)
    queue = AsyncPriorityQueue(jobs)

    async def work() -> None:
        with pytest.raises(LeaseNotBound, match="Queue"), await queue.lease():
            pytest.fail("it would block the loop")
        with pytest.raises(LeaseNotBound, match="AsyncQueue"):
            async with jobs.lease():
                pytest.fail("it knows no loop")

    run(work)
    assert jobs.depth("leased") == 2
