"""Several processes on one store: fair turns, wake-ups, and marks of the dead."""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.embedded.fairness import WriterFairness
from queues.kv.port import KeyValueStore
from tests.programs import run_to_end
from tests.waiting import LONG, await_true

ROOT = Path(__file__).parents[3]


@contextmanager
def program(name: str, *arguments: str, under: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """Run one of `tests.queues.kv.programs`, ready to be told to begin; maybe under another program."""
    process = subprocess.Popen(
        [*under, sys.executable, "-m", "tests.queues.kv.programs", name, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def kv(url: str) -> Iterator[KeyValueStore]:
    opened = open_kv(url)
    yield opened
    opened.close()


def version(kv: KeyValueStore) -> int:
    return kv.read(lambda tr: tr.get_read_version())


@pytest.mark.parametrize(("threads", "keys"), [("1", "1"), ("16", "1"), ("16", "100")])
def test_of_two_saturating_processes_the_one_that_waits_commits_next(
    kv: KeyValueStore, url: str, threads: str, keys: str
) -> None:
    with program("saturate", url, threads, keys) as one, program("saturate", url, threads, keys) as two:
        both = one, two
        assert [line(process) for process in both] == ["ready"] * 2
        for process in both:
            tell(process)

        def times_another_waited(process: subprocess.Popen[str]) -> int:
            return int(kv.read(lambda tr: tr.get(b"%d-0" % process.pid).wait()) or 0)

        await_true(lambda: min(map(times_another_waited, both)) >= 150)
        for process in both:
            process.stdin.close()
        assert [line(process) for process in both] == ["1", "1"], "commits ahead of a process that waited already"


@pytest.mark.parametrize("writes", [False, True])
def test_a_change_in_another_process_wakes(kv: KeyValueStore, url: str, *, writes: bool) -> None:
    """Long before its time is up; how soon is measured by `benchmarks/wake_up.py`.

    Where this process writes all the time, too.
    """
    delays, over = [], threading.Event()

    def write() -> None:
        while writes and not over.is_set():
            kv.transact(lambda tr: tr.set(b"own", b""))

    with program("push_on_demand", url) as other, ThreadPoolExecutor(1) as pool:
        assert line(other) == "ready"
        writing = pool.submit(write)
        try:
            for _ in range(20):
                known = kv.read(lambda tr: tr.get(b"watched").wait())
                tell(other)
                assert kv.watch({b"watched": known}, timeout=60)
                woken = time.monotonic()
                delays.append(woken - float(line(other)))
        finally:
            over.set()
        writing.result(LONG)
    assert statistics.median(delays) < 2, delays


def test_a_change_in_another_process_wakes_where_an_older_file_came_in_place(kv: KeyValueStore, url: str) -> None:
    """The numbers of its commits are those that this process gave to its own ones in the file before."""
    folder = Path(url.partition(":")[2])
    older = open_kv(f"lmdb:{folder}-older")
    older.transact(lambda tr: tr.set(b"watched", b""))
    older.close()
    for n in range(40):
        kv.transact(lambda tr, n=n: tr.set(b"own", b"%d" % n))
    Path(f"{folder}-older", "data.mdb").rename(folder / "data.mdb")
    assert kv.read(lambda tr: tr.get(b"watched").wait()) == b""
    with program("push_on_demand", url) as other:
        assert line(other) == "ready"
        assert not kv.watch({b"watched": b""}, timeout=0.05)
        for _ in range(3):
            known = kv.read(lambda tr: tr.get(b"watched").wait())
            tell(other)
            began = time.monotonic()
            assert kv.watch({b"watched": known}, timeout=30)
            assert time.monotonic() - began < 20
            line(other)


def test_a_foreign_change_of_another_key_ends_no_watch(kv: KeyValueStore, url: str) -> None:
    with program("push_on_demand", url) as other:
        assert line(other) == "ready"
        tell(other)
        line(other)
        assert not kv.watch({b"unrelated": None}, timeout=0.05)


def test_a_watch_that_got_no_thread_leaves_the_next_one_its_own(
    kv: KeyValueStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, refused = threading.Thread.start, threading.Event()

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("pq-poller") and not refused.is_set():
            refused.set()
            raise RuntimeError("can't start new thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with program("push_on_demand", url) as other:
        assert line(other) == "ready"
        with pytest.raises(RuntimeError):
            kv.watch({b"watched": None}, timeout=LONG)
        tell(other)
        assert kv.watch({b"watched": None}, timeout=LONG)


def test_the_poller_ends_when_no_thread_watches(kv: KeyValueStore) -> None:
    others = set(threading.enumerate())

    def poller() -> threading.Thread | None:
        new = set(threading.enumerate()) - others
        return next((thread for thread in new if thread.name.startswith("pq-poller")), None)

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(kv.watch, {b"a": None}, timeout=LONG)
        while (thread := poller()) is None:
            pass
        kv.transact(lambda tr: tr.set(b"a", b"1"))
        assert watching.result(LONG)
    thread.join(LONG)
    assert not thread.is_alive()
    kv.watch({b"a": b"1"}, timeout=0)
    assert poller() is not None


def test_a_thread_that_waits_is_let_in_before_the_last_writer_again(url: str) -> None:
    folder = Path(url.partition(":")[2])
    folder.mkdir()
    turns = WriterFairness(folder / "turns", patience=LONG)
    with program("wait_for_a_turn", url) as other, ThreadPoolExecutor() as pool:
        line(other)

        def give_way() -> float:
            turns.give_way()
            return time.monotonic()

        giving_way = pool.submit(give_way)
        tell(other)
        got = float(line(other))
        assert giving_way.result(LONG) > got
        turns.give_way()  # and no thread waits any more
    turns.close()


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stopped_process_that_waited_stalls_no_thread(kv: KeyValueStore, url: str, fate: int) -> None:
    with program("wait_for_a_turn", url) as other:
        slot = int(line(other))
        turns = kv.engine.environment.fairness
        assert slot != turns.slot
        assert turns.marks[slot]
        other.send_signal(fate)
        if fate == signal.SIGKILL:
            other.wait()
        waits, pass_over = [], turns.pass_over
        turns.pass_over = lambda *mark: [waits.append(mark), pass_over(*mark)]
        begun = time.monotonic()
        for n in range(100):
            kv.transact(lambda tr, key=b"%d" % n: tr.set(key, b""))
        took = time.monotonic() - begun
        marked = turns.marks[slot]
    assert bool(marked) is (fate == signal.SIGSTOP)
    assert len(waits) <= (1 if fate == signal.SIGKILL else 2 + took / 0.05)


def test_a_process_that_died_with_the_lock_is_forgotten(kv: KeyValueStore, url: str) -> None:
    turns = kv.engine.environment.fairness
    with program("hold_the_lock", url) as other:
        assert line(other) == "ready"
        assert not turns.another_is_here()
        tell(other)
        assert line(other) == "has it"
        assert turns.another_is_here()
        other.kill()
        other.wait()
        await_true(lambda: not turns.another_is_here())
    kv.transact(lambda tr: tr.set(b"after", b""))
    assert kv.read(lambda tr: tr.get(b"held").wait()) is None
    await_true(lambda: not turns.another_is_here())  # our own writer takes its mark away behind the answer


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_commit_of_a_process_that_died_before_telling_readers_is_seen(
    kv: KeyValueStore, url: str, tmp_path: Path
) -> None:
    environment = kv.engine.environment
    for _ in range(20):
        with committing(kv, url, tmp_path) as (other, traced):
            os.kill(traced, signal.SIGKILL)
            other.wait()
        if version(kv) < environment.last_txnid():
            break
    else:
        pytest.fail("every kill came too late")
    newest = environment.last_txnid()
    assert opened_version(url) == newest, "it would do again what was done"
    assert version(kv) == newest


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_store_is_opened_while_another_process_is_stopped_in_a_commit(
    kv: KeyValueStore, url: str, tmp_path: Path
) -> None:
    environment = kv.engine.environment
    for _ in range(20):
        with committing(kv, url, tmp_path) as (_other, traced):
            os.kill(traced, signal.SIGSTOP)
            hidden = version(kv) < environment.last_txnid()
            try:
                assert opened_version(url) in (environment.last_txnid() - hidden, environment.last_txnid())
            finally:
                os.kill(traced, signal.SIGCONT)
        if hidden:
            return
    pytest.fail("every stop came too late")


@contextmanager
def committing(kv: KeyValueStore, url: str, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program and its process, which has written a commit of which readers are not told yet.

    Each of its writes to the file takes half a second longer, so that what is done to it comes behind that one.
    """
    environment = kv.engine.environment
    late = ["strace", "-f", "-o", f"{tmp_path}/log", "-e", "inject=pwrite64:delay_exit=500000", "-e", "trace=pwrite64"]
    with program("push_on_demand", url, under=late) as other:
        if line(other) != "ready":
            pytest.skip("tracing system calls is not permitted here")
        before, until = environment.last_txnid(), time.monotonic() + LONG
        tell(other)
        while environment.last_txnid() == before:
            assert time.monotonic() < until
        (traced,) = Path(f"/proc/{other.pid}/task/{other.pid}/children").read_text().split()
        yield other, int(traced)


def opened_version(url: str) -> int:
    """The newest commit that a process sees that opens the store now."""
    look = (
        "import sys; from queues.kv import open_kv; kv = open_kv(sys.argv[1]); "
        "print(kv.read(lambda tr: tr.get_read_version()), flush=True); import os; os._exit(0)"
    )
    command = [sys.executable, "-c", look, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=LONG)
    return int(done.stdout)


def test_a_forked_child_is_refused_and_may_open_its_own(kv: KeyValueStore, url: str) -> None:
    kv.transact(lambda tr: tr.set(b"parent", b"1"))
    program = f"""
import logging, os, sys
from queues.kv import open_kv
logging.disable()  # a busy machine makes transactions slow enough for a warning
from queues.kv.errors import ForkedStore
memory, kv = open_kv("memory:"), open_kv({url!r})
kv.transact(lambda tr: tr.set(b"before", b"1"))
kv.read(lambda tr: tr.get(b"before"))
child = os.fork()
if not child:
    refused = 0
    for store in (memory, kv):
        for use in (lambda: store.read(lambda tr: 1), lambda: store.transact(lambda tr: 1),
                    lambda: store.watch({{}}, timeout=0), store.size):
            try:
                use()
            except ForkedStore as error:
                assert "open it again in the child" in str(error)
                refused += 1
        store.interrupt()
        store.close()
    own = open_kv({url!r})
    readers = own.engine.environment._env.readers()
    assert str(os.getppid()) in readers, readers  # the child has freed no slot of its parent
    own.transact(lambda tr: tr.set(b"child", b"1"))
    own.close()
    sys.exit(refused)
_, status = os.waitpid(child, 0)
kv.transact(lambda tr: tr.set(b"after", b"1"))
kv.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    ended = run_to_end([sys.executable, "-c", program], cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (8, "")
    keys = [key for key, _ in kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=10).wait())]
    assert keys == [b"after", b"before", b"child", b"parent"]


def test_a_child_that_is_forked_in_a_long_commit_opens_other_stores_anew(tmp_path: Path) -> None:
    """A disk that hangs holds the fork up for seconds only: then the child has that store in the middle of a write.

    The child is told that it cannot open it.
    """
    program = f"""
import os, sys, threading
from queues.kv import open_kv
from queues.kv.embedded import store
from queues.kv.errors import StoreUnavailable
store._FORK_PATIENCE = 0.1
hanging, other = open_kv("lmdb:{tmp_path}/hanging"), open_kv("lmdb:{tmp_path}/other")
for kv in (hanging, other):
    kv.transact(lambda tr: tr.set(b"key", b"1"))
write, inside, go_on = os.pwrite, threading.Event(), threading.Event()
def hang(file, content, at):
    if at and os.readlink(f"/proc/self/fd/{{file}}").endswith("hanging/log"):
        inside.set()
        go_on.wait()
    return write(file, content, at)
os.pwrite = hang
thread = threading.Thread(target=lambda: hanging.transact(lambda tr: tr.set(b"key", b"2")))
thread.start()
inside.wait()
child = os.fork()
if not child:
    try:
        own = open_kv("lmdb:{tmp_path}/other")
        assert own.engine is not other.engine
        own.transact(lambda tr: tr.set(b"key", b"3"))
        own.close()
        try:
            open_kv("lmdb:{tmp_path}/hanging")
        except StoreUnavailable as error:
            assert "forked in the middle of a commit" in str(error), error
            os._exit(0)
    finally:
        os._exit(1)
go_on.set()
thread.join()
_, status = os.waitpid(child, 0)
print(other.read(lambda tr: tr.get(b"key").wait()), hanging.read(lambda tr: tr.get(b"key").wait()))
sys.exit(os.waitstatus_to_exitcode(status))
"""
    ended = run_to_end([sys.executable, "-c", program], cwd=ROOT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "b'3' b'2'\n", "")


def test_a_process_that_writes_does_not_take_itself_for_dead(tmp_path: Path) -> None:
    """A process can lock again what it has locked: its own slot was erased, and given to the next process."""
    own = WriterFairness(tmp_path / "turns")
    assert own.slot is not None
    own.writing[own.slot] = 1
    assert own.another_is_here()
    assert own.another_writes()
    assert own.writing[own.slot] == 1
    own.close()
