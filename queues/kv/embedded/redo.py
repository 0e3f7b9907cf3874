"""The redo log: with it a commit on a slow disk waits for one flush, not for two that follow each other.

LMDB flushes a commit's pages, and then the meta page that makes them valid. Where a flush takes long, the meta page is
written without one: LMDB stays whole, but a power cut may undo the newest commit, until the next one flushes its pages
and the meta page with them. So what a commit has written stands here too, flushed at the same time as its pages, and
whoever opens the store next writes it once more if it is missing. The newest two commits have a slot each; one that is
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
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Self

import lmdb

log = logging.getLogger("queues.kv")

NAME = "redo"
#: Seconds that a flush takes where this log pays: it costs a second thread, and every pair is written once more.
SLOW_FLUSH = 0.000_5
#: The file: a slot each for commits of even and of odd number.
_SLOT_BYTES = 1 << 20
_FILE_BYTES = 2 * _SLOT_BYTES
#: Bytes that have to be free on the disk for it to be made: what little there is belongs to the store.
_ROOM = 64 << 20
#: A record: the digest of all that follows; magic, inode of the store's file, number of the commit, bytes of its pairs;
#: the pairs. A pair: size of the key, size of the value (or that there is none), both.
_DIGEST_BYTES = 16
_HEAD = struct.Struct(">8sQQI")
_PAIR = struct.Struct(">HI")
_MAGIC, _GONE = b"pqredo1\0", 0xFFFF_FFFF
_MOST = _SLOT_BYTES - _DIGEST_BYTES - _HEAD.size


class Redo:
    """One process's hold of the log in a store's folder. Used by one thread at a time."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        self._file = descriptor
        self._folder = folder
        #: The inode of the store's file: another one that is put in its place has its own past.
        self.inode = 0
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._flushed: SimpleQueue[bool] = SimpleQueue()
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
        """Create the log of a store. Raises OSError."""
        return cls(os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660), folder)

    def allocate(self) -> None:
        """Give the file all its blocks, so that no flush has to tell the file system of any. Raises OSError."""
        if os.fstat(self._file).st_size >= _FILE_BYTES:
            return
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with self._locked():  # another process may have done it, and begun to use them
            rest = bytes(max(0, _FILE_BYTES - os.fstat(self._file).st_size))
            if os.pwrite(self._file, rest, _FILE_BYTES - len(rest)) < len(rest):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._file)
        folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def recover(self, env: lmdb.Environment) -> None:
        """Write once more the newest commits that the file has lost. Raises OSError and lmdb.Error."""
        last = env.info()["last_txnid"]
        found = [self._read(parity, last) for parity in (0, 1)]
        for txnid, pairs in sorted(record for record in found if record is not None):
            txn = env.begin(write=True)
            if txn.id() != txnid:  # another process was quicker, or what stands between is lost: nobody was told of it
                txn.abort()
                continue
            for key, value in pairs:
                if value is None:
                    txn.delete(key)
                else:
                    txn.put(key, value)
            txn.commit()
            env.sync(True)
            log.warning("Commit %d was not whole on the disk: written again from the redo log", txnid)

    def write(self, txn: lmdb.Transaction[bytes], keys: Iterable[bytes]) -> bool:
        """Write what a transaction leaves under these keys, and begin to flush; False when it does not fit.

        The caller holds the store's write lock until he has committed, so the slot is his.
        """
        size, parts = 0, []
        for key in keys:
            value = txn.get(key)
            parts += [_PAIR.pack(len(key), _GONE if value is None else len(value)), key, value or b""]
            size += sum(map(len, parts[-3:]))
            if size > _MOST:
                return False
        record = _HEAD.pack(_MAGIC, self.inode, txn.id(), size) + b"".join(parts)
        try:
            with self._locked():
                written = os.pwrite(self._file, _digest(record) + record, _place(txn.id()))
        except OSError:
            return False
        if written < _DIGEST_BYTES + len(record):
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._flush, name="pq-redo", daemon=True)
            self._thread.start()
        self._asked.put(True)
        return True

    def flushed(self) -> bool:
        """Wait for the flush that was begun; whether it went well."""
        return self._flushed.get()

    def forget(self, first: int, last: int) -> None:
        """Take out the records of commits `first` to `last`. Raises OSError."""
        for parity in (0, 1):
            with self._locked():
                record = self._head(parity)
                if record is not None and first <= record[0] <= last:
                    os.pwrite(self._file, bytes(_DIGEST_BYTES), _place(parity))
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
                log.warning("The redo log in %s could not be flushed: %s", self._folder, error)
                self._flushed.put(False)
            else:
                self._flushed.put(True)

    def _read(self, parity: int, after: int) -> tuple[int, list[tuple[bytes, bytes | None]]] | None:
        """Return the commit in a slot, if it is whole, of this file and behind `after`."""
        head = self._head(parity)
        if head is None or head[0] <= after:
            return None
        txnid, size = head
        record = os.pread(self._file, _DIGEST_BYTES + _HEAD.size + size, _place(parity))
        if record[:_DIGEST_BYTES] != _digest(record[_DIGEST_BYTES:]):
            return None  # it was never flushed, so nobody was told of it
        pairs: list[tuple[bytes, bytes | None]] = []
        at = _DIGEST_BYTES + _HEAD.size
        while at < len(record):
            key_size, value_size = _PAIR.unpack_from(record, at)
            key_at = at + _PAIR.size
            at = key_at + key_size + (0 if value_size == _GONE else value_size)
            value = None if value_size == _GONE else record[key_at + key_size : at]
            pairs.append((record[key_at : key_at + key_size], value))
        return txnid, pairs

    def _head(self, parity: int) -> tuple[int, int] | None:
        """Return the number and the bytes of the commit in a slot, if it is of this file."""
        head = os.pread(self._file, _HEAD.size, _place(parity) + _DIGEST_BYTES)
        if len(head) < _HEAD.size:
            return None
        magic, inode, txnid, size = _HEAD.unpack(head)
        if magic != _MAGIC or size > _MOST:
            return None
        if inode != self.inode:
            log.info("The redo log in %s holds commit %d of another file, which is left out", self._folder, txnid)
            return None
        return txnid, size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def flushes_slowly(folder: Path) -> bool:
    """Time flushes of a file without a name in this folder."""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):  # a file system, or an operating system, that has none
        return False
    try:
        for attempt in range(3):
            began = time.perf_counter()
            os.pwrite(descriptor, bytes(4_096), 0)
            os.fdatasync(descriptor)
            if attempt and time.perf_counter() - began < SLOW_FLUSH:  # the first one finds a block
                return False
    except OSError:  # a full disk, say
        return False
    finally:
        os.close(descriptor)
    return True


def _digest(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=_DIGEST_BYTES).digest()


def _place(txnid: int) -> int:
    """Return where the slot of a commit begins."""
    return txnid % 2 * _SLOT_BYTES
