"""Consumers: which processes take from a queue, since when, how much, what they hold, and when one is gone."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from queues import AsyncPriorityQueue, Consumer, Consumers, Queue, Store, Transaction, open_store
from queues.tools.copy import copy_store
from queues.workers import Job, Pool, Worker
from tests import cluster
from tests.conftest import Clock
from tests.waiting import LONG, await_true, begin


@pytest.fixture
def other(store: Store, clock: Clock) -> Store:
    """The same store, opened by another process."""
    context = store.context
    return Store(context.kv, url=store.url, keyspace=context.keyspace, clock=clock)


def beat(*stores: Store) -> None:
    """Send the heartbeats that are due."""
    for each in stores:
        each.context.presence.beat()


def only(consumers: Consumers) -> Consumer:
    """Return the one live consumer."""
    (consumer,) = consumers.live
    return consumer


def test_a_consumer_tells_what_it_took_and_since_when(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"x", n) for n in range(40)])
    began = store.now()
    jobs.pop_min()
    beat(store)
    clock.advance(10)
    jobs.pop_many(9)
    jobs.lease_many(10, worker="press")
    took = store.now()
    clock.advance(10)
    beat(store)
    consumer = only(jobs.consumers())
    assert (consumer.pid, consumer.worker) == (os.getpid(), "press")
    assert (consumer.since, consumer.last_take, consumer.heard) == (began, took, store.now())
    assert (consumer.takes, consumer.rate, consumer.holds, consumer.waiting) == (20, 1.0, 10, 0)
    assert consumer.host
    assert consumer.program


def test_a_rate_is_that_of_the_last_minute(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"x", 1)] * 500)
    jobs.pop_many(400)
    for _ in range(13):
        beat(store)
        clock.advance(5)
        jobs.pop_min()
    beat(store)
    assert only(jobs.consumers()).rate == 0.2


def test_leases_are_held_until_they_are_settled_or_over(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"x", n) for n in range(5)])
    first, second, third, fourth, _ = jobs.lease_many(5, seconds=30)
    jobs.ack(first)
    jobs.release(second)
    jobs.extend(third, seconds=300)
    jobs.ack_many([fourth])
    beat(store)
    assert only(jobs.consumers()).holds == 2
    clock.advance(31)
    beat(store)
    assert only(jobs.consumers()).holds == 1


def test_a_process_that_works_on_a_lease_is_a_consumer(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", 1)
    assert jobs.lease(seconds=3_600)
    for _ in range(40):
        clock.advance(5)
        beat(store)
    assert only(jobs.consumers()).holds == 1


def test_each_process_has_a_record_of_its_own(store: Store, jobs: Queue, other: Store, clock: Clock) -> None:
    theirs = other.priority_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(5)])
    jobs.pop_min()
    clock.advance(1)
    theirs.pop_many(3)
    beat(store, other)
    assert [consumer.takes for consumer in jobs.consumers().live] == [1, 3]
    other.context.presence.stop()
    seen = jobs.consumers()
    assert [consumer.takes for consumer in seen.live] == [1]
    assert (seen.ended.takes, seen.ended.end) == (3, "closed")


def test_the_last_heartbeat_waits_for_no_busy_store(store: Store, jobs: Queue, other: Store) -> None:
    other.priority_queue("jobs").pop_min()
    beat(other)
    held, may_end = threading.Event(), threading.Event()

    def hold(tr: Transaction) -> None:
        held.set()
        assert may_end.wait(LONG)

    holding = begin(lambda: store.transact(hold))
    assert held.wait(LONG)
    other.context.presence.stop()
    may_end.set()
    holding.result()
    await_true(lambda: not jobs.consumers().live)


def test_a_program_that_ends_at_once_writes_nothing(jobs: Queue, other: Store) -> None:
    jobs.push(b"x", 1)
    other.priority_queue("jobs").pop_min()
    before = jobs.status().change
    other.context.presence.stop()
    assert not jobs.consumers().known
    assert jobs.status().change == before


def test_only_the_first_and_the_last_heartbeat_change_the_queue(jobs: Queue, other: Store, clock: Clock) -> None:
    other.priority_queue("jobs").pop_min()
    changes = [jobs.status().change]
    for _ in range(4):
        clock.advance(5)
        beat(other)
        changes.append(jobs.status().change)
    other.context.presence.stop()
    changes.append(jobs.status().change)
    assert [after - before for before, after in pairwise(changes)] == [1, 0, 0, 0, 1]


def test_a_process_that_takes_no_more_is_no_consumer(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"x", 1)] * 2)
    jobs.pop_min()
    beat(store)
    clock.advance(59)
    beat(store)
    assert jobs.consumers().live
    clock.advance(2)
    beat(store)
    seen = jobs.consumers()
    assert (seen.live, seen.ended and seen.ended.end) == ((), "idle")
    again = store.now()
    jobs.pop_min()
    beat(store)
    consumer = only(jobs.consumers())
    assert (consumer.since, consumer.takes) == (again, 1)


def test_a_process_that_asks_in_vain_is_a_consumer(store: Store, jobs: Queue, clock: Clock) -> None:
    for _ in range(4):
        clock.advance(50)
        assert jobs.pop_min() is None
        beat(store)
    consumer = only(jobs.consumers())
    assert (consumer.takes, consumer.last_take) == (0, None)


def test_nothing_is_told_of_pushes_looks_and_acts_of_people(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 4)
    jobs.peek_min()
    jobs.status()
    ana = store.actions("ana")
    ana.pop("jobs")
    assert ana.lease("jobs", seconds=60)
    before = jobs.status().change
    beat(store)
    assert not jobs.consumers().known
    assert jobs.status().change == before


def test_a_waiting_caller_is_a_consumer(store: Store, jobs: Queue, clock: Clock) -> None:
    waiting = begin(lambda: jobs.pop_min(wait=True))

    def told() -> bool:
        beat(store)
        return any(consumer.waiting for consumer in jobs.consumers().live)

    await_true(told)
    clock.advance(600)
    beat(store)
    assert only(jobs.consumers()).waiting == 1
    jobs.push(b"x", 1)
    assert waiting.result()
    beat(store)
    assert (only(jobs.consumers()).waiting, only(jobs.consumers()).takes) == (0, 1)


async def coroutine_takes(jobs: AsyncPriorityQueue) -> Consumers:
    lease = await jobs.lease()
    assert lease
    await jobs.ack(lease)
    assert await jobs.pop_min()
    assert await jobs.pop_max()
    return await jobs.consumers()


def test_coroutines_are_counted_too(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 3)
    asyncio.run(coroutine_takes(AsyncPriorityQueue(jobs)))
    beat(store)
    assert (only(jobs.consumers()).takes, only(jobs.consumers()).holds) == (3, 0)


def test_a_pool_is_a_consumer_while_it_runs(store: Store, clock: Clock) -> None:
    jobs, worker = store.create_queue("jobs"), Worker()

    @worker.handles("jobs")
    def work(job: Job) -> None:
        pass

    pool = Pool(store, worker, ["jobs"], threads=3, name="press 7")
    pool.start()

    def waits() -> bool:
        beat(store)
        return [consumer.waiting for consumer in jobs.consumers().live] == [3]

    try:
        await_true(waits)
        clock.advance(3_600)
        beat(store)
        assert only(jobs.consumers()).worker == "press 7"
    finally:
        pool.stop(10)
    clock.advance(61)
    beat(store)
    assert not jobs.consumers().live


def test_heartbeats_that_cease_are_a_consumer_that_is_lost(
    store: Store, jobs: Queue, other: Store, clock: Clock
) -> None:
    jobs.push(b"x", 1)
    other.priority_queue("jobs").pop_min()
    beat(other)
    last, change = store.now(), jobs.status().change
    clock.advance(19)
    assert store.sweep().consumers == 0
    assert jobs.consumers().live
    clock.advance(1)
    unswept = jobs.consumers()
    assert store.sweep().consumers == 1
    swept = jobs.consumers()
    assert swept == unswept
    assert (swept.live, swept.ended.end, swept.ended.heard) == ((), "lost", last)
    assert jobs.status().change > change
    assert store.sweep().consumers == 0


def test_a_consumer_that_only_waits_writes_less_often(store: Store, jobs: Queue, clock: Clock) -> None:
    heard = []
    with jobs.opened.consumption.waits():
        for _ in range(5):
            beat(store)
            heard.append(only(jobs.consumers()).heard)
            clock.advance(5)
        assert len(set(heard)) == 3
        jobs.push(b"x", 1)
        jobs.pop_min()
        clock.advance(1)
        beat(store)
        assert only(jobs.consumers()).takes == 1


def test_copies_have_no_consumers(tmp_path: Path, clock: Clock) -> None:
    source, target = (f"lmdb:{tmp_path / name}" for name in ("source", "target"))
    with open_store(source, clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.push(b"x", 1)
        jobs.pop_min()
        beat(store)
        copy_store(source, target)
        assert jobs.consumers().live
    with open_store(target, clock=clock) as copied:
        assert not copied.queue("jobs").consumers().known


def test_one_that_was_only_slow_is_there_again(store: Store, jobs: Queue, other: Store, clock: Clock) -> None:
    theirs = other.priority_queue("jobs")
    theirs.pop_min()
    beat(other)
    clock.advance(30)
    store.sweep()
    change = jobs.status().change
    beat(other)
    assert jobs.consumers().live
    assert jobs.status().change > change


@pytest.mark.parametrize("step", [-7_200.0, 7_200.0])
def test_a_step_of_the_clock_loses_no_consumer_for_long(store: Store, jobs: Queue, clock: Clock, step: float) -> None:
    jobs.pop_min()
    beat(store)
    clock.advance(step)
    jobs.pop_min()
    beat(store)
    assert only(jobs.consumers()).heard == store.now()
    clock.advance(21)
    assert not jobs.consumers().live


def test_an_end_in_the_future_is_not_the_last_one_for_long(store: Store, jobs: Queue, clock: Clock) -> None:
    """The clock was a month ahead for a moment."""
    now = clock.now
    clock.now += 30 * 86_400
    jobs.pop_min()
    beat(store)
    clock.advance(61)
    beat(store)
    assert jobs.consumers().ended
    clock.now = now
    assert jobs.consumers().ended is None
    jobs.pop_min()
    beat(store)
    clock.advance(61)
    beat(store)
    seen = jobs.consumers()
    assert (seen.live, seen.ended.heard) == ((), store.now())


def test_takes_in_a_transaction_of_the_caller_are_not_counted(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 9)

    def fails(tr: Transaction) -> None:
        jobs.pop_min(tr=tr)
        jobs.pop_many(2, tr=tr)
        jobs.lease(tr=tr)
        raise KeyError

    with pytest.raises(KeyError):
        store.transact(fails)
    assert jobs.depth() == 9
    beat(store)
    consumer = only(jobs.consumers())
    assert (consumer.takes, consumer.holds, consumer.last_take) == (0, 0, None)


def test_heartbeats_of_a_deleted_queue_leave_nothing_behind(
    store: Store, jobs: Queue, other: Store, clock: Clock
) -> None:
    jobs.push(b"x", 1)
    other.priority_queue("jobs").pop_min()
    beat(other)
    store.delete_queue("jobs")
    clock.advance(8 * 86_400)
    store.sweep()
    beat(other)
    clock.advance(61)
    beat(other)
    assert not store.doctor.examine().findings
    space = store.context.keyspace.queues.sub(jobs.id).all
    assert store.read(lambda tr: tr.get_range(*space, limit=9).wait()) == []


def test_a_damaged_heartbeat_hides_no_other(store: Store, jobs: Queue, other: Store) -> None:
    jobs.pop_min()
    beat(store)
    key = store.context.keyspace.consumers.key(jobs.id, b"damaged!")
    store.transact(lambda tr: tr.set(key, b"\x01\x00\x00\x02{}"))
    assert len(jobs.consumers().live) == 1
    assert store.sweep().consumers == 1
    assert store.read(lambda tr: tr.get(key).wait()) is None


def test_takes_without_heartbeats_make_the_number_unknown(store: Store, other: Store, clock: Clock) -> None:
    """As where a program of an older release takes."""
    other.context.presence.stop()  # however long this test takes, it sends no heartbeat
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 40)
    jobs.pop_min()
    beat(store)
    recorder = store.recorder(count=clock)
    told = []
    for second in range(0, 240, 10):
        clock.advance(10)
        beat(store)
        if second >= 120:
            other.priority_queue("jobs").pop_min()
        recorder.look()
        recorder.flush()
        health = jobs.status().health
        told.append(health.consumers)
    assert told == [1] * 5 + [0] * 8 + [None] * 11


PROGRAM = """
import sys
from queues import open_store
store = open_store(sys.argv[1])
jobs = store.queue("jobs")
jobs.pop_min()
store.context.presence.beat()
print("ready", flush=True)
sys.stdin.readline()
store.close()
print("closed", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(params=["embedded", "cluster"] if cluster.find().url else ["embedded"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where several processes can open a fresh store."""
    return cluster.fresh() if request.param == "cluster" else f"lmdb:{tmp_path / 'store'}"


def program(url: str) -> "subprocess.Popen[str]":
    """Start a program that takes an item and then waits for a line."""
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout.readline() == "ready\n"
    return started


def test_a_program_that_is_closed_or_killed(url: str) -> None:
    later = [0.0]
    with open_store(url, clock=lambda: time.time() + later[0]) as store:
        jobs = store.create_queue("jobs")
        jobs.push_many([(b"x", 1)] * 3)
        closing, killed = program(url), program(url)
        with closing, killed:
            assert {consumer.pid for consumer in jobs.consumers().live} == {closing.pid, killed.pid}
            closing.stdin.write("\n")
            closing.stdin.flush()
            assert closing.stdout.readline() == "closed\n"
            assert [consumer.pid for consumer in jobs.consumers().live] == [killed.pid]
            closing.stdin.write("\n")
            closing.stdin.flush()
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        later[0] = 25.0
        assert store.sweep().consumers == 1
        seen = jobs.consumers()
        assert (seen.live, seen.ended.pid, seen.ended.end) == ((), killed.pid, "lost")


SHOP = {
    "__main__.py": """
import multiprocessing, sys
from shop import taking
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=taking.take, args=(sys.argv[1],))
    child.start()
    child.join()
""",
    "taking.py": """
from queues import open_store
def take(url):
    with open_store(url) as store:
        jobs = store.queue("jobs")
        jobs.pop_min()
        store.context.presence.beat()
""",
}


def test_the_children_of_a_package_are_told_by_its_name(url: str, tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    for name, text in SHOP.items():
        (package / name).write_text(text)
    with open_store(url) as store:
        jobs = store.create_queue("jobs")
        jobs.push(b"x", priority=1)
        subprocess.run([sys.executable, "-m", "shop", url], cwd=tmp_path, check=True)
        ended = jobs.consumers().ended
        assert ended.program == "shop"


def in_child(work: Callable[[], None]) -> int:
    """Run it in a forked child, and return how that ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException:
        os._exit(1)


def test_a_forked_child_tells_nothing_of_its_parent(tmp_path: Path, clock: Clock) -> None:
    with open_store(f"lmdb:{tmp_path / 'store'}", clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.pop_min()
        beat(store)
        assert in_child(store.close) == 0
        assert only(jobs.consumers()).pid == os.getpid()
