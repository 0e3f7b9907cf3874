"""The embedded store: one engine per file and process, one handle per opener."""

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from queues.kv import boottime, lifecycle
from queues.kv.embedded import damage, write_ahead_log
from queues.kv.embedded.environment import Environment, Outcome
from queues.kv.embedded.failures import EngineFailure, FileReplaced, is_interrupt, translate
from queues.kv.embedded.file_system import utf8_path
from queues.kv.embedded.host import HOST, Request
from queues.kv.embedded.host_client import Sharing
from queues.kv.embedded.poller import Poller
from queues.kv.embedded.space_limit import DEFAULT_MAX_BYTES
from queues.kv.embedded.transaction import Batch, EmbeddedReads
from queues.kv.errors import BadStoreURL, OutcomeUnknown, StoreClosed, StoreDamaged, StoreError, StoreUnavailable
from queues.kv.group_commit import Combiner, fail
from queues.kv.lifecycle import Lifecycle
from queues.kv.limits import MOST_BYTES
from queues.kv.port import Count, ReadTransaction, Server, Ticket, Transaction, Wire
from queues.kv.watching import Wake, WatchBoard, Watcher

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")

log = logging.getLogger("queues.kv")

#: Requests of one batch.
MAX_TICKETS = 2_000
#: The share of the last commit's time for which a leader waits for the next caller, and its bounds in seconds.
LINGER, PAUSE, LONGEST_PAUSE = 0.2, 0.000_5, 0.005
#: No commits: a first number and a last.
_NO_COMMITS = (1, 0)


class Engine:
    """What all handles of one file share: the file, its readers, and the combiner that executes writes."""

    def __init__(self, environment: Environment, *, clock: Callable[[], float], **scheduled: Any) -> None:
        self.openers = 0
        self.clock = clock
        self.board = WatchBoard()
        self.environment = environment
        self.space = environment.space
        self._count_lock = threading.Lock()
        self._reads = 0
        #: The first and the last number of the latest commits that were all this process's.
        self._own = _NO_COMMITS
        self.poller = Poller(self.board, environment.last_txnid, self._made_all, self.read, environment.folder.name)
        environment.reopened = self._forget_own
        self.combiner = Combiner(
            self._execute, most=MAX_TICKETS, linger=LINGER, pauses=(PAUSE, LONGEST_PAUSE), abreast=1, **scheduled
        )
        self.sharing = Sharing(
            environment.folder,
            read=self.read_own,
            arrive=self.combiner.arrive,
            attend=self.combiner.attend,
        )
        self.election = self.sharing.election
        self._working = threading.RLock()

    def read(self, fn: Callable[[ReadTransaction], T]) -> T:
        """Run `fn` on one version, in the calling thread."""
        try:
            txn = self.environment.begin_read()
        except FileReplaced:
            if threading.get_ident() == self.combiner.helping:  # it would wait for itself
                raise
            self.combiner.serve(None, _nothing)
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
        if not self._working.acquire(timeout=_FORK_PATIENCE):
            return False
        self.environment.hold_still(_FORK_PATIENCE)
        return True

    def go_on(self) -> None:
        """Let transactions begin again."""
        self.environment.go_on()
        self._working.release()

    def reads(self) -> int:
        """Return the reads of all handles."""
        return self._reads

    def close(self) -> None:
        """Finish what was accepted and release the files."""
        self.poller.stop()
        self.sharing.finish()
        self.combiner.close(lambda: StoreClosed("The store was closed; open it again."))
        self.sharing.close()
        self.environment.close()

    def read_own(self, key: bytes) -> bytes | None:
        """Read a key of the engine's own; None where the file cannot be read."""
        try:
            self.environment.check_file()  # one that was cut off is not touched
            txn = self.environment.begin_read()
        except StoreError:  # the commit says why
            return None
        try:
            return txn.get(key)
        finally:
            self.environment.end_read(txn)

    # Writing

    def _execute(self, tickets: list[Ticket]) -> float:
        """Run a batch of functions and requests in one commit, here or in the process that hosts the store.

        See `Combiner`.
        """
        mark = lifecycle.mark
        mark.running = True
        try:
            with self._working:
                try:
                    began = time.perf_counter()
                    if self.election.host is None and self.sharing.send(tickets):
                        if rest := [ticket for ticket in tickets if not ticket.answered]:
                            self._commit_batch(rest, more=False)
                        return time.perf_counter() - began
                    return self._commit_batch(tickets)
                except Exception as error:
                    if self.sharing.end_doubts(tickets, failed=True) and not is_interrupt(error):
                        return 0.0
                    raise
                finally:
                    if self.sharing.doubted:
                        self.sharing.end_doubts(tickets)
                    self.environment.end_write()
        finally:
            mark.running = False

    def _commit_batch(self, tickets: list[Ticket], *, more: bool = True) -> float:
        combiner, sharing, election = self.combiner, self.sharing, self.election
        batch = self._begin()
        if more:
            combiner.take(tickets)
        done: list[Ticket] = []
        try:
            try:
                host = batch.txn.get(HOST)
                if not tickets or sharing.doubted or type(tickets[0]) is Request or host != election.settled:
                    tickets = election.begin(batch, tickets)
                batch.run(tickets, done)
                if batch.wrote:
                    if election.host is not None and election.host.must_note:
                        election.host.note(batch, done)
                    self.environment.seal(batch)
            finally:
                self._reads += batch.reads
        except (EngineFailure, lmdb.Error) as error:
            batch.txn.abort()
            election.failed()
            log.info("A batch of %d functions failed and runs again one by one: %s", len(done), error)
            self._run_each(done)
            return 0.0
        except BaseException:
            batch.txn.abort()
            election.failed()
            raise
        if not batch.wrote:
            batch.txn.abort()
            election.committed()
            _answered(done)
            return 0.0
        began = time.perf_counter()
        if self._commit(batch, done) is not None:
            self._run_each(done)
        return time.perf_counter() - began

    def _begin(self) -> Batch:
        txn = self.environment.begin_write()
        return Batch(txn, self.environment.room, clock=self.clock, full=self.space.full)

    def _commit(self, batch: Batch, done: Sequence[Ticket]) -> StoreError | None:
        """Commit, and answer these requests; return the error when nothing was written, so that all may run again."""
        environment = self.environment
        try:
            self._note_own(batch.version)
            environment.commit(batch)
            self._told(batch, done)
        except BaseException as error:
            self._forget_own()
            try:
                outcome = environment.settle(error, batch)
            except Exception:
                log.exception("The outcome of a commit of %s could not be found", environment.path)
                outcome = Outcome.UNKNOWN
            finally:
                batch.txn.abort()
            if outcome is not Outcome.DONE:
                self.election.failed()
            if outcome is Outcome.DONE:
                self._told(batch, done)
            elif outcome is Outcome.UNKNOWN:
                unknown = OutcomeUnknown(
                    "The store {path} failed while committing ({error}); whether the transaction was applied "
                    "is not known. Look before you try again.",
                    path=environment.path,
                    error=str(error),
                )
                fail(done, unknown)
            if not isinstance(error, Exception) or is_interrupt(error):
                raise
            log.warning("A commit failed (%s); its outcome: %s", error, outcome.value)
            return translate(error, environment.path) if outcome is Outcome.NOT_DONE else None
        return None

    def _note_own(self, version: int) -> None:
        """Note the number of a commit of this process before it happens: its watchers are told directly."""
        first, last = self._own
        self._own = (first if last <= version <= last + 1 else version, version)

    def _forget_own(self) -> None:
        """Forget these numbers: that of a commit that failed, and all in another file, may be another process's."""
        self._own = _NO_COMMITS

    def _made_all(self, first: int, last: int) -> bool:
        """Say whether all commits of these numbers were this process's."""
        own_first, own_last = self._own
        return own_first <= first <= last <= own_last

    def _told(self, batch: Batch, done: Sequence[Ticket]) -> None:
        """Note a commit: requests are answered, watchers are woken."""
        environment = self.environment
        environment.room = batch.room
        if not self.election.settled:
            self.election.committed()
        _answered(done)
        if self.board.by_key:  # first: a caller that waits for changes next is not told of its own
            try:
                self.board.notify(batch.now.keys())
            except Exception:  # what is done is to be answered
                log.exception("Not all watchers of %s were told of a commit", environment.path)
                self._forget_own()  # the poller tells them

    def _run_each(self, tickets: Sequence[Ticket]) -> None:
        """Run each function in a commit of its own, so that only the guilty one fails."""
        path = self.environment.path
        for ticket in tickets:
            try:
                self._run_in_own_commit(ticket)
            except EngineFailure as error:
                fail([ticket], translate(error.cause, path))
            except (lmdb.Error, OSError) as error:
                fail([ticket], translate(error, path))
            except StoreError as error:
                fail([ticket], error)
            except Exception as error:  # unknown: the next ones are tried all the same
                log.exception("A function could not be run on %s", path)
                fail([ticket], error)

    def _run_in_own_commit(self, ticket: Ticket) -> None:
        batch = self._begin()
        try:
            for left in self.election.begin(batch, [ticket]):
                batch.run_one(left)
            if batch.wrote:
                if self.election.host is not None and self.election.host.must_note:
                    self.election.host.note(batch, [ticket])
                self.environment.seal(batch)
        except BaseException:
            batch.txn.abort()
            self.election.failed()
            raise
        finally:
            self._reads += batch.reads
        if not batch.wrote:
            batch.txn.abort()
            self.election.committed()
            _answered([ticket])
        elif (failure := self._commit(batch, [ticket])) is not None:
            raise failure


class EmbeddedStore:
    """A `KeyValueStore` on an LMDB file."""

    def __init__(self, engine: Engine, url: str) -> None:
        self.engine = engine
        self._lifecycle = Lifecycle(url)
        self._wires: list[Wire] = []
        self._sharing, self._combiner = engine.sharing, engine.combiner
        combiner = engine.combiner
        self._serve, self._submit, self.withdraw = combiner.serve, combiner.submit, combiner.withdraw

    def read(self, fn: Callable[[ReadTransaction], T], *, background: bool = False) -> T:
        """Run `fn` on one consistent version and return its result."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        return self.engine.read(fn)

    def transact(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Run `fn` in the next commit and return its result once it is durable."""
        if lifecycle.mark.running:
            lifecycle.refuse_nesting()
        if not self._lifecycle.usable:
            self._lifecycle.check()
        result: T = self._serve(None, fn)
        return result

    def serve(self, server: Server[R, A], request: R) -> A:
        """Have `server` serve a request in the next commit and return its answer once it is durable."""
        if lifecycle.mark.running:  # asked here too: two calls cost more, for every push and pop
            lifecycle.refuse_nesting()
        if not self._lifecycle.usable:
            self._lifecycle.check()
        doubt, sharing = None, self._sharing
        hosts = sharing.election.host is not None
        if not hosts and self._combiner.idle and (ticket := sharing.ask(server, request)) is not None:
            if ticket.answered:
                sent: A = ticket.result()
                return sent
            doubt = ticket.doubt
        answer: A = self._serve(server, request, doubt)
        return answer

    def submit(self, ticket: Ticket) -> None:
        """Have a request served in the next commit; its ticket lands once that is durable."""
        if lifecycle.mark.running:
            lifecycle.refuse_nesting()
        if not self._lifecycle.usable:
            self._lifecycle.check()
        self._submit(ticket)

    def execute_here(self, ticket: Ticket) -> bool:
        """Have a request served in the calling thread; False where another request or process is in the way."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        assert ticket.server is not None
        hosted_elsewhere = self._sharing.election.host is None and ticket.server.wire is not None
        return not hosted_elsewhere and self._combiner.execute_here(ticket, self.engine.environment.others_write)

    def watch(self, known: Mapping[bytes, bytes | None], *, timeout: float) -> bool:
        """Block until a key's value differs from what is known, or the time is up."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        board = self.engine.board
        watcher = Watcher(known, self)
        board.add(watcher)
        try:
            self._lifecycle.check()
            self.engine.poller.start()
            if self.engine.read(lambda tr: any(tr.get(key).wait() != value for key, value in known.items())):
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
        self.engine.board.rouse_all(Wake.INTERRUPTED, self)

    def host(self, wire: Wire) -> None:
        """Let this process execute requests of other ones that come by this wire."""
        self._wires.append(wire)
        self.engine.sharing.wires.setdefault(wire.root, []).append(wire)

    def count(self) -> Count:
        """Return the machine's microseconds since its start: every process of this store runs on it."""
        return boottime.count()

    def keep_time(self, clock: Callable[[], float]) -> None:
        """Do nothing: this engine writes no times."""

    def reads(self) -> int:
        """Return how many reads have been issued to this file in this process."""
        return self.engine.reads()

    def size(self) -> tuple[int, int]:
        """Return (bytes of pages that hold data, bytes that pushes may fill)."""
        self._lifecycle.check()
        space = self.engine.space
        return space.used(), space.max_bytes

    def copy_into(self, folder: str) -> None:
        """Write the store as it is at one commit into a folder, as a file that can be opened as a store."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        self.engine.environment.copy_into(folder)

    def close(self) -> None:
        """Finish what was accepted, refuse the rest, release the files with the last handle."""
        lifecycle.refuse_nesting()
        if self._lifecycle.close():
            self.engine.board.rouse_all(Wake.CLOSED, self)
            for wire in self._wires:
                self.engine.sharing.wires[wire.root].remove(wire)
            _release(self.engine)


def _nothing(_: Transaction) -> None:
    """Have the leader look at its file."""


def _answered(tickets: Sequence[Ticket]) -> None:
    for ticket in tickets:
        ticket.answered, ticket.doubt = True, None


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
    real = utf8_path(os.path.realpath(path))
    with _engines_lock:
        engine = _engines.get(real)
        if engine is None:
            engine = Engine(Environment(Path(real), max_bytes=max_bytes or _default_max_bytes()), clock=clock)
            _engines[real] = engine
        elif max_bytes is not None:
            engine.space.max_bytes = max_bytes
        engine.openers += 1
        return EmbeddedStore(engine, f"lmdb:{path}")


def verify_embedded(path: str) -> None:
    """Have all of the store in a folder read, once what it has lost in a power cut was executed again.

    It is open meanwhile, so that no other process recovers it. Raises `StoreDamaged`, `StoreUnavailable`.
    """
    folder, kv = Path(path), None
    if all((folder / name).exists() for name in ("data.mdb", write_ahead_log.NAME)):
        try:
            kv = open_embedded(path, max_bytes=None, clock=time.monotonic)
        except StoreDamaged:
            raise
        except StoreUnavailable as error:  # read-only, say, or its disk is full
            log.info("The store %s is read as it is: %s", path, error)
    try:
        damage.verify(folder, recovered=kv is not None and not kv.engine.environment.checkpoints.log.failed)
    finally:
        if kv is not None:
            kv.close()


def _default_max_bytes() -> int:
    text = os.environ.get("PQ_STORE_MAX_BYTES", "")
    if not text:
        return DEFAULT_MAX_BYTES
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= MOST_BYTES):
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
        engine.sharing.abandon()
    _engines.clear()
    _go_on()


atexit.register(_close_all)
os.register_at_fork(before=_hold_still, after_in_parent=_go_on, after_in_child=_leave_to_parent)
