"""Staging: one process executes pops for all; its conflicts, and requests of dead processes."""

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from queues import Queue, Store, open_store
from queues.background.unclaimed_staging import KEPT_MS, UNCLAIMED_BY
from queues.errors import Conflict, QueueNotFound, QueuePaused, StoreUnavailable
from queues.items.counters import CounterDelta
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import KeyValueStore, Transaction
from queues.operations.lease import lease_request
from queues.operations.open_queue import OpenQueue
from queues.operations.pop import PopRequest, TakeRequest, with_times
from queues.operations.pop import take as take_all
from queues.serving import staging, staging_records
from queues.serving.background import BackgroundThreads
from queues.serving.batch import Execution
from queues.serving.leadership import Holding
from queues.serving.staging import Staging
from tests import cluster
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.step_by_step import CONCURRENT, begin
from tests.sweeps import sweep_unclaimed
from tests.waiting import LONG, await_true


@pytest.fixture(params=CONCURRENT)
def processes(request: pytest.FixtureRequest, clock: Clock) -> Iterator[tuple[Store, Store]]:
    """Two stores on the same keys, as two processes have them open."""
    url = cluster.fresh() if request.param == "cluster" else f"memory:{secrets.token_hex(8)}"
    with open_store(url, clock=clock) as first, open_store(url, clock=clock) as second:
        yield first, second


@pytest.fixture
def jobs(processes: tuple[Store, Store]) -> tuple[Queue, Queue]:
    """The same queue in both, with ten items."""
    first, second = processes
    jobs = first.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(10)])
    return jobs, second.queue("jobs")


def part_of(queue: Queue) -> Staging:
    found = queue.opened.batch(PopRequest)
    assert isinstance(found, Staging)
    return found


def take_for_all(queue: Queue) -> None:
    """Let this process execute pops for all, as after conflicts of one batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "CONFLICTS", 0)
        if queue.kind == "fifo":
            pushed, taken = queue.enqueue(b"conflict"), queue.dequeue()
        else:
            pushed, taken = queue.push(b"conflict", priority=-1_000), queue.pop_min()
    assert taken.id == pushed.id


def hold(queue: Queue) -> None:
    """Say that a process executes pops for all that does not, as if it died."""
    keys, context = queue.opened.keys, queue.opened.context
    record = Holding(holder="dead", expires_ms=context.clock.now_ms() + 1_000).encode()

    def write(tr: Transaction) -> None:
        tr.set(keys.staging, record)
        CounterDelta(keys, wake=False).apply(tr)

    context.kv.transact(write)


def ask(queue: Queue, take: TakeRequest, request: bytes = b"r" * 16) -> tuple[bytes, int]:
    """Write down what a process wants, and go no further: as if it died there."""
    ms = queue.opened.context.clock.now_ms()
    record, _ = staging_records.encode_takes([take])
    queue.opened.context.kv.transact(
        lambda tr: staging_records.ask(tr, queue.opened.keys, ms=ms, request=request, record=record)
    )
    return request, ms


def take(queue: Queue, n: int = 1) -> PopRequest:
    return PopRequest(queue.id, n, "min", queue.opened.context.clock.now_ms())


def keys_of_staging(queue: Queue) -> list[bytes]:
    keys = queue.opened.keys
    return queue.opened.context.kv.read(
        lambda tr: [key for key, _ in tr.get_range(keys.results.all[0], keys.requests.all[1], limit=100).wait()]
    )


def test_one_process_takes_for_the_other(jobs: tuple[Queue, Queue], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = jobs
    take_for_all(first)
    asked, write = set(), staging_records.ask

    def noting(tr: Transaction, keys: QueueKeys, **how: Any) -> None:
        asked.add(how["request"])
        write(tr, keys, **how)

    monkeypatch.setattr(staging_records, "ask", noting)
    assert second.pop_min().value == b"0"
    assert first.pop_min().value == b"1"
    assert second.pop_max().value == b"9"
    assert [item.value for item in second.pop_many(3)] == [b"2", b"3", b"4"]
    lease = second.lease(seconds=30, worker="w")
    assert (lease.item.value, lease.item.worker, lease.item.attempts) == (b"5", "w", 1)
    assert second.depth("leased") == 1
    second.ack(lease)
    assert [item.value for item in second.pop_many(10)] == [b"6", b"7", b"8"]
    assert second.pop_min() is None
    assert len(asked) == 6
    assert keys_of_staging(first) == [first.opened.keys.staging], "results are cleared as they are taken"
    assert second.totals().traffic["pop"] == 10


def test_it_gives_an_item_as_it_is(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    first.release(first.lease())
    there = first.peek_min()
    take_for_all(first)
    assert second.pop_min() == there
    assert there.attempts == 1


def test_large_values_come_in_parts(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    values = [bytes([n]) * 90_000 for n in range(4)]
    second.push_many([(value, -1) for value in values])
    take_for_all(first)
    assert [item.value for item in second.pop_many(4)] == values
    assert keys_of_staging(first) == [first.opened.keys.staging]


def test_both_kinds_of_queues_are_staged(processes: tuple[Store, Store]) -> None:
    first, second = processes
    line = first.create_queue("line", kind="fifo")
    take_for_all(line)
    line.enqueue_many([b"a", b"b"])
    there = second.queue("line")
    assert [there.dequeue().value, there.dequeue().value, there.dequeue()] == [b"a", b"b", None]


def test_values_of_a_codec_are_staged_as_bytes(processes: tuple[Store, Store]) -> None:
    first, second = processes
    mails = first.create_queue("mails", codec="json")
    mails.push_many([({"to": n}, n) for n in range(3)])
    there = mails.peek_min()
    take_for_all(mails)
    asking = second.queue("mails")
    assert asking.pop_min() == there
    assert asking.lease().item.value == {"to": 1}
    assert mails.pop_min().value == {"to": 2}


def test_what_is_late_is_made_ready_first(jobs: tuple[Queue, Queue], clock: Clock) -> None:
    from datetime import timedelta

    first, second = jobs
    first.push(b"late", priority=-5, delay=timedelta(seconds=10))
    clock.advance(60)
    take_for_all(first)
    assert second.pop_min().value == b"late"


def test_two_processes_that_keep_conflicting_begin_and_end_it(jobs: tuple[Queue, Queue], monkeypatch) -> None:
    """Every item once, and when the load is over each takes for itself again."""
    monkeypatch.setattr(staging, "CONFLICTS", 1)
    monkeypatch.setattr(staging, "LAPSE", 0.2)
    first, second = jobs
    total = 1_500
    first.push_many([(b"%d" % n, n) for n in range(10, 1_000)])
    first.push_many([(b"%d" % n, n) for n in range(1_000, total)])
    engaged = threading.Event()

    def drain(queue: Queue) -> list[bytes]:
        taken = []
        while item := queue.pop_min():
            taken.append(item.value)
            if any(thread.name == "pq-staging" for thread in threading.enumerate()):
                engaged.set()
        return taken

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(drain, queue) for queue in jobs * 4]
        taken = [value for future in futures for value in future.result(LONG)]
    assert sorted(taken, key=int) == [b"%d" % n for n in range(total)]
    assert engaged.is_set(), "they never conflicted"
    await_true(lambda: not keys_of_staging(first))
    first.push(b"x", priority=1)
    assert second.pop_min().value == b"x"


# Safeguards


def fulfil_by_hand(store: Store, queue: Queue) -> object:
    """Begin a transaction that serves whatever was asked for, and do all but commit it."""
    tr = begin(store)
    for request in staging_records.read_requests(tr.snapshot, queue.opened.keys, TakeRequest):
        got = part_of(queue).execute(tr, request.takes)
        staging_records.answer(tr, queue.opened.keys, request, got)
    return tr


def test_a_request_given_up_is_not_served(processes: tuple[Store, Store], jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    request, ms = ask(second, take(second))
    tr = fulfil_by_hand(processes[0], first)
    processes[1].transact(lambda tr: tr.clear(second.opened.keys.requests.key(ms, request)))
    tr.refused()
    assert first.depth() == 10
    assert keys_of_staging(first) == []


def test_serving_conflicts_with_a_pop_of_the_same_item(
    processes: tuple[Store, Store], jobs: tuple[Queue, Queue]
) -> None:
    first, second = jobs
    ask(second, take(second))
    tr = fulfil_by_hand(processes[0], first)
    second.push(b"elsewhere", priority=-1)
    assert [item.value for item in second.pop_many(2)] == [b"elsewhere", b"0"]
    tr.refused()


def test_serving_never_conflicts_with_a_push_or_another_request(
    processes: tuple[Store, Store], jobs: tuple[Queue, Queue]
) -> None:
    first, second = jobs
    ask(second, take(second))
    tr = fulfil_by_hand(processes[0], first)
    second.push(b"smaller", priority=-1)
    ask(second, take(second), b"s" * 16)
    tr.commit()
    assert first.depth() == 10


def test_one_of_two_fulfillers_serves_a_request(processes: tuple[Store, Store], jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    ask(second, take(second))
    one, other = fulfil_by_hand(processes[0], first), fulfil_by_hand(processes[1], second)
    one.commit()
    other.refused()
    assert first.depth() == 9


# Deaths


def test_a_dead_fulfiller_holds_nothing_up(jobs: tuple[Queue, Queue]) -> None:
    """Its record is there, but it serves nothing: requests are given up soon, and executed in place."""
    first, second = jobs
    hold(first)
    assert [second.pop_min().value for _ in range(3)] == [b"0", b"1", b"2"]
    assert keys_of_staging(first) == [first.opened.keys.staging]


def test_unclaimed_popped_items_go_to_the_trash(
    processes: tuple[Store, Store], jobs: tuple[Queue, Queue], clock: Clock
) -> None:
    store, (first, second) = processes[0], jobs
    there = first.items(limit=2).items
    ask(second, take(second, n=2))  # and dies
    take_for_all(first)
    await_true(lambda: first.depth() == 8)
    part_of(first).stop()
    assert sweep_unclaimed(store) == 0, "its process may still be alive"
    clock.advance(KEPT_MS / 1000 + 1)
    assert sweep_unclaimed(store) == 2
    entries = store.trash.entries().entries
    assert {entry.item.id for entry in entries if entry.item} == {item.id for item in there}
    assert {(entry.act, entry.by) for entry in entries} == {("pop", UNCLAIMED_BY)}
    assert keys_of_staging(first) == []
    for entry in entries:
        store.restore(entry.id)
    assert first.items(limit=2).items == there
    assert check_full_count(store, first) == 10
    assert sweep_unclaimed(store) == 0


def test_unclaimed_leased_items_come_back(
    processes: tuple[Store, Store], jobs: tuple[Queue, Queue], clock: Clock
) -> None:
    store, (first, second) = processes[0], jobs
    ask(second, lease_request(second.opened, 1, seconds=30, end="min", worker="w", tr=None))  # and dies
    take_for_all(first)
    await_true(lambda: first.depth() == 9)
    part_of(first).stop()
    clock.advance(KEPT_MS / 1000 + 1)
    assert sweep_unclaimed(store) == 0
    assert keys_of_staging(first) == []
    first.expire()
    assert first.peek_min().value == b"0"
    assert check_full_count(store, first) == 10


def test_requests_and_records_of_the_dead_are_forgotten(
    processes: tuple[Store, Store], jobs: tuple[Queue, Queue], clock: Clock
) -> None:
    first, second = jobs
    ask(second, take(second))
    hold(first)
    clock.advance(KEPT_MS / 1000 + 1)
    assert sweep_unclaimed(processes[0]) == 0
    assert keys_of_staging(first) == []
    assert first.depth() == 10


def test_a_closed_store_lets_other_processes_take(processes: tuple[Store, Store], jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    take_for_all(first)
    processes[0].close()
    assert keys_of_staging(second) == []
    assert second.pop_min().value == b"0"


# Status


def test_screens_and_the_doctor_tell(processes: tuple[Store, Store], jobs: tuple[Queue, Queue], clock: Clock) -> None:
    store, (first, second) = processes[1], jobs
    snapshot = store.snapshot([first.id])
    assert not snapshot.queues[first.id].staging
    take_for_all(first)
    snapshot = store.snapshot([first.id], previous=snapshot)
    assert snapshot.queues[first.id].staging
    assert any("is staging" in note for note in store.doctor.examine().notes)
    part_of(first).stop()
    assert not store.snapshot([first.id], previous=snapshot).queues[first.id].staging
    ask(second, take(second, n=3))
    fulfil_by_hand(processes[0], first).commit()
    hold(first)
    assert [finding for finding in store.doctor.examine().findings if finding.kind != "slot"] == []
    clock.advance(KEPT_MS / 1000 + 1)
    examination = store.doctor.examine()
    assert [finding.kind for finding in examination.findings if finding.kind != "slot"] == ["unclaimed"]
    assert not any("is staging" in note for note in examination.notes)
    examination = store.doctor.repair()
    assert [finding for finding in examination.findings if finding.kind != "slot"] == []
    assert "jobs: 3 items popped for processes that died can be put back from the trash now." in examination.mended
    assert keys_of_staging(first) == []


def test_the_sweep_brings_it_away(processes: tuple[Store, Store], jobs: tuple[Queue, Queue], clock: Clock) -> None:
    first, second = jobs
    ask(second, take(second))
    fulfil_by_hand(processes[0], first).commit()
    clock.advance(KEPT_MS / 1000 + 1)
    processes[1].sweep()
    assert keys_of_staging(first) == []
    assert len(processes[1].trash.entries().entries) == 1


# Refusals


def test_a_pause_holds_for_requests_of_other_processes(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    take_for_all(first)
    first.pause(reason="the disk is full")
    with pytest.raises(QueuePaused, match="the disk is full"):
        second.pop_min()
    first.resume()
    assert second.pop_min().value == b"0"


def test_requests_on_a_deleted_queue_raise(processes: tuple[Store, Store], jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    take_for_all(first)
    processes[0].delete_queue("jobs")
    with pytest.raises(QueueNotFound):
        second.pop_min()


class Still(BackgroundThreads):
    """Time that passes only in sleep, and work that is done at once, in the caller's thread."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def start(self, work: Callable[[], None], name: str) -> None:
        work()

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> float:
        return self.seconds


class Refusing:
    """A store that serves no request."""

    def __init__(self, kv: KeyValueStore, error: Exception) -> None:
        self.transact = kv.transact
        self._error = error

    def serve(self, server: object, request: object) -> None:
        raise self._error


def failing_part(queue: Queue, error: Exception) -> Staging:
    """A part in the staging whose rounds fail."""

    opened = OpenQueue(replace(queue.opened.context, background_threads=Still()), queue.config)
    opened.context = replace(opened.context, kv=Refusing(opened.context.kv, error))
    execution = Execution(run=take_all, contended=True, batch=Staging, prepare=with_times)
    return Staging(opened, execution, kinds=TakeRequest, idle=PopRequest(queue.id, 0, "min"))


def execute(queue: Queue, part: Staging) -> bytes:
    """Execute a pop that conflicts, which tries to execute pops for all several times; return the value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "CONFLICTS", 0)
        ((item,),) = part.conduct(queue.opened.context.kv.transact, [take(queue)])
    value: bytes = item.value
    return value


@pytest.mark.parametrize("error", [StoreUnavailable("The disk is away."), Conflict("Other processes were faster.")])
def test_a_fulfiller_that_fails_is_logged_once_with_the_name_of_its_queue(
    jobs: tuple[Queue, Queue], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    part = failing_part(jobs[0], error)
    with caplog.at_level(logging.WARNING):
        assert execute(jobs[0], part) == b"0", "the batch is executed all the same"
    lines = [record.getMessage() for record in caplog.records if record.name == "queues.serving.staging"]
    assert len(lines) == 1, "each kind once a minute"
    assert "jobs" in lines[0]
    assert str(error) in lines[0]


@pytest.mark.parametrize("error", [QueuePaused("It is paused."), QueueNotFound("jobs")])
def test_a_queue_that_is_paused_or_gone_ends_it_without_a_word(
    jobs: tuple[Queue, Queue], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    part = failing_part(jobs[0], error)
    with caplog.at_level(logging.WARNING):
        assert execute(jobs[0], part) == b"0"
    assert not [record for record in caplog.records if record.name == "queues.serving.staging"]


def test_leases_with_large_logs_are_taken_for_another_process(processes: tuple[Store, Store]) -> None:
    jobs = processes[0].create_queue("jobs")
    theirs = processes[1].queue("jobs")
    jobs.push_many([(b"v" * 3_500, 1)] * 1_000)
    for lease in jobs.lease_many(1_000):
        jobs.release(lease, reason="ValueError: no", traceback="T" * 2_500)
    take_for_all(jobs)
    assert 100 < len(theirs.lease_many(1_000)) < 1_000
