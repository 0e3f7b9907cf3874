"""Presence: tells other processes which queues this one, or a client through it, takes items from, by heartbeats.

Takes are counted in memory. One thread writes a record for each queue that is being consumed, all in one transaction,
every few seconds; it is there only meanwhile. So no take writes more than before, a program that ends at once writes
nothing, and an open store that is not consumed from is silent. Heartbeats add to no change key, except the first and
the last of a consumer: screens show which come and go.
"""

import logging
import os
import socket
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from queues.consumers import consumer as records
from queues.consumers.consumer import BEAT, MAX_NAME, MOST, Client, Consumer
from queues.errors import ForkedStore, StoreClosed
from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValueStore, Transaction
from queues.model.ids import at, to_ms
from queues.model.log_limit import LogLimit
from queues.serving.background import BackgroundThreads

log = logging.getLogger("queues.consumers")

#: Seconds from the first take to the first heartbeat, and without a take or a wait until a process consumes no more.
FIRST, IDLE = 2.0, 60.0
#: Seconds after which a heartbeat is sent that tells nothing new: a disk may sleep while all wait.
_STILL = 10.0
#: Seconds for which closing waits for heartbeats: one that is under way, and the last one.
_PATIENCE = 1.0
#: Seconds over which the rate of takes is averaged.
_RATE = 60.0


#: A queue, and the client that takes from it through this process; empty: the process itself.
Key = tuple[int, bytes]


class Consumption:
    """What this process takes from one queue, or one client takes through it, counted in memory.

    Callers count without a lock: no count is lost while one thread at a time runs Python.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_base",
        "_beats",
        "_clock",
        "_join",
        "_last",
        "_mutex",
        "_pools",
        "_since",
        "_taken",
        "_waiting",
        "_worker",
        "client",
        "held",
        "joined",
        "queue_id",
    )

    def __init__(
        self,
        queue_id: int,
        clock: Callable[[], float],
        join: "Callable[[Consumption], None]",
        client: Client | None = None,
    ) -> None:
        self.queue_id = queue_id
        self.client = client
        #: The presence tells of it.
        self.joined = False
        self._clock = clock
        self._join = join
        self._worker = ""
        #: When a caller asked for an item last, and when one got it; seconds since the epoch.
        self._asked = self._last = 0.0
        #: Items ever taken; how many of them before it joined, and when that was.
        self._taken = self._base = 0
        self._since = 0.0
        #: Nonces of leases that are held, and when they end, in milliseconds; settling a lease removes it.
        self.held: dict[bytes, int] = {}
        self._waiting = 0
        #: What tells how many threads of a pool wait.
        self._pools: dict[object, Callable[[], int]] = {}
        self._mutex = threading.Lock()
        #: Times of heartbeats, and what had been taken by then.
        self._beats: deque[tuple[float, int]] = deque()

    @property
    def key(self) -> Key:
        """The key of its heartbeats."""
        return self.queue_id, b"" if self.client is None else self.client.id

    def took(self, n: int) -> None:
        """Count items that a caller was given; 0: it asked in vain."""
        self._asked = now = self._clock()
        if n:
            self._taken += n
            self._last = now
        if not self.joined:
            self._begin(now, n)

    def leased(self, held: Mapping[bytes, int], worker: str | None) -> None:
        """Count items that a caller leased: the nonces of their leases, and the milliseconds at which these end."""
        self.held.update(held)
        if worker is not None:
            self._worker = worker[:MAX_NAME]
        self.took(len(held))

    def extended(self, nonce: bytes, ends_ms: int) -> None:
        """Note that a lease ends at another time."""
        if nonce in self.held:
            self.held[nonce] = ends_ms

    @contextmanager
    def waits(self, n: int = 1) -> Iterator[None]:
        """Count callers that wait for an item while this block runs."""
        self._wait(n)
        try:
            yield
        finally:
            self._wait(-n)

    def attend(self, pool: object, waiting: Callable[[], int], worker: str | None) -> None:
        """Begin to consume by a pool, of which `waiting` tells how many threads wait."""
        self._pools[pool] = waiting
        if worker is not None:
            self._worker = worker[:MAX_NAME]
        self.took(0)

    def desert(self, pool: object) -> None:
        """End what `attend` began."""
        self._pools.pop(pool, None)

    def _wait(self, n: int) -> None:
        with self._mutex:
            self._waiting += n
        self.took(0)

    def _begin(self, now: float, n: int) -> None:
        self.joined = True
        self._since, self._base = now, self._taken - n
        self._beats.clear()
        self._join(self)

    # For heartbeats

    def leaves(self, now: float) -> bool:
        """Say whether it takes nothing any more: then it has left, and joins again with the next take."""
        if not self._pools:  # the leases of a pool are extended by another process
            over = [nonce for nonce, ends_ms in self.held.copy().items() if ends_ms < now * 1000]
            for nonce in over:
                self.held.pop(nonce, None)
        asked = self._asked
        if self._waiting or self._pools or self.held or abs(now - asked) < IDLE:
            return False
        self.joined = False
        if self._asked == asked:
            return True
        self.joined = True  # a caller asked at this moment
        return False

    def told(self, now: float, process: Consumer) -> Consumer:
        """Return what a heartbeat of this process tells."""
        takes = self._taken - self._base
        if not self._beats:
            self._beats.append((self._since, 0))
        self._beats.append((now, takes))
        while len(self._beats) > 2 and self._beats[1][0] <= now - _RATE:
            self._beats.popleft()
        then, before = self._beats[0]
        return replace(
            process,
            worker=self._worker,
            since=_moment(self._since),
            last_take=_moment(self._last) if takes else None,
            takes=takes,
            rate=(takes - before) / (now - then) if now - then >= 1.0 else 0.0,
            waiting=self._waiting + sum(waiting() for waiting in list(self._pools.values())),
            holds=len(self.held),
            heard=_moment(now),
        )


class Presence:
    """Heartbeats of one open store, for each queue that it takes from. Thread-safe."""

    def __init__(
        self, kv: KeyValueStore, keyspace: Keyspace, clock: Callable[[], float], threads: BackgroundThreads
    ) -> None:
        self._kv, self._keyspace, self._clock, self._threads = kv, keyspace, clock, threads
        self._id, self._pid = os.urandom(8), os.getpid()
        self._mutex = threading.Lock()
        self._known: weakref.WeakValueDictionary[Key, Consumption] = weakref.WeakValueDictionary()
        self._consuming: dict[Key, Consumption] = {}
        #: What was written last. Used by one heartbeat at a time.
        self._told: dict[Key, Consumer] = {}
        self._beating = threading.Lock()
        self._running = False
        self._stopped = threading.Event()
        self._limited = LogLimit(log, monotonic=threads.now)

    def of(self, queue_id: int, client: Client | None = None) -> Consumption:
        """Return what counts this process's takes from a queue, or those of a client.

        Where very many take, further clients are counted as the process.
        """
        with self._mutex:
            if client is not None and len(self._consuming) >= MOST:
                client = None
            key = (queue_id, b"" if client is None else client.id)
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = Consumption(queue_id, self._clock, self._join, client)
            return found

    def beat(self) -> None:
        """Tell what this process consumes now, and what no longer. Raises the store's errors."""
        with self._beating:
            if not self._stopped.is_set():
                self._tell(self._clock())

    def stop(self) -> None:
        """Send no heartbeat any more, and remove the records, waiting for a second at most.

        A store that does not answer is told in a thread: what it keeps will expire.
        """
        self._stopped.set()
        if self._pid != os.getpid():
            return  # a forked child tells nothing of its parent
        if not self._told and not self._beating.locked():
            return
        ended = threading.Event()

        def tell() -> None:
            try:
                with self._beating:
                    self._attempt(lambda: self._tell(self._clock(), closing=True))
            finally:
                ended.set()

        with suppress(RuntimeError):  # the interpreter ends, or has no more threads
            threading.Thread(target=tell, name="pq-consumers-end", daemon=True).start()
            ended.wait(_PATIENCE)

    # Inside

    def _join(self, consumption: Consumption) -> None:
        with self._mutex:
            self._consuming[consumption.key] = consumption
            if self._running or self._stopped.is_set():
                return
            self._running = True
        try:
            self._threads.start(self._run, "pq-consumers")
        except RuntimeError:  # the interpreter ends, or has no more threads: takes go on untold
            self._running = False

    def _run(self) -> None:
        rest = FIRST
        while not self._threads.wait(self._stopped, rest) and self._attempt(self.beat):
            rest = BEAT
            with self._mutex:
                if not self._consuming:
                    self._running = False
                    return

    def _tell(self, now: float, *, closing: bool = False) -> None:
        with self._mutex:
            consuming = dict(self._consuming)
        ended = {key for key, one in consuming.items() if closing or one.leaves(now)}
        how: records.End = "closed" if closing else "idle"
        told = {
            key: replace(one.told(now, self._named(one.client)), end=how if key in ended else None)
            for key, one in consuming.items()
            if key not in ended or key in self._told
        }
        news = {key: one for key, one in told.items() if _is_news(self._told.get(key), one)}
        if news:
            self._kv.transact(lambda tr: self._write(tr, news))
        known = self._told | news
        self._told = {key: known[key] for key in told if key not in ended}
        with self._mutex:
            for key in ended:
                if not consuming[key].joined:
                    self._consuming.pop(key, None)

    def _write(self, tr: Transaction, told: Mapping[Key, Consumer]) -> None:
        stored = {
            (id_, of): self._keyspace.consumers.key(id_, bytes.fromhex(one.id)) for (id_, of), one in told.items()
        }
        there = {key: tr.snapshot.get(stored[key]) for key in told}
        for key, consumer in told.items():
            if consumer.end is None:
                records.tell(tr, self._keyspace, consumer, key[0], stored[key], new=there[key].wait() is None)
            else:
                now_ms = to_ms(consumer.heard)
                records.end(tr, self._keyspace, consumer, key[0], stored[key], now_ms=now_ms)

    def _named(self, client: Client | None) -> Consumer:
        """Return what tells which process a consumer is: this one, or that of a client."""
        if client is None:
            return self._process
        mixed = bytes(
            one ^ other for one, other in zip(self._id, client.id, strict=True)
        )  # as through several processes
        return replace(
            self._process,
            id=mixed.hex(),
            pid=client.pid,
            host=client.host[:MAX_NAME],
            program=client.program[:MAX_NAME],
        )

    @cached_property
    def _process(self) -> Consumer:
        began = _moment(0.0)
        return Consumer(
            id=self._id.hex(),
            pid=self._pid,
            host=socket.gethostname()[:MAX_NAME],
            program=program()[:MAX_NAME],
            worker="",
            since=began,
            last_take=None,
            takes=0,
            rate=0.0,
            waiting=0,
            holds=0,
            heard=began,
        )

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Do it; False when the store is closed. A failure is logged, and the next heartbeat tries again."""
        try:
            work()
        except (StoreClosed, ForkedStore):
            return False
        except Exception as error:
            self._limited.warn(
                type(error), "The consumers of this process are not told: %s: %s", type(error).__name__, error
            )
        return True


def _is_news(before: Consumer | None, now: Consumer) -> bool:
    """Say whether a heartbeat is to be written."""
    if before is None or abs((now.heard - before.heard).total_seconds()) >= _STILL:
        return True
    return replace(before, heard=now.heard) != now


def program() -> str:
    """Return the name of the running program, never its arguments: these may be secret."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    path = Path(sys.argv[0] if sys.argv else "")
    # A process that `python -m shop` spawned has the package's __main__.py for a name.
    return (path.parent.name if path.name == "__main__.py" else path.name) or "python"


def _moment(seconds: float) -> datetime:
    return at(int(seconds * 1000))
