"""`Job.complete`: what a handler writes and the acknowledgement of its item, as one transaction."""

import re
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from queues import Queue, Store, Transaction
from queues.errors import StaleLease
from queues.workers import Job, Pool, Worker
from tests.conftest import Clock

LONG = 120.0
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "workers.md"


def work_once(store: Store, worker: Worker) -> Pool:
    pool = Pool(store, worker, ["jobs"], threads=1, once=True)
    pool.start()
    pool.wait()
    return pool


def push_next(job: Job) -> None:
    """Complete a job by pushing the next one an hour later."""

    def finish(tr: Transaction) -> None:
        following = b"%d" % (int(job.item.value) + 1)
        job.store.queue(job.queue, tr=tr).push(following, priority=0, delay=timedelta(hours=1), tr=tr)

    job.complete(finish)


def values(jobs: Queue) -> list[bytes]:
    """Return what is in a queue, in whatever state."""
    pages = (jobs.items(), jobs.delayed(), jobs.leased(), jobs.dead())
    return [item.value for page in pages for item in page.items]


def test_a_result_and_the_acknowledgement_are_one_transaction(store: Store, jobs: Queue) -> None:
    done, worker, seen = store.create_queue("done"), Worker(), []

    @worker.handles("jobs")
    def handle(job: Job) -> None:
        assert job.lease.item == job.item
        assert job.store is store
        seen.append(job.complete(lambda tr: done.push(job.item.value, priority=1, tr=tr)))

    jobs.push_many([(b"a", 1), (b"b", 1)])
    stats = work_once(store, worker).stats()
    assert (stats.done, stats.failed) == (2, 0)
    assert [item.value for item in seen] == [b"a", b"b"]
    assert list(done.items().items) == seen
    totals = jobs.totals()
    assert (totals.ready, totals.leased, totals.traffic["ack"]) == (0, 0, 2)


def test_what_fails_in_it_leaves_nothing_and_the_item_comes_back(store: Store, jobs: Queue) -> None:
    done, worker = store.create_queue("done"), Worker()

    @worker.handles("jobs")
    def handle(job: Job) -> None:
        def fail(tr: Transaction) -> None:
            done.push(b"half", priority=1, tr=tr)
            raise ValueError("no")

        job.complete(fail)

    item = jobs.push(b"a", priority=1)
    stats = work_once(store, worker).stats()
    assert (stats.done, stats.failed) == (0, 1)
    assert done.depth() == 0
    assert (jobs.find(item.id).state, jobs.find(item.id).reason) == ("delayed", "ValueError: no")


def test_it_may_be_tried_again_after_an_error_and_not_after_it_was_done(store: Store, jobs: Queue) -> None:
    worker, errors = Worker(), []

    @worker.handles("jobs")
    def handle(job: Job) -> None:
        def fail(tr: Transaction) -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            job.complete(fail)
        assert job.complete(lambda tr: 5) == 5
        with pytest.raises(RuntimeError, match="completed already") as again:
            job.complete(lambda tr: 6)
        errors.append(again.value)

    jobs.push(b"a", priority=1)
    stats = work_once(store, worker).stats()
    assert (stats.done, stats.failed, len(errors)) == (1, 0, 1)


def test_what_a_handler_raises_after_it_changes_nothing(
    store: Store, jobs: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker()

    @worker.handles("jobs")
    def handle(job: Job) -> None:
        job.complete(lambda tr: None)
        raise ValueError("too late")

    jobs.push(b"a", priority=1)
    stats = work_once(store, worker).stats()
    assert (stats.done, stats.failed) == (1, 0)
    assert values(jobs) == []
    assert "failed after it was completed" in caplog.text


def suspended(store: Store, jobs: Queue, told: list[BaseException]) -> tuple[Pool, threading.Event]:
    """Return a pool whose handler waits before it completes, and what lets it go on."""
    worker, begun, may_go_on = Worker(), threading.Event(), threading.Event()

    @worker.handles("jobs", seconds=60)
    def handle(job: Job) -> None:
        begun.set()
        assert may_go_on.wait(LONG)
        try:
            push_next(job)
        except BaseException as error:
            told.append(error)
            raise

    pool = Pool(store, worker, ["jobs"], threads=1)
    pool.start()
    assert begun.wait(LONG)
    return pool, may_go_on


def test_of_two_workers_that_held_it_one_completes_it(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"1", priority=0)
    told: list[BaseException] = []
    pool, may_go_on = suspended(store, jobs, told)
    clock.advance(61)
    jobs.expire()
    worker = Worker()
    worker.handles("jobs")(push_next)
    assert work_once(store, worker).stats().done == 1
    assert values(jobs) == [b"2"]
    may_go_on.set()
    stats = pool.stop(LONG)
    assert [type(error) for error in told] == [StaleLease]
    assert (stats.done, stats.failed) == (0, 0)
    assert values(jobs) == [b"2"], "the schedule has not forked"


def test_a_lease_that_expired_still_completes_while_the_item_was_not_taken(
    store: Store, jobs: Queue, clock: Clock
) -> None:
    jobs.configure(max_attempts=1)
    jobs.push(b"1", priority=0)
    told: list[BaseException] = []
    pool, may_go_on = suspended(store, jobs, told)
    clock.advance(61)
    jobs.expire()
    assert jobs.depth("dead") == 1
    may_go_on.set()
    assert (pool.stop(LONG).done, told) == (1, [])
    assert values(jobs) == [b"2"]


def test_what_was_cut_off_does_not_complete(store: Store, jobs: Queue) -> None:
    jobs.push(b"1", priority=0)
    told: list[BaseException] = []
    pool, may_go_on = suspended(store, jobs, told)
    assert pool.stop(0.02).cut_off == 1
    may_go_on.set()
    pool.wait()
    assert [type(error) for error in told] == [StaleLease]
    assert len(values(jobs)) == 1


def test_the_documented_example_runs(store: Store, clock: Clock) -> None:
    (example,) = re.findall(r"```python\n(# shop/reports\.py.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    shop: dict[str, Worker] = {}
    exec(example, shop)  # the document is ours
    reports, outbox = store.create_queue("reports"), store.create_queue("outbox")
    reports.push(b"sales", priority=0)
    for hour in range(3):
        pool = Pool(store, shop["worker"], ["reports"], threads=1, once=True)
        pool.start()
        pool.wait()
        assert outbox.depth() == hour + 1
        assert values(reports) == [b"sales"]
        clock.advance(3600)
    assert outbox.peek_min().value == b"the report of sales"
