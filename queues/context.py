"""What every handle of one open store shares: the key-value store, the keys, the ids and the clock."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Server, Transaction
from queues.model.ids import IdGenerator, at
from queues.serving.background import BackgroundThreads
from queues.serving.waiters import Lines
from queues.status.attached_counts import AttachedCounts
from queues.status.status_cache import StatusCache

S = TypeVar("S", bound=Server[Any, Any])


class Servers:
    """Servers by what they serve; one is there while somebody holds it. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._servers: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

    def of(self, what: Hashable, make: Callable[[], S]) -> S:
        """Return the one server of this, made now if there is none."""
        with self._mutex:
            server: S | None = self._servers.get(what)
            if server is None:
                server = self._servers[what] = make()
            return server

    def stop(self) -> None:
        """Have every server that does something by itself stop it."""
        with self._mutex:
            servers = list(self._servers.values())
        for server in servers:
            if stop := getattr(server, "stop", None):
                stop()


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreContext:
    """One open store's parts."""

    kv: KeyValueStore
    keyspace: Keyspace
    id_generator: IdGenerator
    #: Seconds since the epoch, by the store's clock.
    clock: Callable[[], float]
    counts: AttachedCounts
    #: What it does in threads of its own.
    background_threads: BackgroundThreads = field(default_factory=BackgroundThreads)
    #: Who waits for items in this process.
    lines: Lines = field(default_factory=Lines)
    #: What does the same kind of thing to one queue for many callers.
    servers: Servers = field(default_factory=Servers)
    #: What it has read of queues.
    statuses: StatusCache = field(default_factory=StatusCache)

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch by the store's clock."""
        return int(self.clock() * 1000)

    def now(self) -> datetime:
        """Return the time by the store's clock, UTC."""
        return at(self.now_ms())

    def read(self, fn: Callable[[ReadTransaction], T], tr: ReadTransaction | None) -> T:
        """Run `fn` in the caller's transaction, or in a read of its own."""
        return fn(tr) if tr is not None else self.kv.read(fn)

    def transact(self, fn: Callable[[Transaction], T], tr: Transaction | None) -> T:
        """Run `fn` in the caller's transaction, or in one of its own."""
        return fn(tr) if tr is not None else self.kv.transact(fn)
