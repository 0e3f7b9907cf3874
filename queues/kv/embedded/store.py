"""The embedded store: one engine per file and process, one handle per opener."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import lmdb

from queues.kv import boottime, lifecycle
from queues.kv.embedded.environment import Environment
from queues.kv.embedded.failures import FileReplaced, translate
from queues.kv.embedded.poller import Poller
from queues.kv.embedded.reads import EmbeddedReads
from queues.kv.embedded.room import DEFAULT_MAX_BYTES, SpaceLimit
from queues.kv.embedded.turns import WriterFairness
from queues.kv.embedded.writer import Writer
from queues.kv.errors import BadStoreURL
from queues.kv.lifecycle import Lifecycle
from queues.kv.port import Count, ReadTransaction, Server, Ticket, Transaction
from queues.kv.watching import Wake, WatchBoard, Watcher

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")


class Engine:
    """What all handles of one file share."""

    def __init__(self, path: Path, *, max_bytes: int, clock: Callable[[], float]) -> None:
        self.openers = 0
        self.clock = clock
        self.board = WatchBoard()
        self.environment = Environment(path, max_bytes=max_bytes)
        self.room = SpaceLimit(str(path), max_bytes, self.environment.usage)
        try:
            self._turns = WriterFairness(path / "turns")
        except OSError as error:
            self.environment.close()
            raise translate(error, str(path)) from error
        try:
            # A living writer shows it by itself, and one that is stopped is not waited for.
            if self.environment.hides_the_newest() and not self._turns.somebody_writes():
                self.environment.show_the_newest()
        except BaseException:
            self._turns.close()
            self.environment.close()
            raise
        self._count_lock = threading.Lock()
        self._reads = 0
        self.poller = Poller(self.board, self.environment.last_txnid, self.read, path.name)
        self.writer = Writer(
            self.environment, self.room, self._turns, self.board, self.poller, clock=clock, name=path.name
        )

    def read(self, fn: Callable[[ReadTransaction], T]) -> T:
        """Run `fn` on one version, in the calling thread."""
        try:
            txn = self.environment.begin_read()
        except FileReplaced:
            self.writer.run(_nothing)
            txn = self.environment.begin_read()
        try:
            tr = EmbeddedReads(txn, self.clock)
            lifecycle.enter()
            try:
                return fn(tr)
            except lmdb.Error as error:
                raise translate(error, self.environment.path) from error
            finally:
                lifecycle.leave()
                tr.end()
                with self._count_lock:
                    self._reads += tr.reads
        finally:
            self.environment.end_read(txn)

    def hold_still(self) -> bool:
        """Let no transaction be under way until `go_on`; False when one does not end."""
        if not self.writer.hold_still(_FORK_PATIENCE):
            return False
        self.environment.hold_still(_FORK_PATIENCE)
        return True

    def go_on(self) -> None:
        """Let transactions begin again."""
        self.environment.go_on()
        self.writer.go_on()

    def reads(self) -> int:
        """Return the reads of all handles."""
        return self._reads + self.writer.reads

    def close(self) -> None:
        """Finish what was accepted and release the files."""
        self.poller.stop()
        self.writer.close()
        self._turns.close()
        self.environment.close()


class EmbeddedStore:
    """A `KeyValueStore` on an LMDB file."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self._lifecycle = Lifecycle(url)
        writer = engine.writer
        self._run, self._serve, self._submit, self.withdraw = writer.run, writer.serve, writer.submit, writer.withdraw

    def read(self, fn: Callable[[ReadTransaction], T], *, background: bool = False) -> T:
        """Run `fn` on one consistent version and return its result."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        return self._engine.read(fn)

    def transact(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Run `fn` in the next commit and return its result once it is durable."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        return self._run(fn)

    def serve(self, server: Server[R, A], request: R) -> A:
        """Have `server` serve a request in the next commit and return its answer once it is durable."""
        if lifecycle.mark.running:  # asked here too: two calls cost more, for every push and pop
            lifecycle.refuse_nesting()
        if not self._lifecycle.usable:
            self._lifecycle.check()
        return self._serve(server, request)

    def submit(self, ticket: Ticket) -> None:
        """Have a request served in the next commit; its ticket lands once that is durable."""
        if lifecycle.mark.running:
            lifecycle.refuse_nesting()
        if not self._lifecycle.usable:
            self._lifecycle.check()
        self._submit(ticket)

    def watch(self, known: Mapping[bytes, bytes | None], *, timeout: float) -> bool:
        """Block until a key's value differs from what is known, or the time is up."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        board = self._engine.board
        watcher = Watcher(known, self)
        board.add(watcher)
        try:
            self._lifecycle.check()
            self._engine.poller.start()
            if self._engine.read(lambda tr: any(tr.get(key).wait() != value for key, value in known.items())):
                board.discard(watcher)
                return True
        except BaseException:
            board.discard(watcher)
            raise
        return board.wait(watcher, timeout)

    def interrupt(self) -> None:
        """Wake every thread that is in `watch`."""
        if self._lifecycle.forked:
            return
        self._engine.board.rouse_all(Wake.INTERRUPTED, self)

    def count(self) -> Count:
        """Return the machine's microseconds since its start: every process of this store runs on it."""
        return boottime.count()

    def keep_time(self, clock: Callable[[], float]) -> None:
        """Do nothing: this engine writes no times."""

    def reads(self) -> int:
        """Return how many reads have been issued to this file in this process."""
        return self._engine.reads()

    def size(self) -> tuple[int, int]:
        """Return (bytes of pages that hold data, bytes that pushes may fill)."""
        self._lifecycle.check()
        room = self._engine.room
        return room.used(), room.max_bytes

    def copy_into(self, folder: str) -> None:
        """Write the store as it is at one commit into a folder, as a file that can be opened as a store."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        self._engine.environment.copy_into(folder)

    def close(self) -> None:
        """Finish what was accepted, refuse the rest, release the files with the last handle."""
        lifecycle.refuse_nesting()
        if self._lifecycle.close():
            self._engine.board.rouse_all(Wake.CLOSED, self)
            _release(self._engine)


def _nothing(_: Transaction) -> None:
    """Have the writer look at its file."""


_engines: dict[str, Engine] = {}
_engines_lock = threading.RLock()
#: The engines that hold still while this process is forked.
_still: list[Engine] = []
#: Seconds that a fork waits for a commit and for reads to end, so that the child can open the same file.
_FORK_PATIENCE = 2.0


def open_embedded(path: str, *, max_bytes: int | None, clock: Callable[[], float]) -> EmbeddedStore:
    """Open the store in a folder, creating it when it is not there; share it when this process has it open."""
    if not path:
        raise BadStoreURL("lmdb: needs the path of a folder, as in lmdb:var/pq.")
    real = os.path.realpath(path)
    with _engines_lock:
        engine = _engines.get(real)
        if engine is None:
            engine = Engine(Path(real), max_bytes=max_bytes or _default_max_bytes(), clock=clock)
            _engines[real] = engine
        elif max_bytes is not None:
            engine.room.max_bytes = max_bytes
        engine.openers += 1
        return EmbeddedStore(engine, f"lmdb:{path}")


def _default_max_bytes() -> int:
    text = os.environ.get("PQ_STORE_MAX_BYTES", "")
    if not text:
        return DEFAULT_MAX_BYTES
    if not text.isascii() or not text.isdigit() or not int(text):
        raise BadStoreURL("PQ_STORE_MAX_BYTES={text} is not a number of bytes.", text=repr(text))
    return int(text)


def _release(engine: Engine) -> None:
    with _engines_lock:
        engine.openers -= 1
        if engine.openers:
            return
        for path in [path for path, known in _engines.items() if known is engine]:
            del _engines[path]
        engine.close()


def _close_all() -> None:
    with _engines_lock:
        engines = list(_engines.values())
        _engines.clear()
        for engine in engines:
            engine.close()


def _hold_still() -> None:
    _engines_lock.acquire()
    _still.extend(engine for engine in _engines.values() if engine.hold_still())


def _go_on() -> None:
    while _still:
        _still.pop().go_on()
    _engines_lock.release()


def _leave_to_parent() -> None:
    for engine in _engines.values():
        engine.environment.abandon()
    _engines.clear()
    _go_on()


atexit.register(_close_all)
os.register_at_fork(before=_hold_still, after_in_parent=_go_on, after_in_child=_leave_to_parent)
