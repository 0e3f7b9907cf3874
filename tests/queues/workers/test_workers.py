"""Workers: handlers run on leased items, punctually, and no item is lost whatever handlers do.

Nothing here depends on how soon something happens: handlers wait for events that tests set, tests for what they see in
the store; LONG is only when a test gives up.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import pytest

from queues import Queue, Store, open_store
from queues.errors import BadEnd, NotForAttached, OutcomeUnknown, QueueNotFound, StoreError
from queues.kv.port import Transaction
from queues.operations.lease import Lease
from queues.workers import Backoff, Job, Pool, Stopped, Worker
from tests.conftest import Clock
from tests.waiting import LONG, await_true, begin


class Desk:
    """A handler that notes its jobs, and does as each job's value says."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.may_end = threading.Event()
        self.mutex = threading.Lock()

    def __call__(self, job: Job) -> None:
        with self.mutex:
            self.jobs.append(job)
        if job.item.value.startswith(b"fail"):
            raise ValueError("the reason")
        if job.item.value.startswith(b"wait"):
            assert self.may_end.wait(LONG)

    @property
    def values(self) -> list[bytes]:
        with self.mutex:
            return [job.item.value for job in self.jobs]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.may_end.set()


def worker_of(desk: Desk, *queues: str, **how: object) -> Worker:
    worker = Worker()
    for queue in queues or ("jobs",):
        worker.handles(queue, **how)(desk)
    return worker


@contextmanager
def working(store: Store, worker: Worker, *queues: str, threads: int = 1) -> Iterator[Pool]:
    """Let a pool work for the time of the block."""
    pool = Pool(store, worker, queues or ("jobs",), threads=threads)
    pool.start()
    try:
        yield pool
    finally:
        pool.stop(LONG)


def work_once(store: Store, worker: Worker, *queues: str, threads: int = 1) -> Pool:
    pool = Pool(store, worker, queues or ("jobs",), threads=threads, once=True)
    pool.start()
    pool.wait()
    return pool


# Handlers


def test_a_handler_that_returns_has_its_item_acknowledged(store: Store, jobs: Queue, desk: Desk) -> None:
    items = jobs.push_many([(b"a", 1), (b"b", 2)])
    pool = work_once(store, worker_of(desk))
    assert [(job.item.id, job.item.value, job.item.attempts) for job in desk.jobs] == [
        (items[0].id, b"a", 1),
        (items[1].id, b"b", 1),
    ]
    assert desk.jobs[0].queue == "jobs"
    totals = jobs.totals()
    assert (totals.ready, totals.leased, totals.dead, totals.traffic["ack"]) == (0, 0, 0, 2)
    assert (pool.stats().done, pool.stats().failed) == (2, 0)


def test_a_handler_takes_from_the_end_that_it_says(store: Store, jobs: Queue, desk: Desk) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(3)])
    work_once(store, worker_of(desk, end="max"))
    assert desk.values == [b"2", b"1", b"0"]


def test_fifo_queues_are_worked_on_in_order(store: Store, desk: Desk) -> None:
    store.create_queue("mail", kind="fifo").enqueue_many([b"a", b"b", b"c"])
    work_once(store, worker_of(desk, "mail"), "mail")
    assert desk.values == [b"a", b"b", b"c"]


def test_a_handler_that_raises_has_its_item_come_back_later(
    store: Store, jobs: Queue, desk: Desk, clock: Clock
) -> None:
    item = jobs.push(b"fail", priority=1)
    worker = worker_of(desk, backoff=Backoff(first=10, factor=3, jitter=0))
    rests = (10, 30, 90, 270)
    for attempt, rest in enumerate(rests, 1):
        pool = work_once(store, worker)
        (back,) = jobs.delayed().items
        assert (back.id, back.attempts, back.reason) == (item.id, attempt, "ValueError: the reason")
        assert back.due_at.timestamp() == clock.now + rest
        assert pool.stats().failed == 1
        clock.advance(rest)
    pool = work_once(store, worker)
    assert (pool.stats().failed, pool.stats().dead) == (1, 1)
    assert jobs.totals().dead == 1
    dead = jobs.find(item.id)
    assert dead.reason == "ValueError: the reason"
    assert [(one.number, one.error) for one in dead.attempt_log] == [(n, dead.reason) for n in (1, 2, 3, 4, 5)]
    assert dead.attempt_log[-1].traceback.endswith("ValueError: the reason\n")
    assert [job.item.attempts for job in desk.jobs] == [1, 2, 3, 4, 5]


def test_even_an_exit_in_a_handler_is_a_failure(store: Store, jobs: Queue) -> None:
    worker = Worker()

    @worker.handles("jobs")
    def leave(job: Job) -> None:
        raise SystemExit(3)

    jobs.push_many([(b"a", 1), (b"b", 1)])
    assert work_once(store, worker).stats().failed == 2
    assert jobs.depth("delayed") == 2


def _return() -> None:
    return


def _exit() -> None:
    sys.exit(3)


def _exit_beyond() -> None:
    sys.exit(2**40 + 3)


def _exit_with_words() -> None:
    sys.exit("out of coffee")


def _fail() -> None:
    raise ValueError("in the child")


@pytest.mark.parametrize(
    ("end", "code"), [(_return, 0), (_exit, 3), (_exit_beyond, 3), (_exit_with_words, 1), (_fail, 1)]
)
def test_a_process_that_a_handler_forks_ends_with_it(
    store: Store, jobs: Queue, end: Callable[[], None], code: int
) -> None:
    worker, codes = Worker(), list[int]()

    @worker.handles("jobs", seconds=0.3)
    def fork(job: Job) -> None:
        child = os.fork()
        if not child:
            end()
            return
        ended = (0, 0)

        def has_ended() -> bool:
            nonlocal ended
            ended = os.waitpid(child, os.WNOHANG)
            return ended[0] == child

        try:
            await_true(has_ended)
        finally:
            if not ended[0]:
                os.kill(child, signal.SIGKILL)
        codes.append(os.waitstatus_to_exitcode(ended[1]))

    jobs.push(b"a", priority=1)
    with working(store, worker) as pool:
        await_true(lambda: pool.stats().done == 1)
    assert (codes, jobs.totals().leased, jobs.depth()) == ([code], 0, 0)


def test_the_handler_of_the_name_goes_before_patterns_in_their_order(store: Store) -> None:
    worker, seen = Worker(), []
    for name in ("mail:*", "*:out", "mail:out", "*"):
        worker.handles(name)(lambda job, name=name: seen.append((job.queue, name)))
    for name in ("mail:out", "mail:in", "fax:out", "jobs"):
        store.create_queue(name).push(b"x", priority=1)
        work_once(store, worker, name)
    assert seen == [("mail:out", "mail:out"), ("mail:in", "mail:*"), ("fax:out", "*:out"), ("jobs", "*")]


def test_handlers_that_cannot_work_are_refused(store: Store, desk: Desk) -> None:
    worker = worker_of(desk)

    async def later(job: Job) -> None: ...

    def steps(job: Job) -> Iterator[None]:
        yield

    class Later:
        async def __call__(self, job: Job) -> None: ...

    with pytest.raises(ValueError, match="already"):
        worker.handles("jobs")(desk)
    for function in (later, partial(later), Later(), steps, partial(steps)):
        with pytest.raises(TypeError, match="coroutine|generator"):
            worker.handles("mail")(function)
    with pytest.raises(TypeError, match="function, not None"):
        worker.handles("mail")(None)
    for seconds in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="more than 0|has an end|number"):
            worker.handles("mail", seconds=seconds)
    with pytest.raises(BadEnd):
        worker.handles("mail", end="mid")
    with pytest.raises(TypeError, match="is a Backoff, not int"):
        worker.handles("mail", backoff=5)
    for threads in (0, -1, 1.5, "2", True):
        with pytest.raises(ValueError, match="threads"):
            Pool(store, worker, ["jobs"], threads=threads)
    with pytest.raises(ValueError, match="needs a queue"):
        Pool(store, worker, [])
    with pytest.raises(TypeError, match="list of queues"):
        Pool(store, worker, "jobs")
    store.create_queue("mail")
    with pytest.raises(LookupError, match="mail has no handler"):
        Pool(store, worker, ["mail"])
    with pytest.raises(QueueNotFound):
        Pool(store, worker, ["jbos"])
    store.attach("legacy", prefix=("legacy",))
    worker.handles("legacy")(desk)
    with pytest.raises(NotForAttached, match="lease"):
        Pool(store, worker, ["legacy"])


def test_an_item_is_not_acknowledged_where_its_handler_only_returned_what_would_run(store: Store) -> None:
    async def later(job: Job) -> None: ...

    jobs = store.create_queue("jobs")
    for made in (later, lambda job: (step for step in ())):
        worker = Worker()
        worker.handles("jobs", backoff=Backoff(first=0))(lambda job, made=made: made(job))
        jobs.push(b"x", priority=1)
        jobs.configure(max_attempts=1)
        assert work_once(store, worker, "jobs").stats().dead == 1
        (item,) = jobs.dead().items
        assert "nothing has run" in item.reason
        jobs.delete_dead(item.id)


def test_a_pool_is_started_once_and_waited_for_as_often_as_wanted(store: Store, desk: Desk) -> None:
    store.create_queue("jobs")
    pool = work_once(store, worker_of(desk))
    with pytest.raises(RuntimeError, match="started once"):
        pool.start()
    ended = begin(pool.wait)
    assert ended.result(LONG) is None


def test_backoff_grows_to_its_limit_less_a_random_part() -> None:
    backoff = Backoff(first=2, factor=3, most=100, jitter=0.5)
    assert [backoff.delay(n, dice=lambda: 0.0).total_seconds() for n in (1, 2, 3, 4, 5, 10_000)] == [
        2,
        6,
        18,
        54,
        100,
        100,
    ]
    assert backoff.delay(2, dice=lambda: 1.0) == timedelta(seconds=3)
    assert all(timedelta(seconds=27) <= backoff.delay(4) <= timedelta(seconds=54) for _ in range(100))
    for wrong in ({"first": -1}, {"factor": 0.5}, {"most": float("inf")}, {"jitter": 1.1}, {"first": float("nan")}):
        with pytest.raises(ValueError, match="back-off"):
            Backoff(**wrong)


# Threads


def test_no_item_is_leased_before_a_thread_can_begin_with_it(store: Store, jobs: Queue, desk: Desk) -> None:
    jobs.push_many([(b"wait %d" % n, n) for n in range(5)])
    with working(store, worker_of(desk), threads=2):
        await_true(lambda: len(desk.values) == 2)
        assert (jobs.depth("leased"), jobs.depth()) == (2, 3)
        desk.may_end.set()
        await_true(lambda: jobs.totals().traffic.get("ack") == 5)
    assert sorted(desk.values) == [b"wait %d" % n for n in range(5)]


def test_items_that_come_together_are_worked_on_together(store: Store, jobs: Queue) -> None:
    worker, meeting = Worker(), threading.Barrier(4)
    worker.handles("jobs")(lambda job: meeting.wait(LONG))
    with working(store, worker, threads=4) as pool:
        for _ in range(3):
            jobs.push_many([(b"x", 1)] * 4)
        await_true(lambda: pool.stats().done == 12)


def test_a_full_queue_keeps_no_other_waiting(store: Store, jobs: Queue, desk: Desk) -> None:
    mail = store.create_queue("mail")
    jobs.push_many([(b"job", 1)] * 50)
    mail.push(b"letter", priority=1)
    work_once(store, worker_of(desk, "jobs", "mail"), "jobs", "mail")
    assert desk.values.index(b"letter") <= 2
    assert len(desk.values) == 51


def test_pools_share_the_items_of_a_queue(store: Store, jobs: Queue, desk: Desk) -> None:
    with working(store, worker_of(desk), threads=3), working(store, worker_of(desk), threads=3):
        pushed = [item.id for n in range(20) for item in jobs.push_many([(b"x", n)] * 3)]
        await_true(lambda: jobs.totals().traffic.get("ack") == 60)
    assert sorted(job.item.id for job in desk.jobs) == sorted(pushed)


def test_a_pause_is_sat_out(store: Store, jobs: Queue, desk: Desk) -> None:
    jobs.pause(reason="r")
    jobs.push(b"a", priority=1)
    with working(store, worker_of(desk)):
        assert work_once(store, worker_of(desk)).stats().done == 0
        jobs.resume()
        await_true(lambda: desk.values == [b"a"])


def test_a_deleted_queue_does_not_stop_the_rest(store: Store, jobs: Queue, desk: Desk) -> None:
    mail = store.create_queue("mail")
    with working(store, worker_of(desk, "jobs", "mail"), "jobs", "mail"):
        jobs.push(b"a", priority=1)
        await_true(lambda: desk.values == [b"a"])
        store.delete_queue("jobs")
        mail.push(b"b", priority=1)
        await_true(lambda: desk.values == [b"a", b"b"])


def test_a_queue_that_fails_neither_loses_nor_holds_up_items_of_other_queues(
    store: Store, jobs: Queue, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail, lease = store.create_queue("mail"), Queue.lease_many
    failed = threading.Event()

    def fail(queue: Queue, n: int, **how: object) -> list[Lease]:
        if queue.name == "jobs":
            failed.set()
            raise OutcomeUnknown("It may have been applied.")
        return lease(queue, n, **how)

    monkeypatch.setattr(Queue, "lease_many", fail)
    monkeypatch.setattr("queues.workers.rests.AFTER_TROUBLE", 10 * LONG)
    with working(store, worker_of(desk, "jobs", "mail"), "jobs", "mail", threads=2) as pool:

        def push_both(tr: Transaction) -> None:
            jobs.push(b"never", priority=1, tr=tr)
            mail.push(b"a", priority=1, tr=tr)

        store.transact(push_both)
        await_true(lambda: pool.stats().done == 1)
        assert failed.wait(LONG)
        mail.push(b"b", priority=1)
        await_true(lambda: pool.stats().done == 2)
    assert [(job.item.value, job.item.attempts) for job in desk.jobs] == [(b"a", 1), (b"b", 1)]


def test_a_queue_that_is_made_anew_is_worked_on_as_the_one_before(
    store: Store, jobs: Queue, desk: Desk, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store.create_queue("jobs:later")
    with working(store, worker_of(desk, "jobs", "jobs:later"), "jobs", "jobs:later") as pool:
        jobs.push(b"a", priority=1)
        await_true(lambda: desk.values == [b"a"])
        store.delete_queue("jobs")
        await_true(lambda: "jobs: the queue was deleted" in caplog.text, meanwhile=store.interrupt)
        anew = store.create_queue("jobs", kind="fifo")
        anew.enqueue(b"b")
        anew.enqueue(b"later", delay=timedelta(minutes=1))
        await_true(lambda: desk.values == [b"a", b"b"])
        assert "jobs: work goes on with a new queue" in caplog.text
        clock.advance(60)
        await_true(lambda: desk.values == [b"a", b"b", b"later"], meanwhile=store.interrupt)
        await_true(lambda: pool.stats().done == 3)
    assert [job.queue for job in desk.jobs] == ["jobs"] * 3


def test_a_queue_that_is_restored_is_worked_on_again(
    store: Store, jobs: Queue, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    with working(store, worker_of(desk)):
        trash_id = store.delete_queue("jobs")
        await_true(lambda: "jobs: the queue was deleted" in caplog.text, meanwhile=store.interrupt)
        store.restore(trash_id)
        jobs.push(b"a", priority=1)
        await_true(lambda: desk.values == [b"a"])


def test_a_queue_that_was_put_aside_and_deleted_is_replaced_by_the_one_of_its_first_name(
    store: Store, jobs: Queue, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    with working(store, worker_of(desk)):
        store.rename_queue("jobs", "jobs:old")
        store.create_queue("jobs").push(b"a", priority=1)
        store.delete_queue("jobs:old")
        store.create_queue("jobs:old").push(b"of another program", priority=1)
        await_true(lambda: desk.values == [b"a"], meanwhile=store.interrupt)
        assert "jobs: work goes on with a new queue of this name" in caplog.text
    assert store.queue("jobs:old").depth() == 1


def test_a_renamed_queue_is_not_replaced_by_another_of_its_old_name(store: Store, jobs: Queue, desk: Desk) -> None:
    with working(store, worker_of(desk)):
        store.rename_queue("jobs", "jobs:old")
        store.create_queue("jobs").push(b"of another program", priority=1)
        jobs.push(b"a", priority=1)
        await_true(lambda: desk.values == [b"a"])
    assert store.queue("jobs").depth() == 1


@pytest.mark.parametrize("what", ["config", "delayed item"])
def test_a_queue_that_cannot_be_read_holds_up_no_other(
    store: Store, jobs: Queue, desk: Desk, clock: Clock, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    mail, record = store.create_queue("mail"), b"\x07newer" if what == "config" else b""
    mail.push(b"first", priority=1)
    with working(store, worker_of(desk, "jobs", "mail"), "jobs", "mail") as pool:
        await_true(lambda: desk.values == [b"first"])
        jobs.push(b"spoiled", priority=1, delay=timedelta(minutes=1))
        mail.push(b"later", priority=1, delay=timedelta(minutes=1))
        keyspace = store.context.keyspace

        def spoil(tr: Transaction) -> None:
            delayed = keyspace.queue(jobs.id).generation(1).delayed.all
            (pair,) = tr.get_range(*delayed, limit=2).wait()
            tr.set(keyspace.configs.key(jobs.id) if what == "config" else pair[0], record)

        store.transact(spoil)
        clock.advance(60)
        await_true(lambda: pool.stats().done == 2, meanwhile=store.interrupt)
        mail.push(b"last", priority=1)
        await_true(lambda: pool.stats().done == 3, meanwhile=store.interrupt)
        assert desk.values == [b"first", b"later", b"last"]
        if what == "config":
            await_true(lambda: "jobs: rests for 1 s" in caplog.text)
            return
        jobs.push(b"beside", priority=1)
        await_true(lambda: pool.stats().done == 4, meanwhile=store.interrupt)
        assert desk.values[-1] == b"beside"


def test_once_does_not_end_while_a_queue_that_failed_rests(
    store: Store, jobs: Queue, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, tries = Queue.lease_many, []

    def fail_first(queue: Queue, n: int, **how: object) -> list[Lease]:
        tries.append(queue.name)
        if tries == ["jobs"]:
            raise OutcomeUnknown("It may have been applied.")
        return lease(queue, n, **how)

    monkeypatch.setattr(Queue, "lease_many", fail_first)
    monkeypatch.setattr("queues.workers.rests.AFTER_TROUBLE", 0.01)
    store.create_queue("mail")
    jobs.push(b"a", priority=1)
    assert work_once(store, worker_of(desk, "jobs", "mail"), "jobs", "mail").stats().done == 1
    assert tries == ["jobs", "jobs"]


def test_work_ends_with_the_store(store: Store, jobs: Queue, desk: Desk) -> None:
    pool = Pool(store, worker_of(desk), ["jobs"], threads=3)
    pool.start()
    jobs.push(b"a", priority=1)
    await_true(lambda: pool.stats().done == 1)
    store.close()
    pool.wait()
    assert pool.stopping


# Delays


def test_a_job_due_in_an_hour_never_delays_one_due_in_a_minute(
    store: Store, jobs: Queue, desk: Desk, clock: Clock
) -> None:
    jobs.push(b"in an hour", priority=1, delay=timedelta(hours=1))
    with working(store, worker_of(desk)) as pool:
        jobs.push(b"in a minute", priority=2, delay=timedelta(minutes=1))
        jobs.push(b"now", priority=3)
        await_true(lambda: pool.stats().done == 1)
        clock.advance(59)
        store.interrupt()
        jobs.push(b"at once", priority=3)
        await_true(lambda: pool.stats().done == 2)
        assert desk.values == [b"now", b"at once"]  # never early
        clock.advance(1)
        await_true(lambda: pool.stats().done == 3, meanwhile=store.interrupt)  # threads sleep by the real clock
        clock.advance(3_540)
        await_true(lambda: pool.stats().done == 4, meanwhile=store.interrupt)
    assert desk.values == [b"now", b"at once", b"in a minute", b"in an hour"]


def test_the_dispatcher_sleeps_until_the_next_and_is_woken_by_an_earlier_one(desk: Desk) -> None:
    with open_store("memory:") as store:  # with the real clock, nothing interrupts
        jobs = store.create_queue("jobs")
        jobs.push(b"late", priority=1, delay=timedelta(seconds=LONG))
        with working(store, worker_of(desk)):
            item = jobs.push(b"soon", priority=1, delay=timedelta(milliseconds=50))
            await_true(lambda: desk.values == [b"soon"])
            assert time.time() >= item.due_at.timestamp()


def test_items_become_ready_while_every_thread_is_at_work(store: Store, jobs: Queue, desk: Desk, clock: Clock) -> None:
    jobs.push(b"wait", priority=1)
    jobs.push(b"later", priority=1, delay=timedelta(minutes=1))
    with working(store, worker_of(desk, seconds=1_000)):
        await_true(lambda: desk.values == [b"wait"])
        clock.advance(60)
        await_true(lambda: jobs.depth() == 1, meanwhile=store.interrupt)
        desk.may_end.set()
        await_true(lambda: desk.values == [b"wait", b"later"])


def test_leases_of_workers_that_died_come_back(store: Store, jobs: Queue, desk: Desk, clock: Clock) -> None:
    jobs.push(b"a", priority=1)
    jobs.lease(seconds=30, worker="dead")
    with working(store, worker_of(desk)):
        clock.advance(30)
        await_true(lambda: desk.values == [b"a"], meanwhile=store.interrupt)
    assert desk.jobs[0].item.attempts == 2


# Leases


def test_a_lease_is_extended_while_its_handler_runs(store: Store, jobs: Queue, desk: Desk) -> None:
    jobs.push(b"wait", priority=1)
    with working(store, worker_of(desk, seconds=0.2)) as pool:
        await_true(lambda: jobs.totals().traffic.get("extend", 0) >= 3)
        desk.may_end.set()
        await_true(lambda: pool.stats().done == 1)
    assert jobs.totals().traffic["lease"] == 1


def test_a_worker_that_lost_the_lease_does_not_take_the_item_from_its_next_holder(
    store: Store, jobs: Queue, desk: Desk, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    item = jobs.push(b"wait", priority=1)
    with working(store, worker_of(desk)) as pool:
        await_true(lambda: desk.values == [b"wait"])
        clock.advance(61)  # as after the sleep of a machine
        jobs.expire()
        theirs = jobs.lease(seconds=1_000)
        desk.may_end.set()
        await_true(lambda: "was not acknowledged" in caplog.text)
        assert pool.stats().done == 0
    assert jobs.find(item.id).state == "leased"
    jobs.ack(theirs)


def test_work_that_ends_after_its_lease_expired_is_done_unless_it_was_taken(
    store: Store, jobs: Queue, desk: Desk, clock: Clock
) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"wait", 1), (b"wait", 2)])
    pool = Pool(store, worker_of(desk), ["jobs"], threads=2)
    pool.start()
    await_true(lambda: len(desk.values) == 2)
    clock.advance(61)
    assert jobs.expire() == 2
    assert jobs.depth("dead") == 2
    desk.may_end.set()
    stats = pool.stop(LONG)
    assert (stats.done, stats.failed) == (2, 0)
    assert (jobs.depth(), jobs.depth("dead"), jobs.depth("leased")) == (0, 0, 0)


def test_an_unanswered_acknowledgement_that_was_not_applied_is_not_taken_for_one(
    store: Store,
    jobs: Queue,
    desk: Desk,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ack, tries = Queue.ack, []

    def fail_first(queue: Queue, lease: Lease) -> None:
        tries.append(lease)
        if len(tries) == 1:  # meanwhile the item goes to another worker
            clock.advance(61)
            jobs.expire()
            assert jobs.lease(seconds=1_000)
            raise OutcomeUnknown("It may have been applied.")
        ack(queue, lease)

    monkeypatch.setattr(Queue, "ack", fail_first)
    item = jobs.push(b"a", priority=1)
    assert work_once(store, worker_of(desk)).stats().done == 0
    assert len(tries) == 2
    assert f"item {item.id} was not acknowledged" in caplog.text
    assert jobs.find(item.id).state == "leased"


@pytest.mark.parametrize(("verb", "value", "stats"), [("ack", b"a", (1, 0)), ("release", b"fail", (0, 1))])
def test_what_was_applied_although_unanswered_counts(
    store: Store,
    jobs: Queue,
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    value: bytes,
    stats: tuple[int, int],
) -> None:
    settle, tries = getattr(Queue, verb), []

    def apply_unanswered(queue: Queue, lease: Lease, **how: object) -> object:
        tries.append(lease)
        settled = settle(queue, lease, **how)
        if len(tries) == 1:
            raise OutcomeUnknown("It may have been applied.")
        return settled

    monkeypatch.setattr(Queue, verb, apply_unanswered)
    jobs.push(value, priority=1)
    pool = work_once(store, worker_of(desk))
    assert (pool.stats().done, pool.stats().failed) == stats
    assert len(tries) == 2


def test_a_lease_whose_acknowledgement_was_given_up_is_held_no_longer(
    store: Store, jobs: Queue, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(queue: Queue, lease: Lease) -> None:
        raise StoreError("The disk failed.")

    def holds_nothing() -> bool:
        store.context.presence.beat()
        return [consumer.holds for consumer in jobs.consumers().live] == [0]

    monkeypatch.setattr(Queue, "ack", fail)
    jobs.push(b"a", priority=1)
    with working(store, worker_of(desk)):
        await_true(lambda: desk.values == [b"a"])
        await_true(holds_nothing)


# The end


def test_stopping_lets_handlers_finish(store: Store, jobs: Queue, desk: Desk) -> None:
    jobs.push_many([(b"wait", 1), (b"next", 2)])
    pool = Pool(store, worker_of(desk), ["jobs"], threads=1)
    pool.start()
    await_true(lambda: desk.values == [b"wait"])
    assert not desk.jobs[0].stopping()
    ender = threading.Thread(target=lambda: (await_true(desk.jobs[0].stopping), desk.may_end.set()))
    ender.start()
    stats = pool.stop(LONG)
    ender.join()
    assert (stats.done, stats.cut_off) == (1, 0)
    assert (jobs.depth(), jobs.depth("leased")) == (1, 0)


def test_stopping_gives_back_what_does_not_finish(
    store: Store, jobs: Queue, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    item = jobs.push(b"wait", priority=1)
    pool = Pool(store, worker_of(desk), ["jobs"], threads=1)
    pool.start()
    await_true(lambda: desk.values == [b"wait"])
    stats = pool.stop(0.02)
    assert (stats.done, stats.cut_off) == (0, 1)
    assert jobs.find(item.id).state == "ready"
    assert jobs.peek_min().id == item.id
    desk.may_end.set()
    pool.wait()
    assert pool.stats().done == 0  # what it says afterwards comes too late
    assert jobs.depth() == 1


def test_what_is_leased_while_the_pool_is_stopped_is_given_back_unbegun(
    store: Store, jobs: Queue, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, leased, may_return = Queue.lease_many, threading.Event(), threading.Event()

    def linger(queue: Queue, n: int, **how: object) -> list[Lease]:
        leases = lease(queue, n, **how)
        leased.set()
        assert may_return.wait(LONG)
        return leases

    monkeypatch.setattr(Queue, "lease_many", linger)
    item = jobs.push(b"a", priority=1)
    pool = Pool(store, worker_of(desk), ["jobs"], threads=2)
    pool.start()
    assert leased.wait(LONG)
    ender = threading.Thread(target=lambda: (await_true(lambda: pool.stopping), may_return.set()))
    ender.start()
    stats = pool.stop(0.0)
    ender.join()
    pool.wait()
    assert desk.values == []
    assert (stats.done, stats.failed, stats.cut_off) == (0, 0, 0)
    back = jobs.find(item.id)
    assert (back.state, back.attempts) == ("ready", 0)


def restart(store: Store, worker: Worker, begun: threading.Event, grace: float) -> Pool:
    """Let a pool begin with an item, and stop it."""
    begun.clear()
    pool = Pool(store, worker, ["jobs"], threads=1)
    pool.start()
    assert begun.wait(LONG)
    pool.stop(grace)
    return pool


def ending_at_a_stop(begun: threading.Event, error: type[Exception]) -> Worker:
    """Return a handler that works until the pool stops, and raises then."""
    worker = Worker()

    @worker.handles("jobs", backoff=Backoff(first=0, jitter=0))
    def work(job: Job) -> None:
        begun.set()
        await_true(job.stopping)
        raise error("half way")

    return worker


def test_five_restarts_of_a_handler_that_stops_cost_no_attempt(store: Store, jobs: Queue) -> None:
    items, begun = jobs.push_many([(b"long", 1), (b"next", 1)]), threading.Event()
    worker = ending_at_a_stop(begun, Stopped)
    for _ in range(5):
        stats = restart(store, worker, begun, LONG).stats()
        assert (stats.done, stats.failed, stats.stopped, stats.cut_off) == (0, 0, 1, 0)
        head = jobs.peek_min()
        assert (head.id, head.state, head.attempts) == (items[0].id, "ready", 0)
    assert "dead" not in jobs.totals().traffic


def test_any_other_error_while_the_pool_stops_is_a_failure(store: Store, jobs: Queue) -> None:
    item, begun = jobs.push(b"long", priority=1), threading.Event()
    stats = restart(store, ending_at_a_stop(begun, ValueError), begun, LONG).stats()
    assert (stats.failed, stats.stopped) == (1, 0)
    assert jobs.find(item.id).attempts == 1


def test_a_handler_that_says_stopped_while_the_pool_goes_on_has_failed(store: Store, jobs: Queue) -> None:
    item, worker = jobs.push(b"x", priority=1), Worker()

    @worker.handles("jobs", backoff=Backoff(first=60))
    def give_up(job: Job) -> None:
        raise Stopped

    stats = work_once(store, worker).stats()
    assert (stats.failed, stats.stopped) == (1, 0)
    assert (jobs.find(item.id).state, jobs.find(item.id).attempts) == ("delayed", 1)


def test_five_restarts_that_cut_a_handler_off_cost_no_attempt(store: Store, jobs: Queue) -> None:
    item, begun, may_end = jobs.push(b"long", priority=1), threading.Event(), threading.Event()
    worker = Worker()

    @worker.handles("jobs")
    def hang(job: Job) -> None:
        begun.set()
        assert may_end.wait(LONG)

    for _ in range(5):
        assert restart(store, worker, begun, 0.02).stats().cut_off == 1
        assert (jobs.peek_min().id, jobs.peek_min().attempts) == (item.id, 0)
    may_end.set()


def test_stopping_an_idle_pool_leaves_nothing_behind(store: Store, jobs: Queue, desk: Desk) -> None:
    before = set(threading.enumerate())
    pool = Pool(store, worker_of(desk), ["jobs"], threads=5)
    pool.start()
    assert pool.stop(LONG).done == 0
    mine = {thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("pqadmin")}
    assert not mine


def test_once_ends_when_nothing_is_ready_or_due(store: Store, jobs: Queue, desk: Desk, clock: Clock) -> None:
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    jobs.push_many([(b"due %d" % n, 5) for n in range(4)], delay=timedelta(minutes=1))
    jobs.push(b"ready", priority=9)
    clock.advance(60)
    assert work_once(store, worker_of(desk), threads=3).stats().done == 5
    assert jobs.depth("delayed") == 1


def test_once_waits_for_what_handlers_push(store: Store, jobs: Queue) -> None:
    worker, mail = Worker(), store.create_queue("mail")
    worker.handles("mail")(lambda job: None)

    @worker.handles("jobs")
    def divide(job: Job) -> None:
        n = int(job.item.value)
        if n:
            jobs.push_many([(b"%d" % (n - 1), 1)] * 2)
            mail.push(b"told", priority=1)

    jobs.push(b"4", priority=1)
    stats = work_once(store, worker, "jobs", "mail", threads=3).stats()
    assert stats.done == 31 + 15
    assert jobs.depth() == mail.depth() == 0


def test_log_lines_hold_no_values(store: Store, jobs: Queue, desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()

    @worker.handles("jobs")
    def fail(job: Job) -> None:
        raise ValueError(job.item.value)

    caplog.set_level(logging.DEBUG, "queues.workers")
    (item,) = jobs.push_many([(b"secret", 1)])
    work_once(store, worker)
    assert item.id in caplog.text
    assert "ValueError at" in caplog.text
    assert "secret" not in caplog.text
