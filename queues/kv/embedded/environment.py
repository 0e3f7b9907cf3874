"""One LMDB environment: opened once per file and process, reopened when a commit's outcome is in doubt."""

from __future__ import annotations

import ctypes
import logging
import os
import struct
import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import lmdb

from queues.kv.embedded import damage, file_permissions
from queues.kv.embedded.checkpoints import Checkpoints, readers
from queues.kv.embedded.failures import FileReplaced, is_interrupt, translate
from queues.kv.embedded.fairness import NOT_WAITING, WriterFairness
from queues.kv.embedded.file_system import refuse_network
from queues.kv.embedded.space_limit import KNOWN_FOR, LITTLE, SpaceLimit
from queues.kv.embedded.transaction import Batch
from queues.kv.errors import StoreClosed, StoreError, StoreUnavailable
from queues.kv.port import MAX_TRANSACTION_SECONDS

log = logging.getLogger("queues.kv")

#: Bytes of address space, reserved up front because a map cannot grow while other processes have the file open. Only
#: address space: the file stays sparse and the mapping is read-only and shared, so no memory is committed even
#: under strict overcommit, and 256 GiB fit into the smallest 39-bit address spaces.
MAP_BYTES = 256 << 30
#: Bytes of map kept beyond the limit, so that a full store can still be emptied.
MAP_RESERVE = 64 << 20
MAX_READERS = 1_024
#: Bytes of the lock file: a header and a slot per reader.
_LOCK_BYTES = 64 * MAX_READERS + 4_096
#: Read transactions kept for reuse: each saves a search for a reader slot.
_SPARE_READS = 16
#: Seconds between sweeps of dead processes' reader slots.
_SWEEP_EVERY = 30.0
#: Commits after which a reader is told of: those of two checkpoints are the usual.
_OLD = 10_000


#: Keys with this prefix are the writers' own: the last commit of each process.
_MARK_PREFIX = b"\xff\x02writer/"


class Outcome(Enum):
    """The outcome of a commit that raised."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


class Environment:
    """The file, its map and its readers. Thread-safe; one write transaction at a time, in one thread."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self.path = str(path)
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._gate = threading.Condition(self._lock)  # to enter it costs more than to take its lock
        self._readers = 0
        self._env: lmdb.Environment | None = None
        self._identity = (0, 0)
        #: Bytes of the open file, at least: LMDB never makes it smaller.
        self._size = 0
        self._shutting = False
        self._closed = False
        #: Called when the file was opened again: it may be another one, with other numbers of commits.
        self.reopened: Callable[[], None] = lambda: None
        self._spares: list[lmdb.Transaction[bytes]] = []
        #: From `begin_write` to `end_write`.
        self._writing: lmdb.Transaction[bytes] | None = None
        self._sweep_at = 0.0
        try:
            path.mkdir(mode=file_permissions.FOLDER, parents=True, exist_ok=True)
            refuse_network(path)
            file_permissions.warn_of_writers(path)
        except OSError as error:
            raise translate(error, self.path) from error
        self.folder = path
        self._data = path / "data.mdb"
        self._data_path = os.fsencode(self._data)  # looked at before every commit, and a Path takes its time
        self.checkpoints = Checkpoints(path, self._rest)
        self.space = SpaceLimit(self.path, max_bytes, self.usage)
        #: Bytes that growing writes may still add, as far as they are known, and until when.
        self.room, self._room_until = 0, 0.0
        self._process = os.urandom(16)
        self._sequence = 0
        self._open(create=True)
        try:
            self.fairness = WriterFairness(path / "turns")
        except OSError as error:
            self._close_file()
            raise translate(error, self.path) from error
        try:
            # A living writer shows it by itself, and one that is stopped is not waited for.
            if self.hides_the_newest() and not self.fairness.another_writes():
                self.show_the_newest()
        except BaseException:
            self.close()
            raise

    # Reading

    def begin_read(self) -> lmdb.Transaction[bytes]:
        """Begin a read transaction in the calling thread; give it back with `end_read`.

        Raises `FileReplaced` when the writer has to open another file first.
        """
        self.check_file()
        with self._lock:
            env = self._opened()
            self._readers += 1
        try:
            return self._begin_read(env)
        except BaseException as error:
            self._leave()
            if isinstance(error, lmdb.Error):
                raise translate(error, self.path) from error
            raise

    def end_read(self, txn: lmdb.Transaction[bytes]) -> None:
        """End a read transaction."""
        try:
            txn.abort()
        finally:
            self._leave()

    def last_txnid(self) -> int:
        """Return the number of the last commit of any process; takes about a microsecond."""
        with self._gate:
            return self._opened().info()["last_txnid"]

    def usage(self) -> tuple[int, int]:
        """Return the bytes of the pages that hold data, and of the whole file."""
        with self._gate:
            env = self._opened()
            stat, info = env.stat(), env.info()
        page = stat["psize"]
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return pages * page, (info["last_pgno"] + 1) * page

    def copy_into(self, folder: str) -> None:
        """Write the file as it is at the newest commit into a folder, beside whatever goes on in it."""
        self.check_file()
        with self._gate:
            env = self._opened()
            self._readers += 1
        try:
            env.copy(folder)
        except lmdb.Error as error:
            raise translate(error, folder) from error
        finally:
            self._leave()

    # Writing

    def begin_write(self) -> lmdb.Transaction[bytes]:
        """Begin the write transaction, waiting for other processes' to end; `end_write` follows in any case.

        Only the thread that executes a batch may.
        """
        now = time.monotonic()
        if self.room < LITTLE or now > self._room_until:
            self._room_until = now + KNOWN_FOR
            self.room = self.space.left()
            if self.checkpoints.is_gone():
                self._reopen()
        fairness, slot = self.fairness, self.fairness.slot
        if fairness.map[: len(NOT_WAITING)] != NOT_WAITING:
            fairness.give_way()
        if slot is not None:
            fairness.ticket += 1
            fairness.marks[slot] = fairness.ticket
        try:
            try:
                self.check_file()
            except FileReplaced:
                self._reopen()
            try:
                return self._begin_write()
            except lmdb.PanicError:  # an earlier commit failed half-way
                self._reopen()
                return self._begin_write()
        except lmdb.Error as error:
            raise translate(error, self.path) from error
        finally:
            if slot is not None:
                fairness.writing[slot] = 1  # first, so that one of the marks is there all the time
                fairness.marks[slot] = 0

    def end_write(self) -> None:
        """Let go of the write lock, if an interrupt left that behind, and tell other processes."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.abort()
        if self.fairness.slot is not None:
            self.fairness.writing[self.fairness.slot] = 0

    def seal(self, batch: Batch) -> None:
        """Write what tells, later, whether this commit was done."""
        batch.flush_all()
        if self.fairness.slot is not None:
            self._sequence += 1
            batch.put(*self._mark())

    def commit(self, batch: Batch) -> None:
        """Commit, and return once it is durable. Raises lmdb.Error, OSError."""
        with self._lock:
            env = self._opened()
        self.checkpoints.commit(env, batch.txn, batch.now)

    def settle(self, error: BaseException, batch: Batch) -> Outcome:
        """Find the outcome of a commit that raised: reopen the file, and look for its number and its mark."""
        if is_interrupt(error) and _is_over(batch.txn) and self.checkpoints.log.sound:
            return Outcome.DONE  # the thread was interrupted just after it
        batch.txn.abort()
        mark = self._mark() if self.fairness.slot is not None else None
        try:
            self._reopen()
            with self._gate:
                env = self._opened()
            txn = env.begin(write=True)
            try:
                done = txn.id() > batch.version and (None if mark is None else txn.get(mark[0]) == mark[1])
                self.checkpoints.settle(env, txn.id() - 1)
            finally:
                txn.abort()
        except (lmdb.Error, OSError, StoreError):
            return Outcome.UNKNOWN
        return Outcome.UNKNOWN if done is None else Outcome.DONE if done else Outcome.NOT_DONE

    def others_write(self) -> bool:
        """Say whether another process waits for the write lock or has it; to be asked while this one does neither."""
        return self.fairness.another_is_here()

    def _mark(self) -> tuple[bytes, bytes]:
        return _MARK_PREFIX + b"%d" % (self.fairness.slot or 0), self._process + self._sequence.to_bytes(8, "big")

    def hides_the_newest(self) -> bool:
        """Say whether readers do not see the newest commit: LMDB tells them of it after it is written."""
        txn = self.begin_read()
        try:
            return txn.id() < self.last_txnid()
        finally:
            self.end_read(txn)

    def show_the_newest(self) -> None:
        """Have readers see the newest commit of a writer that died before it told them; no process may be writing.

        LMDB leaves that to the next writer; but a store may be opened just to see whether the commit was done.
        """
        with self._gate:
            env = self._opened()
        try:
            env.begin(write=True).abort()
        except lmdb.Error as error:
            raise translate(error, self.path) from error

    # Life

    def close(self) -> None:
        """Close the file, waiting for the reads that are under way."""
        self.fairness.close()
        self._close_file()

    def _close_file(self) -> None:
        self.checkpoints.stop()
        with self._gate:
            self._closed = True
            if self._env is not None:
                self.checkpoints.leave_whole(self._env)
            self._shut()
        self.checkpoints.close()

    def hold_still(self, timeout: float) -> None:
        """Keep the file as it is, with no read under way, until `go_on`: this process is about to be forked."""
        self._gate.acquire()
        self._gate.wait_for(lambda: not self._readers, timeout)
        if self._env is not None:
            try:
                self._spares = [self._env.begin() for _ in range(_SPARE_READS)]
            except lmdb.Error:  # no slots are left: the child will not be able to open this file
                return

    def go_on(self) -> None:
        """Let other threads use the file again."""
        while self._spares:
            self._spares.pop().abort()
        self._gate.release()

    def abandon(self) -> None:
        """Let go of a parent's file without touching it, in a forked child.

        Closing it would free the parent's reader slots. Dropping it does so only with the spare transactions that
        the binding keeps for reuse, which is why `hold_still` has taken those out.
        """
        self._spares.clear()
        self._env = None
        self._closed = True
        self.checkpoints.abandon()

    def check_file(self) -> None:
        """Raise `StoreUnavailable` when the open file is no longer the one at the path."""
        least = self._size  # before the look: another thread may look later, at a larger file
        try:
            identity, size = file_status(self._data_path)
        except OSError as error:
            if is_interrupt(error):
                raise
            raise StoreUnavailable(
                "The store's file {path} is gone. Put it back, or restart to begin an empty store.",
                path=str(self._data),
            ) from error
        if identity != self._identity:
            raise FileReplaced("The store's file {path} was replaced by another one. Try again.", path=str(self._data))
        if size < least:
            raise damage.damaged(self.path, "its file data.mdb was cut off")
        self._size = size

    def _reopen(self) -> None:
        """Close and open the file again, once its reads have ended: by the thread that executes a batch."""
        with self._gate:
            if self._closed:
                raise self._refusal()
            env = self._env
        if env is not None:
            self.checkpoints.let_go(env)
        with self._gate:
            self._shutting = True
            try:
                self._shut()
                self._open(create=False)
                self.reopened()
            finally:
                self._shutting = False
                self._gate.notify_all()

    def _open(self, *, create: bool) -> None:
        env = None
        try:
            damage.refuse_empty(self.folder, self._data)  # before this process makes files beside it
            self.checkpoints.prepare()
            damage.check(self.folder, self._data, opened_before=(self.folder / "turns").exists())
            env = self._map_some(create=create)
            if any(process == os.getpid() for process, _ in readers(env)):  # of a killed one, in a container, say
                with env.begin(write=True):
                    self.checkpoints.log.sound = False  # no writer relies on what it read
                env.begin().abort()  # with that, closing clears all slots of this number
                env.close()
                env = self._map_some(create=False)
            self._identity, self._size = file_status(self._data_path)
            self.checkpoints.opened(env)
        except BaseException as error:
            self.checkpoints.give_up()
            if env is not None:
                env.close()
            if create:
                self.checkpoints.close()
            if isinstance(error, (lmdb.Error, OSError)):
                raise translate(error, self.path) from error
            raise
        self._env = env

    def _map_some(self, *, create: bool) -> lmdb.Environment:
        """Map the file, with less address space where there is not as much."""
        sizes = sorted({max(MAP_BYTES, self._max_bytes + MAP_RESERVE), self._max_bytes + MAP_RESERVE}, reverse=True)
        try:
            return self._map(sizes[0], create=create)
        except lmdb.MemoryError:
            if len(sizes) == 1:
                raise
            return self._map(sizes[1], create=create)

    def _map(self, size: int, *, create: bool) -> lmdb.Environment:
        folder = Path(self.path)
        # Only while this process does not have it open: closing any descriptor of it would drop LMDB's locks.
        os.close(file_permissions.open_file(folder / "lock.mdb", size=_LOCK_BYTES))
        env = lmdb.open(
            self.path,
            map_size=size,
            max_readers=MAX_READERS,
            max_spare_txns=_SPARE_READS,
            readahead=False,
            metasync=False,
            sync=False,
            mode=file_permissions.file_mode(folder),
            create=create,
        )
        try:
            file_permissions.settle(folder / "data.mdb")
        except BaseException:
            env.close()
            raise
        return env

    def _shut(self) -> None:
        env, self._env = self._env, None
        if env is None:
            return
        if not self._gate.wait_for(lambda: not self._readers, 2 * MAX_TRANSACTION_SECONDS):
            self._env = env
            raise StoreUnavailable("The store {path} has a read that does not end; it stays open.", path=self.path)
        self.checkpoints.give_up()
        env.close()

    def _opened(self) -> lmdb.Environment:
        if self._shutting:
            self._gate.wait_for(lambda: not self._shutting)
        if self._env is None:
            if self._closed:
                raise self._refusal()
            self._open(create=False)
        assert self._env is not None
        return self._env

    def _refusal(self) -> StoreClosed:
        return StoreClosed("The store {path} was closed; open it again.", path=self.path)

    def _begin_read(self, env: lmdb.Environment) -> lmdb.Transaction[bytes]:
        try:
            return env.begin()
        except lmdb.ReadersFullError:
            txn = env.begin(write=True)
            try:
                env.reader_check()
            finally:
                txn.abort()
            return env.begin()

    def _begin_write(self) -> lmdb.Transaction[bytes]:
        with self._lock:
            env = self._opened()
        txn = self._writing = env.begin(write=True)
        try:
            if time.monotonic() > self._sweep_at:
                self._sweep(env)
            self.checkpoints.begin(env, txn.id() - 1)
        except BaseException as error:
            txn.abort()
            if isinstance(error, OSError):
                raise translate(error, self.path) from error
            raise
        return txn

    def _rest(self) -> None:
        """Have the data file made whole, as there was no commit for a while. Raises lmdb.Error, OSError."""
        with self._gate:
            env = self._env
            if env is None or self._shutting or self._closed:
                return
            self._readers += 1
        try:
            txn = env.begin(write=True)
            try:
                self.checkpoints.leave(env, txn.id() - 1)
            finally:
                txn.abort()
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                self._gate.notify_all()

    def _sweep(self, env: lmdb.Environment) -> None:
        """Free the reader slots of dead processes: under the write lock, as a writer may rely on one of them."""
        self._sweep_at = time.monotonic() + _SWEEP_EVERY
        env.reader_check()
        self._warn_of_old_readers(env)

    def _warn_of_old_readers(self, env: lmdb.Environment) -> None:
        """Warn of processes that read an old commit: no page that was freed since is used again, and the file grows."""
        newest = env.info()["last_txnid"]
        for process, txnid in readers(env):
            if txnid is not None and newest - txnid > _OLD:
                log.warning(
                    "The store %s grows: process %s reads an old commit, perhaps as it is suspended", self.path, process
                )


def _is_over(txn: lmdb.Transaction[bytes]) -> bool:
    """Say whether a transaction was committed or aborted."""
    try:
        txn.id()
    except lmdb.Error:
        return True
    return False


#: Of linux/stat.h: a path relative to the working directory; the mask of inode and size.
_AT_FDCWD, _STATX_INO_SIZE = -100, 0x300
#: `struct statx`: inode, size; major and minor number of the device.
_STATX = ctypes.c_char * 256
_FIELDS = struct.Struct("=32xQQ88xII")


def file_status(path: bytes) -> tuple[tuple[int, int], int]:
    """Return the identity of the file at a path, and its bytes, without asking for its times. Raises OSError.

    Once a program has asked for a file's times, Linux (6.13 and later) notes the next change of it to the nanosecond.
    Then each commit changes the data file's inode, and a flush of the log may write that block, too: a fifth of a small
    commit.
    """
    status = _STATX()
    # It failed where the file is gone, and where a container's filter of system calls does not know it.
    if _statx is None or _statx(_AT_FDCWD, path, 0, _STATX_INO_SIZE, status):
        found = Path(os.fsdecode(path)).stat()
        return (found.st_dev, found.st_ino), found.st_size
    inode, size, major, minor = _FIELDS.unpack_from(status)
    return (os.makedev(major, minor), inode), size


def _find_statx() -> ctypes._NamedFuncPointer | None:
    # With the interpreter's lock held: giving it up and taking it again costs more than the call.
    try:
        statx = ctypes.PyDLL(None).statx
    except (AttributeError, OSError):  # another system
        return None
    statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return statx


_statx = _find_statx()
