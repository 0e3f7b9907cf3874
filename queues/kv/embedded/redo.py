"""The redo log: with it a commit on a slow disk waits for one flush, not for two that follow each other.

LMDB flushes a commit's pages, and then the meta page that makes them valid. Where a flush takes long, the meta page is
written without one: LMDB stays whole, but a power cut may undo the newest commit, until the next one flushes its pages
and the meta page with them. So the log holds what a commit has written, flushed at the same time as its pages, and
the next process that opens the store replays it if it is missing. The newest two commits have a slot each; one that is
larger than its slot is flushed twice.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Self

import lmdb

from queues.kv.embedded import rights

log = logging.getLogger("queues.kv")

NAME = "redo"
#: The key whose value changes with every commit of any process: a record names the value that it follows.
CHAIN = b"\xff\x02redo"
#: The file: a slot each for commits of even and of odd number.
_SLOT_BYTES = 1 << 20
_FILE_BYTES = 2 * _SLOT_BYTES
#: Bytes that have to be free on the disk for it to be made: what little there is belongs to the store.
_ROOM = 64 << 20
#: A record: the digest of all that follows; magic, number of the commit, bytes of its pairs, CHAIN's value before it;
#: the pairs. A pair: size of the key, size of the value (or that there is none), both.
_DIGEST_BYTES, LINK_BYTES = 16, 16
_HEAD = struct.Struct(f">8sQI{LINK_BYTES}s")
_PAIR = struct.Struct(">HI")
_MAGIC, _GONE = b"pqredo1\0", 0xFFFF_FFFF
_MOST = _SLOT_BYTES - _DIGEST_BYTES - _HEAD.size
_NO_LINK = bytes(LINK_BYTES)


class Record(NamedTuple):
    """What a commit has left under the keys that it wrote, None where they were cleared."""

    txnid: int
    #: CHAIN's value before it.
    previous: bytes
    pairs: list[tuple[bytes, bytes | None]]


class Redo:
    """One process's hold of the log in a store's folder. Used by one thread at a time."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        self._file = descriptor
        self._path = str(folder / NAME)
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._flushed: SimpleQueue[OSError | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """Open the log of a store, if it has one. Raises OSError."""
        try:
            return cls(os.open(folder / NAME, os.O_RDWR | os.O_CLOEXEC), folder)
        except FileNotFoundError:
            return None

    @classmethod
    def make(cls, folder: Path) -> Self:
        """Open or create the log of a store, ready to be written. Raises OSError, RuntimeError without a thread."""
        made = cls(rights.open_file(folder / NAME), folder)
        try:
            made._allocate()
            thread = threading.Thread(target=made._flush, name="pq-redo", daemon=True)
            thread.start()
            made._thread = thread
        except BaseException:
            made.close()
            raise
        return made

    def recover(self, env: lmdb.Environment) -> None:
        """Write once more the newest commits that the file has lost. Raises OSError and lmdb.Error."""
        while any(number > env.info()["last_txnid"] for number in self._numbers()):
            with env.begin(write=True) as txn:  # before the record is read: a commit that failed is taken back in one
                record = self._read(txn.id())
                if record is not None and (txn.get(CHAIN) or _NO_LINK) == record.previous:
                    for key, value in record.pairs:
                        if value is None:
                            txn.delete(key)
                        else:
                            txn.put(key, value)
                else:  # of a past that is not this file's, or never whole: no caller was told of it
                    self.forget(txn.id(), None)
                    return
            env.sync(True)
            log.warning("Commit %d was not whole on the disk: written again from the redo log", record.txnid)

    def write(self, txn: lmdb.Transaction[bytes], previous: bytes, keys: Iterable[bytes]) -> bool:
        """Write what a transaction leaves under these keys, and begin to flush; False when that is not possible.

        The caller holds the store's write lock until the commit, so the slot is its own.
        """
        size, parts = 0, []
        for key in keys:
            value = txn.get(key)
            parts += [_PAIR.pack(len(key), _GONE if value is None else len(value)), key, value or b""]
            size += sum(map(len, parts[-3:]))
            if size > _MOST:
                return False
        record = _HEAD.pack(_MAGIC, txn.id(), size, previous) + b"".join(parts)
        try:
            if not os.path.samestat(os.stat(self._path), os.fstat(self._file)):  # noqa: PTH116 - as quick as it goes
                return False
            with self._locked(fcntl.LOCK_NB):
                written = os.pwrite(self._file, _digest(record) + record, _place(txn.id()))
        except OSError:
            return False
        if written < _DIGEST_BYTES + len(record):
            return False
        self._asked.put(True)
        return True

    def flushed(self) -> OSError | None:
        """Wait for the flush that was begun; return what went wrong."""
        return self._flushed.get()

    def forget(self, first: int, last: int | None) -> None:
        """Take out the records of commits `first` to `last`, of all behind `first` without it. Raises OSError."""
        found = False
        for parity in (0, 1):
            with self._locked():
                head = self._head(parity)
                if head is not None and first <= head[0] and (last is None or head[0] <= last):
                    os.pwrite(self._file, bytes(_DIGEST_BYTES + _HEAD.size), _place(parity))
                    found = True
        if found:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Let go of the file."""
        if self._thread is not None:
            self._asked.put(False)
            self._thread.join()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the file in a forked child, where the thread does not exist."""
        os.close(self._file)

    def _flush(self) -> None:
        while self._asked.get():
            try:
                os.fdatasync(self._file)
            except OSError as error:
                self._flushed.put(error)
            else:
                self._flushed.put(None)

    def _numbers(self) -> list[int]:
        return [head[0] for head in map(self._head, (0, 1)) if head is not None]

    def _read(self, txnid: int) -> Record | None:
        """Return the record of a commit, if it is there and whole."""
        head = self._head(txnid)
        if head is None or head[0] != txnid:
            return None
        _, size, previous = head
        record = os.pread(self._file, _DIGEST_BYTES + _HEAD.size + size, _place(txnid))
        if record[:_DIGEST_BYTES] != _digest(record[_DIGEST_BYTES:]):
            return None
        pairs: list[tuple[bytes, bytes | None]] = []
        at = _DIGEST_BYTES + _HEAD.size
        while at < len(record):
            key_size, value_size = _PAIR.unpack_from(record, at)
            key_at = at + _PAIR.size
            at = key_at + key_size + (0 if value_size == _GONE else value_size)
            value = None if value_size == _GONE else record[key_at + key_size : at]
            pairs.append((record[key_at : key_at + key_size], value))
        return Record(txnid, previous, pairs)

    def _head(self, txnid: int) -> tuple[int, int, bytes] | None:
        """Return the number, the bytes and the link of the record in a commit's slot."""
        head = os.pread(self._file, _HEAD.size, _place(txnid) + _DIGEST_BYTES)
        if len(head) < _HEAD.size:
            return None
        magic, number, size, previous = _HEAD.unpack(head)
        return (number, size, previous) if magic == _MAGIC and size <= _MOST else None

    def _allocate(self) -> None:
        """Give the file all its blocks, so that no flush has to tell the file system of any."""
        if os.fstat(self._file).st_size < _FILE_BYTES:
            disk = os.fstatvfs(self._file)
            if disk.f_bavail * disk.f_frsize < _ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with self._locked():  # another process may have done it, and begun to use them
                rest = bytes(max(0, _FILE_BYTES - os.fstat(self._file).st_size))
                if os.pwrite(self._file, rest, _FILE_BYTES - len(rest)) < len(rest):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._file)

    @contextmanager
    def _locked(self, how: int = 0) -> Iterator[None]:
        """Keep other processes from writing."""
        fcntl.flock(self._file, fcntl.LOCK_EX | how)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _digest(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=_DIGEST_BYTES).digest()


def _place(txnid: int) -> int:
    """Return where the slot of a commit begins."""
    return txnid % 2 * _SLOT_BYTES
