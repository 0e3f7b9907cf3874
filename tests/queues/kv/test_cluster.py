"""What is the cluster engine's own: opening, silence, watches, slots, and answers that were lost."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.cluster import native
from queues.kv.cluster.silence import Silence
from queues.kv.commit_slots import SlotPool
from queues.kv.errors import Conflict, OutcomeUnknown, StoreUnavailable, TransactionTooOld
from tests import cluster
from tests.conftest import Clock
from tests.queues.kv.lost_answers import LosingDatabase
from tests.queues.kv.slow_cluster import SlowDatabase
from tests.waiting import LONG

needs_cluster = pytest.mark.skipif(not cluster.find().url, reason=f"no FoundationDB: {cluster.find().why_not}")
KEY, OTHER = b"key", b"other"


@pytest.fixture
def kv() -> Iterator:
    """A store on an empty cluster."""
    opened = open_kv(cluster.fresh(), slots=b"slots")
    yield opened
    opened.close()


def slots(kv) -> int:
    begin, end = b"slots", b"slott"
    return len(kv.read(lambda tr: tr.get_range(begin, end, limit=1_000).wait()))


# Opening


def test_a_missing_library_is_said(tmp_path: Path) -> None:
    program = (
        "import ctypes, ctypes.util\n"
        "class CDLL(ctypes.CDLL):\n"
        "    def __init__(self, name, *rest, **more):\n"
        "        if name and 'fdb_c' in str(name): raise OSError('hidden')\n"
        "        super().__init__(name, *rest, **more)\n"
        "ctypes.CDLL, ctypes.util.find_library = CDLL, lambda name: None\n"
        "from queues.kv import open_kv\n"
        "open_kv('fdb:')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "StoreUnreachable: FoundationDB's client library (libfdb_c) is not installed" in done.stderr


@needs_cluster
def test_a_missing_cluster_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is not there"):
        open_kv(f"fdb:{tmp_path / 'fdb.cluster'}")


@needs_cluster
def test_a_file_that_is_no_cluster_file_is_said(tmp_path: Path) -> None:
    wrong = tmp_path / "fdb.cluster"
    wrong.write_text("these are not the words\n")
    with pytest.raises(StoreUnavailable, match="connection string"):
        open_kv(f"fdb:{wrong}").read(lambda tr: tr.get(KEY).wait())


@needs_cluster
def test_a_cluster_that_does_not_answer_is_said_and_the_second_time_sooner(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        file = tmp_path / "fdb.cluster"
        file.write_text(f"silent:silent@127.0.0.1:{silent.getsockname()[1]}\n")
        with closing(open_kv(f"fdb:{file}")) as kv:
            waits = []
            for ask in (
                lambda: kv.read(lambda tr: tr.get(KEY).wait()),
                lambda: kv.read(lambda tr: tr.get(KEY).wait()),
                lambda: kv.transact(lambda tr: tr.get(KEY).wait()),
                lambda: kv.watch({KEY: None}, timeout=60),
            ):
                began = time.monotonic()
                with pytest.raises(StoreUnavailable, match="does not answer"):
                    ask()
                waits.append(time.monotonic() - began)
    assert waits[0] < 8
    assert max(waits[1:]) < 3


@needs_cluster
def test_a_child_of_a_process_with_a_cluster_is_refused() -> None:
    program = (
        "import os, sys\n"
        "from queues.kv import open_kv\n"
        "from queues.kv.errors import ForkedStore\n"
        "kv = open_kv(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    for use in (lambda: kv.read(lambda tr: 0), lambda: open_kv(sys.argv[1])):\n"
        "        try: use()\n"
        "        except ForkedStore: continue\n"
        "        os._exit(1)\n"
        "    os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, cluster.fresh()], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_cluster
def test_a_cluster_may_be_opened_first_in_a_child() -> None:
    program = (
        "import os, sys\n"
        "from queues.kv import open_kv\n"
        "if os.fork() == 0:\n"
        "    kv = open_kv(sys.argv[1])\n"
        "    kv.transact(lambda tr: tr.set(b'key', b'child'))\n"
        "    kv.close()\n"
        "    os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    url = cluster.fresh()
    done = subprocess.run([sys.executable, "-c", program, url], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with closing(open_kv(url)) as kv:
        assert kv.read(lambda tr: tr.get(KEY).wait()) == b"child"


# Silence


def test_one_call_at_a_time_is_patient_with_a_silent_cluster(clock: Clock) -> None:
    silence = Silence(clock)

    def patience(*, background: bool = False) -> list[float]:
        return [silence.patience(60.0 if background else 5.0, background=background) for _ in range(3)]

    assert patience() == [5, 5, 5]
    began = clock()
    clock.advance(5)
    silence.begins(began)
    assert patience() == patience(background=True) == [1, 1, 1]
    clock.advance(10)
    assert patience() == [5, 1, 1]
    assert patience(background=True) == [10, 1, 1]
    clock.advance(14)
    assert patience() == [1, 1, 1]
    clock.advance(1)
    assert patience() == [5, 1, 1]
    silence.ends()
    assert patience() == [5, 5, 5]


def test_a_call_that_fails_while_another_one_is_answered_tells_of_no_silence(clock: Clock) -> None:
    silence = Silence(clock)
    began = clock()
    clock.advance(1)
    silence.ends()
    clock.advance(4)
    silence.begins(began)
    assert not silence
    silence.begins(clock())
    assert silence


@pytest.fixture
def slow(kv, clock: Clock) -> Iterator[SlowDatabase]:
    """A cluster that needs seconds for each read, and a store on it."""
    database = SlowDatabase(kv, clock)
    yield database
    database.store.close()


CALLS = [lambda kv: kv.read(lambda tr: tr.get(KEY).wait()), lambda kv: kv.transact(lambda tr: tr.get(KEY).wait())]


@needs_cluster
@pytest.mark.parametrize("call", CALLS, ids=["read", "transact"])
def test_a_cluster_that_answers_slowly_after_a_silence_serves_calls_again(
    slow: SlowDatabase, clock: Clock, call
) -> None:
    slow.seconds = 20.0
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="does not answer"):
            call(slow.store)
    slow.seconds = 1.5
    clock.advance(10)
    for _ in range(3):
        assert call(slow.store) is None


@needs_cluster
def test_background_work_that_a_busy_cluster_does_not_serve_costs_callers_no_patience(slow: SlowDatabase) -> None:
    slow.seconds, slow.background_seconds = 1.5, 1e9
    for fail in (slow.store.read, slow.store.transact):
        with pytest.raises(StoreUnavailable, match="does not answer"):
            fail(lambda tr: tr.get(KEY).wait(), background=True)
        for call in CALLS:
            assert call(slow.store) is None


# Time


@needs_cluster
def test_a_transaction_of_more_than_five_seconds_is_refused_by_the_cluster_itself(kv) -> None:
    """The clock of this store does not move, so only the cluster can tell."""
    with closing(open_kv(cluster.find().url, clock=lambda: 0.0)) as still:
        runs = []

        def slow(tr):
            runs.append(1)
            tr.get(KEY).wait()
            threading.Event().wait(6)  # the cluster's clock cannot be set
            tr.get(OTHER).wait()

        with pytest.raises(TransactionTooOld):
            still.read(slow)
        assert runs == [1]


# Signals in the main thread


class JobTimeout(BaseException):
    """What a signal handler raises to end a wait."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], None]]:
    """Have this thread, which is the main one, interrupted soon."""

    def interrupt(*_: object) -> None:
        raise JobTimeout

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.02)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class LibraryFuture:
    """A future as the client library has it: ready when its callback is called, in another thread."""

    fpointer = 1

    def __init__(self, awaited: Callable[["LibraryFuture"], None]) -> None:
        self._awaited = awaited
        self._callbacks: list[Callable[[LibraryFuture], None]] = []
        self._ready = False

    def is_ready(self) -> bool:
        return self._ready

    def on_ready(self, callback: Callable[["LibraryFuture"], None]) -> None:
        self._callbacks.append(callback)
        self._awaited(self)

    def land(self) -> None:
        self._ready = True
        for callback in self._callbacks:
            callback(self)


def test_a_wait_after_one_that_a_signal_ended_lasts_until_its_own_future_is_ready(alarm: Callable[[], None]) -> None:
    interrupted = LibraryFuture(lambda _: alarm())
    with pytest.raises(JobTimeout):
        native.block(interrupted)
    interrupted.land()
    for _ in range(3):
        following = LibraryFuture(lambda future: threading.Thread(target=future.land).start())
        native.block(following)
        assert following.is_ready()


@needs_cluster
def test_calls_after_a_wait_that_a_signal_ended_get_their_answers(kv, alarm: Callable[[], None]) -> None:
    tr = kv.database.create_transaction()
    watch = tr.watch(KEY)
    tr.commit().wait()
    with pytest.raises(JobTimeout):
        alarm()
        native.block(watch)
        watch.wait()
    fired = threading.Event()
    watch.on_ready(lambda _: fired.set())
    kv.transact(lambda tr: tr.set(KEY, b"1"))
    assert fired.wait(LONG)
    for n in range(20):
        kv.transact(lambda tr, n=n: tr.set(OTHER, b"%d" % n))
        assert kv.read(lambda tr: tr.get(OTHER).wait()) == b"%d" % n


# Watches


@needs_cluster
def test_a_watch_that_is_still_set_costs_no_read(kv) -> None:
    known = {b"%d" % n: None for n in range(50)}
    assert kv.watch(known, timeout=0.01) is False
    before = kv.reads()
    for _ in range(5):
        assert kv.watch(known, timeout=0.01) is False
    assert kv.reads() == before
    kv.transact(lambda tr: tr.set(b"7", b""))
    assert kv.watch(known, timeout=10) is True


@needs_cluster
def test_another_client_s_write_wakes(kv) -> None:
    woken = threading.Event()
    waiter = threading.Thread(target=lambda: kv.watch({KEY: None}, timeout=30) and woken.set())
    waiter.start()
    with closing(open_kv(cluster.find().url)) as other:
        other.transact(lambda tr: tr.set(KEY, b"1"))
        assert woken.wait(10)
    waiter.join()


# Slots


@needs_cluster
def test_a_store_uses_one_slot_at_a_time_and_leaves_none(kv) -> None:
    with closing(open_kv(cluster.find().url, slots=b"slots")) as other:
        for n in range(5):
            other.transact(lambda tr, n=n: tr.set(KEY, b"%d" % n))
        assert slots(kv) == 1
    assert slots(kv) == 0


@needs_cluster
def test_a_transaction_that_writes_nothing_uses_no_slot(kv) -> None:
    kv.transact(lambda tr: tr.get(KEY).wait())
    assert slots(kv) == 0


# Answers that were lost


@needs_cluster
@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_settled(kv, applied: bool) -> None:
    database = LosingDatabase(kv, [applied])
    runs = []

    def count(tr):
        runs.append(1)
        tr.add(KEY, 1)
        return len(runs)

    assert database.store().transact(count) == (1 if applied else 2)
    assert kv.read(lambda tr: tr.get(KEY).wait()) == (1).to_bytes(8, "little")
    assert len(runs) == (1 if applied else 2)


@needs_cluster
def test_a_refusal_after_a_lost_answer_is_only_given_once_nothing_can_land(kv) -> None:
    """The second run refuses; the first one was applied, so its result is the answer."""
    database = LosingDatabase(kv, [True])
    runs = []

    def once(tr):
        runs.append(1)
        if len(runs) > 1:
            raise LookupError("refused")
        tr.add(KEY, 1)
        return "done"

    assert database.store().transact(once) == "done"
    database = LosingDatabase(kv, [False])
    runs.clear()
    with pytest.raises(LookupError, match="refused"):
        database.store().transact(once)
    assert kv.read(lambda tr: tr.get(KEY).wait()) == (1).to_bytes(8, "little")


@needs_cluster
def test_a_commit_that_lands_late_is_not_applied_twice(kv) -> None:
    """The first attempt's commit is held back until the second one was applied; then it lands, and is refused."""
    database = LosingDatabase(kv, ["late"])
    assert database.store().transact(lambda tr: tr.add(KEY, 1)) is None
    assert database.land() == "NotCommitted"
    assert kv.read(lambda tr: tr.get(KEY).wait()) == (1).to_bytes(8, "little")


@needs_cluster
def test_an_outcome_that_cannot_be_settled_is_unknown(kv) -> None:
    database = LosingDatabase(kv, [True], silent_afterwards=True)
    with pytest.raises(OutcomeUnknown, match="look before you repeat"):
        database.store().transact(lambda tr: tr.add(KEY, 1))
    assert kv.read(lambda tr: tr.get(KEY).wait()) == (1).to_bytes(8, "little")


@needs_cluster
def test_conflicts_end_with_an_error_that_says_so(kv) -> None:
    def lose(tr):
        tr.get(KEY).wait()
        tr.set(OTHER, b"")
        done = threading.Thread(target=lambda: kv.transact(lambda tr: tr.add(KEY, 1)))
        done.start()
        done.join()

    with closing(open_kv(cluster.find().url)) as loser, pytest.raises(Conflict, match="kept losing"):
        loser.transact(lose)
    assert kv.read(lambda tr: tr.get(OTHER).wait()) is None


def test_pools_of_two_processes_never_share_a_slot() -> None:
    assert SlotPool(b"slots").take().key != SlotPool(b"slots").take().key
