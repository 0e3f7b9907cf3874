"""The redo log of stores on slow disks, step by step; test_power_cut.py cuts the power of whole programs."""

from __future__ import annotations

import errno
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb
import pytest

from queues.kv import open_kv
from queues.kv.embedded import EmbeddedStore, redo
from queues.kv.embedded.redo import Redo
from queues.kv.errors import OutcomeUnknown
from queues.kv.port import KeyValueStore


@pytest.fixture(autouse=True)
def _slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo, "SLOW_FLUSH", 0.0)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[lmdb.Environment]:
    """A bare file with one commit."""
    with lmdb.open(str(tmp_path)) as opened:
        put(opened, b"key", b"1")
        yield opened


def put(env: lmdb.Environment, key: bytes, value: bytes) -> None:
    with env.begin(write=True) as txn:
        txn.put(key, value)


def get(env: lmdb.Environment, key: bytes) -> bytes | None:
    with env.begin() as txn:
        return txn.get(key)


def log_of(env: lmdb.Environment, inode: int | None = None) -> Redo:
    folder = Path(env.path())
    log = Redo.make(folder)
    log.allocate()
    log.inode = (folder / "data.mdb").stat().st_ino if inode is None else inode
    return log


def lose(env: lmdb.Environment, log: Redo, pairs: dict[bytes, bytes | None], skip: int = 0) -> int:
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

    assert log.write(Numbered(), pairs)  # type: ignore[arg-type]
    assert log.flushed()
    txn.abort()
    return number


def test_what_the_file_has_lost_is_written_again(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        lose(env, log, {b"new": b"2", b"empty": b"", b"key": None})
        log.recover(env)
        assert [get(env, key) for key in (b"new", b"empty", b"key")] == [b"2", b"", None]


def test_two_lost_commits_are_written_again_in_their_order(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        second = lose(env, log, {b"key": b"3"}, skip=1)
        first = lose(env, log, {b"key": b"2", b"other": b"2"})
        assert (first, second) == (2, 3)
        log.recover(env)
        assert (get(env, b"key"), get(env, b"other")) == (b"3", b"2")
        assert env.info()["last_txnid"] == 3


def test_a_commit_without_the_one_before_it_was_never_told(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log:
        lose(env, log, {b"key": b"3"}, skip=1)
        log.recover(env)
        assert (get(env, b"key"), env.info()["last_txnid"]) == (b"1", 1)


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


def test_another_file_in_the_place_has_its_own_past(env: lmdb.Environment) -> None:
    with closing(log_of(env, inode=1)) as log:
        lose(env, log, {b"key": b"2"})
    with closing(log_of(env)) as log:
        log.recover(env)
        assert get(env, b"key") == b"1"


def test_what_does_not_fit_is_not_recorded(env: lmdb.Environment) -> None:
    with closing(log_of(env)) as log, env.begin(write=True) as txn:
        txn.put(b"large", bytes(1 << 20))
        assert not log.write(txn, [b"large"])


def test_a_store_on_a_quick_disk_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo, "SLOW_FLUSH", math.inf)
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


def test_without_room_for_a_log_the_store_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / redo.NAME).touch()

    def full(self: Redo) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Redo, "allocate", full)
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"1"


def test_a_log_that_can_not_be_flushed_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        syncs = noted_syncs(kv)
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert syncs == []
        monkeypatch.setattr(os, "fdatasync", refused)
        kv.transact(lambda tr: tr.set(b"key", b"2"))
        assert syncs == [True], "the file's own second flush"
        assert kv.read(lambda tr: tr.get(b"key").wait()) == b"2"


def test_a_commit_that_failed_and_can_not_be_taken_back_is_of_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the log may be written again at the next start."""
    with closing(open_kv(f"lmdb:{tmp_path}")) as kv:
        kv.transact(lambda tr: tr.set(b"key", b"1"))
        assert isinstance(kv, EmbeddedStore)
        environment = kv._engine.environment

        def failing(txn: lmdb.Transaction[bytes], keys: Callable[[], Iterable[bytes]]) -> None:
            assert environment._redo is not None
            assert environment._redo.write(txn, keys())
            assert environment._redo.flushed()
            txn.abort()
            monkeypatch.setattr(os, "fdatasync", refused)
            raise lmdb.Error("commit", errno.EIO)

        monkeypatch.setattr(environment, "commit", failing)
        with pytest.raises(OutcomeUnknown, match="Look before you try again"):
            kv.transact(lambda tr: tr.set(b"key", b"2"))


def refused(descriptor: int) -> None:
    """Fail as the flush of a broken disk does."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def noted_syncs(kv: KeyValueStore) -> list[bool]:
    """Return the list in which flushes of the store's file are noted from now on."""
    assert isinstance(kv, EmbeddedStore)
    environment, syncs = kv._engine.environment, []
    env = environment._opened()

    class Noting:
        def sync(self, force: bool) -> None:
            syncs.append(force)
            env.sync(force)

        def __getattr__(self, name: str) -> Any:
            return getattr(env, name)

    environment._env = Noting()  # type: ignore[assignment]
    return syncs
