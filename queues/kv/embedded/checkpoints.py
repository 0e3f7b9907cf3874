"""Checkpoints: with them a commit needs one flush, that of its record in the write-ahead log.

LMDB writes its pages without flushes, so a power cut may leave any of them behind. But it never changes a page that a
reader may need. So one process keeps a read transaction of the newest checkpoint, whose pages are all on the disk:
they are not used again until the next checkpoint. The first process that opens the store after a power cut puts the
checkpoint's meta pages back, and executes the records of the log once more.

A thread flushes the data file while commits go on; the next commit writes that checkpoint into the log. A second after
the last commit, and when the store is closed, the data file is made whole by itself.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import lmdb

from queues.kv.descriptor import Descriptor
from queues.kv.embedded import recovery
from queues.kv.embedded.failures import is_interrupt
from queues.kv.embedded.meta_pages import MetaPages
from queues.kv.embedded.write_ahead_log import (
    LINK_BYTES,
    MAX_RECORD,
    RING_BYTES,
    Checkpoint,
    Record,
    State,
    WriteAheadLog,
    pack,
)
from queues.kv.errors import StoreUnavailable

log = logging.getLogger("queues.kv")

#: A checkpoint begins after so many bytes of records, or so many commits.
BYTES, COMMITS = 1 << 19, 512
#: Seconds without a commit after which the data file is made whole.
REST = 1.0


class _Flush:
    """A flush of the data file, for the thread; it knows no transaction, as a forked child keeps what threads held."""

    def __init__(self, data: Descriptor) -> None:
        self.data = data
        self.done = False


class _Coming(NamedTuple):
    """A checkpoint that is on its way to the disk."""

    #: Keeps the checkpoint's pages.
    reader: lmdb.Transaction[bytes]
    checkpoint: Checkpoint
    flush: _Flush


class Checkpoints:
    """One process's part in it. All but opening and closing under the store's write lock.

    `rest` is called by the thread a second after the last commit; it calls `leave`, with the write lock held.
    """

    def __init__(self, folder: Path, rest: Callable[[], None]) -> None:
        self._folder = folder
        self._rest = rest
        self._log: WriteAheadLog | None = None
        #: The data file, open all the time: a checkpoint is made where the process has no descriptor left.
        self._data: Descriptor | None = None
        self._identity = (0, 0)
        #: Records that the data file has lost.
        self._lost: list[Record] = []
        #: Of the newest checkpoint, while this process keeps its pages.
        self._reader: lmdb.Transaction[bytes] | None = None
        self._coming: _Coming | None = None
        #: The header of the coming checkpoint was written.
        self._written = False
        #: For the thread: flushes, True when there is a reader, False to end.
        self._asked: queue.SimpleQueue[_Flush | bool] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def log(self) -> WriteAheadLog:
        """The log; there from `prepare` to `close`."""
        assert self._log is not None
        return self._log

    @property
    def data(self) -> Descriptor:
        """The data file; there from `opened` to `close`."""
        assert self._data is not None
        return self._data

    # Opening

    def prepare(self) -> None:
        """Before the file is opened: open the log, and set the file back to a checkpoint if it has lost commits.

        Raises StoreError, OSError.
        """
        if self._log is not None and self.is_gone():  # with the whole folder, say
            self._log.close()
            self._log = None
        if self._log is None:
            self._log = WriteAheadLog(self._folder)
            checkpoint = self._log.newest()  # a log of another release is refused while that uses it, too
            if self._log.sole and checkpoint is not None:
                self._lost = list(self._log.records(checkpoint))
                if self._lost:
                    recovery.set_back(self._folder, checkpoint)

    def opened(self, env: lmdb.Environment) -> None:
        """Execute again what the file has lost. Raises StoreUnavailable, lmdb.Error, OSError."""
        self._data = Descriptor(os.open(self._folder / "data.mdb", os.O_RDONLY | os.O_CLOEXEC))
        found, shared = os.fstat(self._data), self.log
        self._identity = found.st_dev, found.st_ino
        if self._lost:
            recovery.execute_again(self._folder, env, self._lost, self._make)
            self.give_up()
            self._lost = []
        elif shared.sole:
            self._trust(env)
        if shared.state.holder == os.getpid():  # a process that has ended had this number
            with env.begin(write=True):
                if (state := shared.state).holder == os.getpid():
                    shared.state = state._replace(holder=0)
        shared.share()

    def _trust(self, env: lmdb.Environment) -> None:
        """Go on from the newest checkpoint when the file is still the one of then."""
        checkpoint, newest = self.log.newest(), env.info()["last_txnid"]
        if checkpoint is None:
            _flush_data(self.data, self.log)
            flush(self._folder)  # both files are in it
        elif checkpoint.txnid == newest:
            found = self._describe(checkpoint.epoch, newest, checkpoint.start, checkpoint.link)
            if found == checkpoint:
                at, epoch, link = checkpoint.start, checkpoint.epoch, checkpoint.link
                self.log.state = State(newest, at, at, epoch, newest, *self._identity, holder=0, link=link)
                self.log.sound = True

    def give_up(self) -> None:
        """Let go of what belongs to the open file: it is closed, or opened anew."""
        if self._coming is not None:
            self._coming.reader.abort()
        if self._reader is not None:
            self._reader.abort()
        self._reader = self._coming = None

    def let_go(self, env: lmdb.Environment) -> None:
        """Let go of the checkpoint's pages while no process writes: a writer may rely on them."""
        if self._reader is None:
            return
        try:
            with env.begin(write=True):
                self._distrust()
                self.give_up()
        except lmdb.Error:  # the file cannot be used any more
            self._distrust()
            self.give_up()

    # Writing

    def is_gone(self) -> bool:
        """Say whether the log was removed or replaced, so that the file has to be opened anew."""
        return self._log is not None and self._log.is_gone()

    def begin(self, env: lmdb.Environment, newest: int) -> None:
        """See to it that the write transaction that has just begun leaves the checkpoint's pages alone.

        `newest` is the number of the last commit. Raises lmdb.Error, OSError, StoreUnavailable.
        """
        shared = self.log
        self._refuse_failed()
        state, own = shared.state, os.getpid()
        known = shared.sound and state.txnid == newest and (state.device, state.inode) == self._identity
        late = state.tail - state.base > RING_BYTES - 2 * MAX_RECORD or newest - state.checkpoint > 2 * COMMITS
        if not known or late:
            self._make(env, newest)
        elif state.holder == own and self._reader is not None:
            self._go_on(env, state, newest)
            return
        elif state.checkpoint == newest:
            self.give_up()
            self._keep(env.begin(), state)
        elif state.holder != own and _keeps(env, state):
            self.give_up()  # the other one keeps them
        else:
            self._make(env, newest)
        self._tell(True)

    def commit(
        self, env: lmdb.Environment, txn: lmdb.Transaction[bytes], written: Mapping[bytes, bytes | None]
    ) -> None:
        """Commit, and return once that is durable. Raises lmdb.Error, OSError."""
        self._refuse_failed()
        shared, pairs = self.log, pack(written)
        shared.sound = False
        state = shared.append(shared.state, txn.id(), pairs)
        if self._coming is not None and self._written:
            state = self._adopt(self._coming, state)
        if len(pairs) <= MAX_RECORD:
            shared.state = state  # before the commit, after which the lock is another process's
            shared.sound = True
            txn.commit()
            return
        txn.commit()
        with env.begin(write=True) as after:
            if not shared.sound:  # no other process has made the checkpoint
                self._refuse_failed()
                self._make(env, after.id() - 1)

    def settle(self, env: lmdb.Environment, newest: int) -> None:
        """After a commit that failed: see to it that what LMDB has is durable, and that no more is executed again.

        Raises lmdb.Error, OSError, StoreUnavailable.
        """
        self._refuse_failed()
        self._make(env, newest)

    def leave(self, env: lmdb.Environment, newest: int) -> None:
        """Make the data file whole, and keep no pages any more. Raises lmdb.Error, OSError."""
        if self._reader is not None and self.log.state.holder == os.getpid() and not self.log.failed:
            self._make_whole(env, newest)
        self.give_up()

    # Closing

    def stop(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._asked.put(False)
            self._thread.join()
            self._thread = None

    def leave_whole(self, env: lmdb.Environment) -> None:
        """Before the file is closed: make it whole unless another process will, so that it may be copied by itself."""
        if self._log is None:
            return
        try:
            if self._reader is not None or self._is_left(env):
                with env.begin(write=True) as txn:
                    if not self.log.failed and self._is_left(env):
                        self._make_whole(env, txn.id() - 1)
                    self.give_up()
        except (lmdb.Error, OSError) as error:
            log.warning("The store %s was closed with its log in use: %s", self._folder, error)
            self._distrust()

    def close(self) -> None:
        """Let go of the log, after the file was closed: the next process may recover the store from then on."""
        self.give_up()
        shared, self._log, self._data = self._log, None, None
        if shared is not None:
            shared.close()

    def _is_left(self, env: lmdb.Environment) -> bool:
        """Say whether the file is not whole, and no other process keeps the checkpoint's pages."""
        state = self.log.state
        whole = self.log.sound and state.checkpoint == env.info()["last_txnid"]
        own = state.holder in (0, os.getpid())
        return bool(state.epoch) and not (whole and state.holder == 0) and (own or not _keeps(env, state))

    def _distrust(self) -> None:
        """Have the next commit of any process make a checkpoint, if this one keeps the pages of the newest."""
        if self.log.state.holder == os.getpid():
            self.log.sound = False

    def abandon(self) -> None:
        """Let go of a parent's log in a forked child: dropping its read transactions leaves them to the parent."""
        self._reader = self._coming = self._data = None
        if self._log is not None:
            self._log.abandon()

    # Checkpoints

    def _refuse_failed(self) -> None:
        if self.log.failed:
            raise StoreUnavailable(
                "The disk of the store {path} failed. Nothing is written until all programs that have it open are "
                "stopped; the next one to open it executes again what the disk has lost.",
                path=str(self._folder),
            )

    def _make(self, env: lmdb.Environment, newest: int) -> None:
        """Make a checkpoint of the last commit at once, and keep its pages."""
        shared, reader = self.log, env.begin()
        shared.sound = False  # until its header and the state agree again
        try:
            _flush_data(self.data, shared)
            before = shared.newest()
            if before is not None:  # perhaps seen in memory alone: its slot must not be the only one on the disk
                shared.write_header(before)
                shared.flush()
            epoch = 1 if before is None else before.epoch + 1
            checkpoint = self._describe(epoch, newest, 0, os.urandom(LINK_BYTES))
            shared.write_header(checkpoint)
            shared.flush()
        except BaseException:
            reader.abort()
            raise
        self.give_up()
        self._keep(reader, State(newest, 0, 0, epoch, newest, *self._identity, holder=0, link=checkpoint.link))
        shared.sound = True

    def _make_whole(self, env: lmdb.Environment, newest: int) -> None:
        shared = self.log
        if not shared.sound or shared.state.checkpoint != newest:
            self._make(env, newest)
        shared.state = shared.state._replace(holder=0)

    def _go_on(self, env: lmdb.Environment, state: State, newest: int) -> None:
        """Begin a checkpoint when it is time, or write the one that was flushed into the log."""
        coming = self._coming
        if coming is None:
            if state.tail - state.base > BYTES or newest - state.checkpoint > COMMITS:
                self._ask(env, state, newest)
        elif coming.flush.done and not self._written:
            self.log.write_header(coming.checkpoint)
            self._written = True

    def _ask(self, env: lmdb.Environment, state: State, newest: int) -> None:
        """Begin a checkpoint, which the thread flushes."""
        checkpoint = self._describe(state.epoch + 1, newest, state.tail, state.link)
        flush = _Flush(self.data)
        self._coming, self._written = _Coming(env.begin(), checkpoint, flush), False
        if not self._tell(flush):
            self._make(env, newest)

    def _adopt(self, coming: _Coming, state: State) -> State:
        """Take a checkpoint whose header is on the disk for the newest one."""
        checkpoint, reader = coming.checkpoint, self._reader
        self._reader, self._coming = coming.reader, None
        if reader is not None:
            reader.abort()
        return state._replace(base=checkpoint.start, epoch=checkpoint.epoch, checkpoint=checkpoint.txnid)

    def _keep(self, reader: lmdb.Transaction[bytes], state: State) -> None:
        self._reader = reader
        self.log.state = state._replace(holder=os.getpid())

    def _describe(self, epoch: int, newest: int, start: int, link: bytes) -> Checkpoint:
        metas = MetaPages.read(self.data)
        assert metas is not None
        roots = metas.digest_of_roots(self.data)
        return Checkpoint(epoch, newest, start, link, metas.page_size, roots, metas.content)

    # The thread

    def _tell(self, what: _Flush | bool) -> bool:
        """Tell the thread; False without one."""
        if self._thread is None:
            asked: queue.SimpleQueue[_Flush | bool] = queue.SimpleQueue()
            try:
                thread = threading.Thread(target=self._work, args=(asked,), name="pq-checkpoints", daemon=True)
                thread.start()
            except RuntimeError:  # a limit of the machine
                return False
            except BaseException:  # a signal's, and the thread may have been started
                asked.put(False)
                raise
            self._thread, self._asked = thread, asked
        self._asked.put(what)
        return True

    def _work(self, requests: queue.SimpleQueue[_Flush | bool]) -> None:
        """Flush the data file when asked; after a rest, have it made whole."""
        seen = None
        while True:
            try:
                asked = requests.get(timeout=None if self._reader is None else REST)
            except queue.Empty:
                seen = self._look(seen)
                continue
            if asked is False:
                return
            if isinstance(asked, _Flush):
                self._flush(asked)

    def _flush(self, flush: _Flush) -> None:
        try:
            os.fdatasync(flush.data)
            flush.done = True
        except OSError:
            log.exception("The disk of the store %s failed", self._folder)
            self.log.fail()

    def _look(self, seen: State | None) -> State | None:
        """Call `rest` when nothing was committed since the state that was seen."""
        try:
            state = self.log.state
            if state == seen or state.holder != os.getpid():
                self._rest()
        except Exception:  # never end: nothing else lets the pages go
            log.exception("The data file of the store %s could not be made whole yet", self._folder)
            return None
        return state


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_data(data: int, shared: WriteAheadLog) -> None:
    try:
        os.fdatasync(data)
    except OSError as error:
        if not is_interrupt(error):
            shared.fail()
        raise


def _keeps(env: lmdb.Environment, state: State) -> bool:
    """Say whether the process that keeps the checkpoint's pages still has its read transaction."""
    return any(
        process == state.holder and txnid is not None and txnid <= state.checkpoint for process, txnid in readers(env)
    )


def readers(env: lmdb.Environment) -> Iterator[tuple[int, int | None]]:
    """Return the process of each reader's slot, and the commit that is read; None where none is."""
    for line in env.readers().splitlines()[1:]:  # below: process, thread, commit
        if len(row := line.split()) == 3:
            yield int(row[0]), int(row[2]) if row[2].isdigit() else None
