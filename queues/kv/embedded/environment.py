"""One LMDB environment: opened once per file and process, reopened when a commit's outcome is in doubt."""

from __future__ import annotations

import os
import threading
import time
from enum import Enum
from pathlib import Path

import lmdb

from queues.kv.embedded.failures import translate
from queues.kv.errors import StoreClosed, StoreError, StoreFull, StoreUnavailable
from queues.kv.port import MAX_TRANSACTION_SECONDS

#: Bytes of address space, reserved up front because a map can not grow while others have the file open. Only
#: address space: the file stays sparse and the mapping is read-only and shared, so no memory is committed even
#: under strict overcommit, and 256 GiB fit into the smallest 39-bit address spaces.
MAP_BYTES = 256 << 30
#: Bytes that growing writes may fill when nothing else is said.
DEFAULT_MAX_BYTES = 64 << 30
#: Bytes of map kept beyond the limit, so that a full store can still be emptied.
MAP_RESERVE = 64 << 20
#: Bytes of disk that growing writes leave alone (a sixteenth of a small disk), for the same reason.
DISK_RESERVE = 32 << 20
#: Bytes of room below which it is looked up before every commit.
_LITTLE_ROOM = 32 << 20
MAX_READERS = 1_024
#: Read transactions kept for reuse; about as many as threads that read at once.
_SPARE_READS = 64
#: Seconds between sweeps of dead processes' reader slots, and between looks at the file.
_SWEEP_EVERY = 30.0
_LOOK_EVERY = 0.25


class Outcome(Enum):
    """What became of a commit that raised."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


class Environment:
    """The file, its readers and its room. Thread-safe; one write transaction at a time, in one thread."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self.path = str(path)
        self.max_bytes = max_bytes
        self._gate = threading.Condition(threading.RLock())
        self._readers = 0
        self._env: lmdb.Environment | None = None
        self._closed = False
        self._room = 0
        self._room_known_until = 0.0
        self._sweep_at = 0.0
        self._look_at = 0.0
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise translate(error, self.path) from error
        self._data = path / "data.mdb"
        self._open(create=True)

    # Reading

    def begin_read(self) -> lmdb.Transaction:
        """Begin a read transaction in the calling thread; give it back with `end_read`."""
        now = time.monotonic()
        if now > self._look_at:
            self._look_at = now + _LOOK_EVERY
            self.check_file()
        with self._gate:
            env = self._opened()
            self._readers += 1
        try:
            return self._begin_read(env)
        except BaseException as error:
            self._leave()
            if isinstance(error, lmdb.Error):
                raise translate(error, self.path) from error
            raise

    def end_read(self, txn: lmdb.Transaction) -> None:
        """End a read transaction."""
        try:
            txn.abort()
        finally:
            self._leave()

    def last_txnid(self) -> int:
        """Return the number of the last commit of any process; takes about a microsecond."""
        with self._gate:
            return self._opened().info()["last_txnid"]

    # Writing

    def begin_write(self) -> lmdb.Transaction:
        """Begin the write transaction, waiting for other processes' to end. Only the writer thread may."""
        self.check_file()
        with self._gate:
            env = self._opened()
        try:
            self._sweep(env)
            return env.begin(write=True)
        except lmdb.PanicError:
            self.reopen()
            try:
                return self._opened().begin(write=True)
            except lmdb.Error as error:
                raise translate(error, self.path) from error
        except lmdb.Error as error:
            raise translate(error, self.path) from error

    def settle(self, error: Exception, mark: tuple[bytes, bytes] | None, txnid: int) -> Outcome:
        """Find out what became of a commit that raised: reopen, and look for its number and its mark."""
        try:
            self.reopen()
            with self._gate:
                env = self._opened()
            if env.info()["last_txnid"] < txnid:
                return Outcome.NOT_DONE
            if mark is None:
                return Outcome.UNKNOWN
            with env.begin() as txn:
                if txn.get(mark[0]) != mark[1]:
                    return Outcome.NOT_DONE
            if getattr(error, "code", 0) == _EIO:
                return Outcome.UNKNOWN
            env.sync(True)
        except (lmdb.Error, StoreError):
            return Outcome.UNKNOWN
        return Outcome.DONE

    # Room

    def room(self) -> int:
        """Return how many bytes growing writes may still add; looked up often only when little is left."""
        now = time.monotonic()
        if self._room < _LITTLE_ROOM or now > self._room_known_until:
            self._room_known_until = now + _LOOK_EVERY
            used, file_bytes = self._usage()
            disk = os.statvfs(self.path)
            block = disk.f_frsize
            reserve = min(DISK_RESERVE, disk.f_blocks * block // 16)
            free = disk.f_bavail * block + max(0, file_bytes - used) - reserve
            self._room = min(self.max_bytes - used, free)
        return self._room

    def spend(self, left: int) -> None:
        """Note how much room a commit has left."""
        self._room = left

    def full(self) -> StoreFull:
        """Build the error of a growing write that has no room, saying which room it is."""
        used, _ = self._usage()
        if used + _LITTLE_ROOM >= self.max_bytes:
            return StoreFull(
                f"The store {self.path} holds {used:,} of {self.max_bytes:,} allowed bytes; nothing was written. "
                "Take items out, or open it with a larger limit (PQ_STORE_MAX_BYTES)."
            )
        return StoreFull(
            f"The disk under the store {self.path} is almost full; nothing was written. "
            "Take items out, or make room on the disk."
        )

    def used(self) -> int:
        """Return the bytes of pages that hold data."""
        return self._usage()[0]

    # Life

    def check_file(self) -> None:
        """Raise `StoreUnavailable` when the open file is no longer the one at the path."""
        try:
            found = self._data.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            if found is None:
                raise StoreUnavailable(
                    f"The store's file {self._data} is gone. Put it back, or restart to begin an empty store."
                )
            self.reopen()

    def reopen(self) -> None:
        """Close and open the file again, waiting for the reads that are under way."""
        with self._gate:
            if self._closed:
                raise self._refusal()
            self._shut()
            self._open(create=False)

    def close(self) -> None:
        """Close the file, waiting for the reads that are under way."""
        with self._gate:
            self._closed = True
            self._shut()

    def _open(self, *, create: bool) -> None:
        sizes = sorted({max(MAP_BYTES, self.max_bytes + MAP_RESERVE), self.max_bytes + MAP_RESERVE}, reverse=True)
        try:
            for size in sizes:
                try:
                    self._env = self._map(size, create=create)
                    break
                except lmdb.MemoryError:
                    if size == sizes[-1]:
                        raise
            found = self._data.stat()
            self._identity = (found.st_dev, found.st_ino)
            self._opened().reader_check()
        except (lmdb.Error, OSError) as error:
            raise translate(error, self.path) from error

    def _map(self, size: int, *, create: bool) -> lmdb.Environment:
        return lmdb.open(
            self.path,
            map_size=size,
            max_readers=MAX_READERS,
            max_spare_txns=_SPARE_READS,
            readahead=False,
            mode=0o660,
            create=create,
        )

    def _shut(self) -> None:
        env, self._env = self._env, None
        self._gate.wait_for(lambda: not self._readers, 2 * MAX_TRANSACTION_SECONDS)
        if env is not None:
            if self._readers:
                self._env = env
                raise StoreUnavailable(f"The store {self.path} has a reader that does not end.")
            env.close()

    def _opened(self) -> lmdb.Environment:
        if self._env is None:
            if self._closed:
                raise self._refusal()
            self._open(create=False)
        return self._env  # type: ignore[return-value]

    def _refusal(self) -> StoreClosed:
        return StoreClosed(f"The store {self.path} was closed; open it again.")

    def _begin_read(self, env: lmdb.Environment) -> lmdb.Transaction:
        try:
            return env.begin()
        except lmdb.ReadersFullError:
            env.reader_check()
            return env.begin()

    def _leave(self) -> None:
        with self._gate:
            self._readers -= 1
            if not self._readers and self._env is None:
                self._gate.notify_all()

    def _usage(self) -> tuple[int, int]:
        with self._gate:
            env = self._opened()
            stat, info = env.stat(), env.info()
        page = stat["psize"]
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return pages * page, (info["last_pgno"] + 1) * page

    def _sweep(self, env: lmdb.Environment) -> None:
        now = time.monotonic()
        if now > self._sweep_at:
            self._sweep_at = now + _SWEEP_EVERY
            env.reader_check()


_EIO = 5
