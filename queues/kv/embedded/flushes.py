"""How the commits of one file become durable: each flushed twice by LMDB, or once, beside a redo log."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection
from pathlib import Path

import lmdb

from queues.kv.embedded.failures import reason
from queues.kv.embedded.redo import CHAIN, LINK_BYTES, Redo
from queues.kv.errors import StoreUnavailable

log = logging.getLogger("queues.kv")

#: Seconds that a flush takes where a redo log pays: it costs a second thread, and every pair is written once more.
SLOW_FLUSH = 0.001


class Flushes:
    """The flushes of one process. Used by the thread that executes a batch, but for opening and closing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slow: bool | None = None
        #: In use where flushes are slow; without it LMDB flushes every commit twice.
        self.redo: Redo | None = None
        #: Open for recovery only.
        self._spare: Redo | None = None
        #: After a flush that failed, until `make_sure`: the newest meta pages may pass for written, and be lost.
        self.doubtful = False
        #: What the next commit leaves under CHAIN: this process and a number; and what its record is to follow.
        self.name, self.links, self.previous = os.urandom(LINK_BYTES - 8), 0, b""

    def prepare(self, *, first: bool) -> None:
        """Open the redo log before the file is opened: where flushes are slow, and to recover at the first opening."""
        self.give_up()  # the folder may be another one by now
        if self._slow is None:
            self._slow = flushes_slowly(self._folder)
        if self._slow:
            try:
                self.redo = Redo.make(self._folder)
            except (OSError, RuntimeError) as error:  # a full disk, or no more threads: every commit is flushed twice
                log.info("The store %s gets no redo log: %s", self._folder, error)
        if self.redo is None and first:
            self._spare = Redo.open(self._folder)

    def opened(self, env: lmdb.Environment, *, first: bool) -> None:
        """At the first opening, write into the file what it has lost. Raises StoreUnavailable, OSError."""
        redo = self.redo or self._spare
        try:
            if redo is not None and first:
                redo.recover(env)
        except (lmdb.Error, OSError) as error:
            raise StoreUnavailable(
                "The store {path} has lost its newest transaction, and what its file redo holds of it cannot be "
                "written: {reason}. Make room, keep both files, and open it again.",
                path=str(self._folder),
                reason=reason(error),
            ) from error
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        if self.redo is not None:
            flush(self._folder)  # both files are in it

    def give_up(self) -> None:
        """Let go of the log: the file is closed, or opened anew."""
        for redo in (self.redo, self._spare):
            if redo is not None:
                redo.close()
        self.redo = self._spare = None

    def commit(self, env: lmdb.Environment, txn: lmdb.Transaction[bytes], keys: Collection[bytes]) -> None:
        """Commit beside the redo log, and return once that is durable. Raises lmdb.Error."""
        redo = self.redo
        assert redo is not None
        flushing, failure = redo.write(txn, self.previous, (*keys, CHAIN)), None
        try:
            txn.commit()
        finally:
            if flushing:
                failure = redo.flushed()
        if not flushing or failure is not None:
            env.sync(True)
        if failure is not None:
            log.warning("The redo log of %s could not be flushed: %s", self._folder, failure)

    def failed(self) -> None:
        """Note that a commit raised."""
        self.doubtful = self.doubtful or self.redo is not None

    def settle(self, env: lmdb.Environment, mark: tuple[bytes, bytes] | None, txnid: int) -> bool | None:
        """Tell whether a commit that raised was done, None when that is unknown; one that was not is not replayed."""
        redo = self.redo
        if redo is None:
            return None
        txn = env.begin(write=True)
        try:
            self.make_sure(env)
            if txn.id() <= txnid:
                redo.forget(txnid, txnid)
                return False
            return None if mark is None else txn.get(mark[0]) == mark[1]
        finally:
            txn.abort()

    def make_sure(self, env: lmdb.Environment) -> None:
        """After a flush that failed, have the disk take the meta pages; the caller has the write lock. Raises OSError.

        A flush tells once that it failed, and what it did not write passes for written from then on.
        """
        size = env.stat()["psize"]
        descriptor = os.open(self._folder / "data.mdb", os.O_RDWR | os.O_CLOEXEC)
        try:
            for at in (0, size):
                os.pwrite(descriptor, os.pread(descriptor, size, at), at)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self.doubtful = False

    def close(self, env: lmdb.Environment | None) -> None:
        """Leave the file whole without the redo log: it may be copied by itself, or put back, once it is closed."""
        try:
            redo = self.redo or Redo.open(self._folder)
            if redo is not self.redo:
                self._spare = redo
            if redo is not None and env is not None and not self.doubtful:
                last = env.info()["last_txnid"]
                env.sync(True)
                redo.forget(0, last)
        except (lmdb.Error, OSError) as error:
            log.warning("The store %s was closed with its redo log in use: %s", self._folder, error)
        finally:
            self.give_up()

    def abandon(self) -> None:
        """Let go of a parent's log in a forked child."""
        if self.redo is not None:
            self.redo.abandon()


def flushes_slowly(folder: Path) -> bool:
    """Time flushes of a file without a name in this folder."""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):  # a file system, or an operating system, that has none
        return False
    try:
        for attempt in range(4):
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


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
