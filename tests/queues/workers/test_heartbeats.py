"""Heartbeats: leases outlive handlers that hold the interpreter, and do not outlive the process of the pool."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from queues import Queue, Store, open_store
from queues.errors import QueueNotFound
from queues.keys.keyspace import Keyspace
from queues.model.store_address import StoreAddress
from queues.workers import Job, Pool, Worker
from queues.workers.heartbeat_process import find_queue
from tests.conftest import Clock
from tests.waiting import LONG, await_true

ROOT = Path(__file__).resolve().parents[3]
TOKENS = ("teams", 7)

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found by /proc")


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that are still there."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            found += map(int, (task / "children").read_text().split())
    return found


def is_there(pid: int) -> bool:
    """Say whether a process runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A pool in a process of its own, and the queue that it works on."""

    process: subprocess.Popen[str]
    jobs: Queue
    store: Store
    pipe: Path

    def push(self, how: str, *, n: int = 1) -> None:
        """Push items, as one."""
        self.jobs.push_many([(f"{how} {self.pipe}".encode(), 1)] * n)

    def begin(self, how: str) -> None:
        """Push an item and wait until the pool has begun with it."""
        self.push(how)
        while (line := self.process.stdout.readline()) != "begun\n":
            assert line == "forked\n"

    def await_extensions(self, number: int = 1) -> None:
        """Wait until leases were extended so many times more."""
        before = self.extensions
        await_true(lambda: self.extensions >= before + number)

    @property
    def extensions(self) -> int:
        return self.jobs.totals().traffic.get("extend", 0)

    def let_end(self) -> None:
        """Let the handler return."""
        self.pipe.write_bytes(b"")

    @property
    def heartbeat(self) -> int:
        """The process that extends the leases."""
        return min(children(self.process.pid))


@pytest.fixture
def at_work(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[AtWork]:
    """A pool whose leases have the seconds that the test says."""
    url, pipe = f"lmdb:{tmp_path / 'store'}", tmp_path / "pipe"
    os.mkfifo(pipe)
    with open_store(url, root=TOKENS) as store:
        jobs = store.create_queue("jobs")
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.queues.workers.heartbeat_worker",
                url,
                json.dumps(TOKENS),
                *map(str, request.param),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield AtWork(process=process, jobs=jobs, store=store, pipe=pipe)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def seconds(of_a_lease: float, *, threads: int = 1) -> pytest.MarkDecorator:
    """Give the pool leases of so many seconds, and so many threads."""
    return pytest.mark.parametrize("at_work", [(of_a_lease, threads)], indirect=True, ids=str)


@seconds(1.0)
def test_a_handler_that_holds_the_interpreter_keeps_its_lease(at_work: AtWork) -> None:
    at_work.begin("hold")
    at_work.await_extensions(3)
    (item,) = at_work.jobs.leased().items
    assert item.attempts == 1
    at_work.let_end()
    await_true(lambda: at_work.jobs.totals().traffic.get("ack") == 1)
    at_work.process.send_signal(signal.SIGTERM)
    out, err = at_work.process.communicate(timeout=LONG)
    assert (at_work.process.returncode, out, err) == (0, "1\n", "")
    assert at_work.jobs.totals().traffic["lease"] == 1


@seconds(1.0, threads=16)
def test_leases_are_kept_while_another_handler_holds_the_interpreter(at_work: AtWork) -> None:
    at_work.begin("wait")
    at_work.push("hold", n=15)
    at_work.await_extensions(64)
    assert (at_work.jobs.expire(), at_work.jobs.depth("leased")) == (0, 16)


@seconds(2.0)
def test_the_leases_of_a_killed_pool_are_not_extended_though_a_child_of_it_lives(at_work: AtWork) -> None:
    at_work.begin("fork")
    heartbeat, forked = children(at_work.process.pid)
    at_work.process.kill()
    at_work.process.wait(LONG)
    await_true(lambda: not is_there(heartbeat))
    await_true(lambda: at_work.jobs.expire() == 1)
    assert at_work.jobs.peek_min().attempts == 1
    assert is_there(forked)
    os.kill(forked, signal.SIGKILL)


@seconds(60.0)
def test_a_heartbeat_process_that_dies_is_started_again(at_work: AtWork) -> None:
    at_work.begin("wait")
    for _ in range(2):
        before = at_work.extensions
        os.kill(at_work.heartbeat, signal.SIGKILL)
        await_true(lambda before=before: at_work.extensions > before)  # at once, as it was not extended for a while
    at_work.let_end()
    await_true(lambda: at_work.jobs.totals().traffic.get("ack") == 1)
    at_work.process.send_signal(signal.SIGTERM)
    out, err = at_work.process.communicate(timeout=LONG)
    assert (at_work.process.returncode, out) == (0, "1\n")
    assert err.count("The heartbeat process ended (-9): it is started again") == 2


@seconds(4.0)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_leaves_the_leases_of_handlers_that_finish(
    at_work: AtWork, number: signal.Signals
) -> None:
    at_work.begin("wait")
    heartbeat = at_work.heartbeat
    os.kill(heartbeat, number)
    at_work.process.send_signal(signal.SIGTERM)
    at_work.await_extensions()
    assert at_work.heartbeat == heartbeat
    at_work.let_end()
    out, err = at_work.process.communicate(timeout=LONG)
    assert (at_work.process.returncode, out, err) == (0, "1\n", "")
    assert not is_there(heartbeat)


@seconds(60.0)
def test_a_lease_that_is_lost_is_told_in_the_log_of_the_pool(at_work: AtWork) -> None:
    at_work.begin("wait")
    (item,) = at_work.jobs.leased().items
    at_work.store.actions("operator").release("jobs", [item.id])
    at_work.jobs.pause(reason="it stays where it is")
    os.kill(at_work.heartbeat, signal.SIGKILL)  # the next one extends at once
    assert "it is started again" in at_work.process.stderr.readline()
    line = at_work.process.stderr.readline()
    assert line == f"jobs: the lease of item {item.id} is lost while it is worked on\n"


@seconds(4.0)
def test_a_renamed_queue_keeps_its_leases(at_work: AtWork) -> None:
    at_work.begin("wait")
    at_work.store.rename_queue("jobs", "tasks")
    at_work.await_extensions()


@pytest.mark.parametrize("rest", ["", '{"keep": "00', '{"drop": '])
def test_the_process_ends_with_its_input_though_the_pool_was_killed_within_a_line(tmp_path: Path, rest: str) -> None:
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        address = store.address
    process = subprocess.Popen(
        [sys.executable, "-m", "queues.workers.heartbeat_process"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            _, err = process.communicate(f"{address.encode()}\n{os.getpid()}\n{rest}", timeout=LONG)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")


def test_a_queue_that_is_renamed_while_it_is_looked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store("memory:") as store:
        jobs = store.create_queue("jobs")
        store.rename_queue("jobs", "tasks")

        def directory() -> Mapping[str, int]:
            monkeypatch.undo()
            names = store.directory()
            store.rename_queue("tasks", "more")
            store.create_queue("tasks")
            return names

        monkeypatch.setattr(store, "directory", directory)
        assert find_queue(store, jobs.id, "jobs").id == jobs.id


def test_a_queue_that_is_not_found_is_told_of_by_what_has_its_name() -> None:
    with open_store("memory:") as store:
        jobs = store.create_queue("jobs")
        store.delete_queue("jobs")
        with pytest.raises(QueueNotFound, match="No queue is named “jobs”"):
            find_queue(store, jobs.id, "jobs")
        store.create_queue("jobs")
        with pytest.raises(QueueNotFound, match="Another queue has the name “jobs” now"):
            find_queue(store, jobs.id, "jobs")


def test_a_pool_that_ends_leaves_no_process_behind(tmp_path: Path) -> None:
    before, worker, seen = set(children(os.getpid())), Worker(), []
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        store.create_queue("jobs").push(b"x", priority=1)

        @worker.handles("jobs")
        def note(job: Job) -> None:
            seen.extend(set(children(os.getpid())) - before)

        pool = Pool(store, worker, ["jobs"], threads=1, once=True)
        pool.start()
        pool.wait()
        assert pool.stats().done == 1
    assert len(seen) == 1
    assert set(children(os.getpid())) <= before


def work_until_extended(tmp_path: Path) -> None:
    """Let a handler work until the lease of its item was extended twice."""
    worker = Worker()
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        jobs = store.create_queue("jobs")
        jobs.push(b"x", priority=1)

        @worker.handles("jobs", seconds=0.3)
        def stay(job: Job) -> None:
            await_true(lambda: jobs.totals().traffic.get("extend", 0) >= 2)

        pool = Pool(store, worker, ["jobs"], threads=1, once=True)
        pool.start()
        pool.wait()
        assert pool.stats().done == 1


@pytest.mark.parametrize("program", ["no python", "false"])
def test_where_no_process_can_be_started_a_thread_extends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, program: str
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which(program) or str(tmp_path / program))
    work_until_extended(tmp_path)
    assert "extended by a thread" in caplog.text


def test_a_program_without_an_interpreter_extends_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", None)  # as in a program that embeds Python
    work_until_extended(tmp_path)
    assert "extended by a thread" in caplog.text


def test_a_frozen_program_is_not_started_again_for_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started, program = tmp_path / "started", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{started}'\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    work_until_extended(tmp_path)
    assert "extended by a thread" in caplog.text
    assert not started.exists()


@pytest.mark.parametrize("engine", ["memory", "lmdb"])
def test_a_lease_that_cannot_be_read_keeps_no_other_from_being_extended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, engine: str
) -> None:
    worker, begun = Worker(), threading.Semaphore(0)
    with open_store("memory:" if engine == "memory" else f"lmdb:{tmp_path / 'store'}") as store:
        jobs = store.create_queue("jobs")
        jobs.configure(max_attempts=1)
        spoiled, _ = (jobs.push(value, priority=1) for value in (b"spoiled", b"healthy"))
        lease = Keyspace(("pq",)).queue(jobs.id).leases.key(bytes.fromhex(spoiled.id))

        @worker.handles("jobs", seconds=0.9)
        def stay(job: Job) -> None:
            if job.item.value == b"spoiled":
                begun.acquire()
                return
            store.transact(lambda tr: tr.set(lease, b"\x01"))
            before = jobs.totals().traffic.get("extend", 0)
            try:
                await_true(lambda: jobs.totals().traffic.get("extend", 0) >= before + 3)
            finally:
                store.transact(lambda tr: tr.clear(lease))
                begun.release()

        pool = Pool(store, worker, ["jobs"], threads=2, once=True)
        pool.start()
        pool.wait()
        assert pool.stats().done >= 1
    assert "was not extended" in caplog.text
    assert "is started again" not in caplog.text


@pytest.mark.parametrize("noise", ["hello", "5"])
def test_what_else_the_process_writes_ends_no_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, noise: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"print({noise!r}, flush=True)\n")
    monkeypatch.syspath_prepend(tmp_path)
    work_until_extended(tmp_path)
    assert "extended by a thread" not in caplog.text
    assert f"The heartbeat process wrote: {noise}\n" in caplog.text


def test_an_address_is_the_same_after_a_change_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("lmdb:store", root=("a", 5, b"\x00"), max_bytes=10_000_000) as store:
        address = store.address
    assert address.url == f"lmdb:{tmp_path / 'store'}"
    assert StoreAddress.decode(address.encode()) == address
    assert (address.root, address.max_bytes) == (("a", 5, b"\x00"), 10_000_000)


def test_a_store_that_no_other_process_can_open_has_no_address(tmp_path: Path, clock: Clock) -> None:
    with open_store("memory:") as store:
        assert store.address is None
    with open_store(f"lmdb:{tmp_path / 'store'}", clock=clock) as store:
        assert store.address is None, "the other process would have another clock"
