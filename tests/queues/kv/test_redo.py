"""The redo log of stores on slow disks, step by step; test_power_cut.py cuts the power of whole programs."""

import errno
import math
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import lmdb
import pytest

from queues.kv import open_kv
from queues.kv.embedded import EmbeddedStore, environment, flushes, redo
from queues.kv.embedded.redo import Redo
from queues.kv.embedded.transaction import Batch
from queues.kv.errors import OutcomeUnknown, StoreUnavailable

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushes, "SLOW_FLUSH", 0.0)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[lmdb.Environment]:
    """A bare file with one commit."""
    with lmdb.open(str(tmp_path)) as opened, opened.begin(write=True) as txn:
        txn.put(b"key", b"1")
        txn.put(redo.CHAIN, link(b"first"))
    with lmdb.open(str(tmp_path)) as opened:
        yield opened


def put(env: lmdb.Environment, key: bytes, value: bytes) -> None:
    with env.begin(write=True) as txn:
        txn.put(key, value)


def get(env: lmdb.Environment, key: bytes) -> bytes | None:
    with env.begin() as txn:
        return txn.get(key)


def log_of(env: lmdb.Environment) -> Redo:
    return Redo.make(Path(env.path()))


def lose(
    env: lmdb.Environment, log: Redo, pairs: dict[bytes, bytes | None], *, skip: int = 0, previous: bytes = b"first"
) -> int:
    """Record a transaction that the file then loses, `skip` numbers on; return its number."""
    txn = env.begin(write=True)
    for key, value in pairs.items():
        txn.put(key, value) if value is not None else txn.delete(key)
    number = txn.id() + skip

    class Numbered:
        def id(self) -> int:
            return number

        def get(self, key: bytes) -> bytes | None:
            return txn.get(key)

    assert log.write(Numbered(), link(previous), pairs)  # type: ignore[arg-type]
    assert log.flushed() is None
    txn.abort()
    return number


def link(name: bytes) -> bytes:
    return name.ljust(redo.LINK_BYTES)


def test_what_the_file_has_lost_is_written_again(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        lose(env, log, {b"new": b"2", b"empty": b"", b"key": None})
        log.recover(env)
        assert [get(env, key) for key in (b"new", b"empty", b"key")] == [b"2", b"", None]


def test_two_lost_commits_are_written_again_in_their_order(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        second = lose(env, log, {b"key": b"3"}, skip=1, previous=b"second")
        first = lose(env, log, {b"key": b"2", b"other": b"2", redo.CHAIN: link(b"second")})
        assert (first, second) == (2, 3)
        log.recover(env)
        assert (get(env, b"key"), get(env, b"other")) == (b"3", b"2")
        assert env.info()["last_txnid"] == 3


def test_a_commit_without_the_one_before_it_was_never_told(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        lose(env, log, {b"key": b"3"}, skip=1, previous=b"second")
        log.recover(env)
        assert (get(env, b"key"), env.info()["last_txnid"]) == (b"1", 1)


@pytest.mark.parametrize("skip", [0, 1])
def test_a_commit_that_followed_another_one_than_the_file_holds_is_of_another_past(
    env: lmdb.Environment, skip: int
) -> None:
    """A killed process's record of the same number, an older copy of the file."""
    with closing(log_of(env)) as log:
        lose(env, log, {b"key": b"3"}, skip=1, previous=b"another")
        lose(env, log, {b"key": b"2", redo.CHAIN: link(b"second")}, previous=b"first" if skip else b"another")
        log.recover(env)
        assert get(env, b"key") == (b"2" if skip else b"1")
        for number in range(3):  # and it does not wait for its number to come
            put(env, redo.CHAIN, link(b"another"))
            log.recover(env)
            assert env.info()["last_txnid"] == (2 if skip else 1) + number + 1


def test_what_the_file_has_is_left_alone(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        lose(env, log, {b"key": b"2"})
        put(env, b"key", b"another's commit of that number")
        log.recover(env)
        assert get(env, b"key") == b"another's commit of that number"


def test_a_record_that_was_taken_back_is_gone(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        number = lose(env, log, {b"key": b"2"})
        log.forget(number + 1, number + 1)
        log.forget(number, number)
        log.recover(env)
        assert get(env, b"key") == b"1"


def test_what_does_not_fit_is_not_recorded(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log, env.begin(write=True) as txn:
        txn.put(b"large", bytes(1 << 20))
        assert not log.write(txn, link(b"first"), [b"large"])


def test_a_store_on_a_quick_disk_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushes, "SLOW_FLUSH", math.inf)
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
    assert not (tmp_path / redo.NAME).exists()


def test_a_closed_store_is_whole_in_its_one_file_and_an_older_copy_may_be_put_back(tmp_path: Path) -> None:
    url, data = f"lmdb:{tmp_path}/store", tmp_path / "store" / "data.mdb"
    with closing(open_kv(url)) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
    copy = shutil.copy(data, tmp_path / "copy")
    with closing(open_kv(url)) as kv:
        kv.transact(lambda tr: tr.clear(b"key"))
    shutil.copyfile(copy, data)  # into the same file
    with closing(open_kv(url)) as kv:
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"1"


def test_a_process_without_a_log_removes_records_of_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process was killed; the next one finds the disk quick. Then an older copy of the file is put back."""
    url, data = f"lmdb:{tmp_path}/store", tmp_path / "store" / "data.mdb"
    with closing(open_kv(url)) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
    copy = shutil.copy(data, tmp_path / "copy")
    program = f"""
import os
from queues.kv import open_kv
from queues.kv.embedded import flushes
flushes.SLOW_FLUSH = 0.0
kv = open_kv({url!r})
kv.transact(lambda tr: tr.set(b"key", b"2"))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    monkeypatch.setattr(flushes, "SLOW_FLUSH", math.inf)
    with closing(open_kv(url)) as kv:
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"2"
    shutil.copyfile(copy, data)
    with closing(open_kv(url)) as kv:
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"1"


def test_a_folder_that_is_put_in_the_place_of_the_open_one_has_a_log_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, copy = tmp_path / "store", tmp_path / "copy"
    syncs = noted_syncs(monkeypatch)
    with closing(open_kv(f"lmdb:{store}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        copy.mkdir()
        assert isinstance(kv, EmbeddedStore)
        kv.copy_into(str(copy))
        store.rename(tmp_path / "old")
        copy.rename(store)
        kv.transact(lambda tr: tr.set(b"key", b"2"))
        assert b"key" in (store / redo.NAME).read_bytes()
        (store / redo.NAME).unlink()
        syncs.clear()
        kv.transact(lambda tr: tr.set(b"key", b"3"))
        assert syncs == [True], "a log that will not be found is none"


def test_without_a_thread_the_store_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "pq-redo":
            raise RuntimeError("can't start new thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        for n in range(2):
            kv.transact(lambda tr, n=n: tr.set(b"key", b"%d" % n))  # type: ignore[misc]


def test_what_cannot_be_written_again_is_said_and_holds_nothing_up(
    env: lmdb.Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(log_of(env)) as log:
        lose(env, log, {b"large": bytes(900_000)})
    env.close()
    with monkeypatch.context() as small:
        small.setattr(environment, "MAP_BYTES", 0)
        small.setattr(environment, "MAP_RESERVE", 0)
        with pytest.raises(StoreUnavailable, match="keep both files") as kept:
            open_kv(f"lmdb:{tmp_path}", max_bytes=400_000)
    assert kept.value.__cause__ is not None
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"2"))
        assert kv.read(lambda tr: tr.get(b"large").wait()) == bytes(900_000)


@pytest.mark.parametrize("done", [False, True])
def test_an_error_of_no_kind_that_is_known_tells_no_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        assert isinstance(kv, EmbeddedStore)
        environment = kv.engine.environment
        commit = environment.commit

        def broken(*arguments: Any) -> None:
            if done:
                commit(*arguments)
            raise MemoryError("none left")

        with monkeypatch.context() as patched:
            patched.setattr(environment, "commit", broken)
            with nullcontext() if done else pytest.raises(StoreUnavailable, match="none left"):
                kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert kv.read(lambda tr: tr.get(b"key").wait()) == (b"1" if done else None)
        kv.transact(lambda tr: tr.set(b"key", b"2"))
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"2"


def test_without_room_for_a_log_the_store_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo, "_ROOM", 1 << 60)
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"1"


def test_a_log_that_cannot_be_flushed_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = noted_syncs(monkeypatch)
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        syncs.clear()
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert syncs == []
        monkeypatch.setattr(os, "fdatasync", refused)
        kv.transact(lambda tr: tr.set(b"key", b"2"))
        assert syncs == [True], "the file's own second flush"
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"2"


def test_a_commit_that_failed_and_cannot_be_taken_back_is_of_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the log may be written again at the next start."""
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert isinstance(kv, EmbeddedStore)
        environment = kv.engine.environment

        def failing(batch: Batch) -> None:
            log = environment.flushes.redo
            assert log is not None
            assert log.write(batch.txn, environment.flushes.previous, batch.keys())
            assert log.flushed() is None
            batch.txn.abort()
            monkeypatch.setattr(os, "fdatasync", refused)
            raise lmdb.Error("commit", errno.EIO)

        monkeypatch.setattr(environment, "commit", failing)
        with pytest.raises(OutcomeUnknown, match="Look before you try again"):
            kv.transact(lambda tr: tr.set(b"key", b"2"))


def refused(descriptor: int) -> None:
    """Fail as the flush of a broken disk does."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def noted_syncs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return the list in which flushes of files that are opened from now on are noted."""
    syncs: list[bool] = []
    opened = lmdb.open

    class Noting:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._env = opened(*arguments, **options)

        def sync(self, force: bool) -> None:
            syncs.append(force)
            self._env.sync(force)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._env, name)

    monkeypatch.setattr(lmdb, "open", Noting)
    return syncs
