"""The simulated store: `memory:` is private to its opener, `memory:NAME` is shared within the process."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from queues.kv import lifecycle
from queues.kv.bells import Bell
from queues.kv.commit_slots import SlotPool
from queues.kv.exactly_once import ExactlyOnce
from queues.kv.group_commit import MAX_REQUESTS, Combiners, start_thread
from queues.kv.lifecycle import Lifecycle, on_fork
from queues.kv.port import MAX_TRANSACTION_SECONDS, Count, ReadTransaction, Transaction, Wire
from queues.kv.simulated.attempt import Attempt
from queues.kv.simulated.faults import Fault, Faults, JumpingClock
from queues.kv.simulated.history import History
from queues.kv.simulated.late_commits import LateCommits
from queues.kv.simulated.schedule import Point, Schedule, unscheduled
from queues.kv.simulated.transaction import SimulatedTransaction
from queues.kv.watching import Wake, WatchBoard, Watcher

T = TypeVar("T")


class Memory:
    """What the openers of one memory store share."""

    def __init__(self) -> None:
        self.history = History()
        self.board = WatchBoard()
        self.late = LateCommits()
        self.openers = 0
        #: Of its clock; a recovery begins another one.
        self.epoch = secrets.token_hex(8)


class ScheduledBell(Bell):
    """What threads of a schedule sleep on."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._rang = False

    def ring(self) -> None:
        """Let the listener go on."""
        self._rang = True

    def listen(self) -> None:
        """Let other threads go first until it rings."""
        while not self._rang:
            self._schedule(Point.WAIT)
        self._rang = False

    def listen_for(self, seconds: float) -> bool:
        """Let another thread go first."""
        self._schedule(Point.WAIT)
        rang, self._rang = self._rang, False
        return rang


class SimulatedStore:
    """A `KeyValueStore` in memory with FoundationDB's conflicts.

    `clock` is the store's time, by which late commits land; with faults, this client's own clock jumps away from it.
    `schedule` is called wherever another client may act; `watch` then never sleeps.
    """

    def __init__(
        self,
        url: str = "memory:",
        *,
        memory: Memory | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        faults: Faults | None = None,
        slots: bytes | None = None,
        schedule: Schedule = unscheduled,
        start: Callable[[Callable[[], None], str], None] = start_thread,
    ) -> None:
        self._url = url
        self.memory = memory if memory is not None else Memory()
        self._store_clock = clock
        self._clock = clock if faults is None else JumpingClock(clock, faults)
        self._faults = faults
        self._schedule = schedule
        self._lifecycle = Lifecycle(url)
        self._slots = None if slots is None else SlotPool(slots)
        self._exactly_once = ExactlyOnce(self._slots, clock=self._clock, sleep=sleep)
        scheduled = {} if schedule is unscheduled else {"start": start, "bell": partial(ScheduledBell, schedule)}
        self.combiners = Combiners(self._apply, self._lifecycle, abreast=MAX_REQUESTS, **scheduled)
        #: Requests of concurrent callers: see `KeyValueStore`.
        self.serve, self.submit = self.combiners.serve, self.combiners.submit
        self.execute_here = self.combiners.execute_here
        self.withdraw = self.combiners.withdraw
        self._count_lock = threading.Lock()
        self._reads = 0
        self.memory.openers += 1

    def begin(self) -> SimulatedTransaction:
        """Begin a transaction to be driven step by step. Its `commit` raises `Conflict` and never retries."""
        self._lifecycle.check()
        self._land()
        return SimulatedTransaction(self.memory.history, self._clock, self.memory.board.notify)

    def read(self, fn: Callable[[ReadTransaction], T], *, background: bool = False) -> T:
        """Run `fn` on one consistent version and return its result."""
        with self._lifecycle.operation():
            tr = self.begin_accepted()
            try:
                with lifecycle.running():
                    return fn(tr.snapshot)
            finally:
                self._finish(tr)

    def transact(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Run `fn`, commit, and return its result; conflicts are retried, unknown commits are settled."""
        with self._lifecycle.operation():
            return self._apply(fn)

    def watch(self, known: Mapping[bytes, bytes | None], *, timeout: float) -> bool:
        """Block until a key's value differs from what is known, or the time is up."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        fault = self._faults.at_watch() if self._faults is not None else None
        if fault is Fault.WATCH_ERROR:
            return True
        watcher = Watcher(known, self)
        board = self.memory.board
        board.add(watcher)
        try:
            self._lifecycle.check()
            if self.read(lambda tr: any(tr.get(key).wait() != value for key, value in known.items())):
                board.discard(watcher)
                return True
            if fault is Fault.SPURIOUS_WAKE:
                board.rouse([watcher])
            if self._schedule is not unscheduled:
                deadline = self._store_clock() + timeout
                while watcher.wake is None and (timeout := deadline - self._store_clock()) > 0:
                    self._schedule(Point.WATCH)
        except BaseException:
            board.discard(watcher)
            raise
        return board.wait(watcher, timeout)

    def interrupt(self) -> None:
        """Wake every thread that is in `watch`."""
        self.memory.board.rouse_all(Wake.INTERRUPTED, self)

    def host(self, wire: Wire) -> None:
        """Do nothing: each process of this engine executes its own requests."""

    def count(self) -> Count:
        """Return the microseconds of the database's own clock."""
        return Count(epoch=self.memory.epoch, micros=int(self._store_clock() * 1e6))

    def keep_time(self, clock: Callable[[], float]) -> None:
        """Take the times of slots' marks from this clock."""
        self._exactly_once.wall = clock

    def reads(self) -> int:
        """Return how many reads have been issued through this store."""
        return self._reads

    def size(self) -> tuple[int, int]:
        """Return (bytes used, 0): there is no limit."""
        self._lifecycle.check()
        return self.memory.history.bytes_used(), 0

    def close(self) -> None:
        """Wait for what is under way and refuse the rest."""
        lifecycle.refuse_nesting()
        if not self._lifecycle.close():
            return
        self.memory.board.rouse_all(Wake.CLOSED, self)
        self.combiners.close(self._lifecycle.refusal, 2 * MAX_TRANSACTION_SECONDS)
        self._lifecycle.drain(2 * MAX_TRANSACTION_SECONDS)
        _release(self.memory)

    def begin_accepted(self) -> SimulatedTransaction:
        """Begin a transaction of an operation that was accepted before the store was closed."""
        self._schedule(Point.BEGIN)
        self._land()
        memory = self.memory
        return SimulatedTransaction(memory.history, self._clock, memory.board.notify, self._schedule)

    def _apply(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn` and commit, for an operation that was accepted."""
        return self._exactly_once.run(self._begin_attempt, fn)

    def _begin_attempt(self) -> Attempt:
        self._schedule(Point.BEGIN)
        self._land()
        memory = self.memory
        return Attempt(
            memory.history,
            self._clock,
            memory.board.notify,
            self._schedule,
            faults=self._faults,
            land=self._land,
            send=lambda apply, lateness: memory.late.send(apply, self._store_clock(), lateness),
            ended=self._count,
        )

    def _land(self) -> None:
        """Let commits land that are on their way for long enough."""
        if self.memory.late:
            self.memory.late.land(self._store_clock())

    def _count(self, reads: int) -> None:
        with self._count_lock:
            self._reads += reads

    def _finish(self, tr: SimulatedTransaction) -> None:
        tr.cancel()
        self._count(tr.reads)


_named: dict[str, Memory] = {}
_named_lock = threading.RLock()


def open_simulated(
    url: str, *, clock: Callable[[], float] = time.monotonic, slots: bytes | None = None
) -> SimulatedStore:
    """Open `memory:` (fresh) or `memory:NAME` (shared by all that open that name in this process)."""
    name = url.partition(":")[2]
    if not name:
        return SimulatedStore(url, clock=clock, slots=slots)
    with _named_lock:
        return SimulatedStore(url, memory=_named.setdefault(name, Memory()), clock=clock, slots=slots)


def _release(memory: Memory) -> None:
    with _named_lock:
        memory.openers -= 1
        if not memory.openers:
            for name in [name for name, known in _named.items() if known is memory]:
                del _named[name]


def _forget_named() -> None:
    global _named_lock  # one held during the fork stays held in the child
    _named.clear()
    _named_lock = threading.RLock()


on_fork(_forget_named)
