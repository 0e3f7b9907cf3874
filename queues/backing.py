"""What every handle of one open store shares: the key-value store, the keys, the ids and the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from queues.aside import Aside
from queues.attached.counts import AttachedCounts
from queues.ids import Minter, at
from queues.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.line import Lines
from queues.seen import Seen
from queues.servers import Servers

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """One open store's parts."""

    kv: KeyValueStore
    keyspace: Keyspace
    minter: Minter
    #: Seconds since the epoch, by the store's clock.
    clock: Callable[[], float]
    counts: AttachedCounts
    #: What it does in threads of its own.
    aside: Aside = field(default_factory=Aside)
    #: Who waits for items in this process.
    lines: Lines = field(default_factory=Lines)
    #: What does the same kind of thing to one queue for many callers.
    servers: Servers = field(default_factory=Servers)
    #: What it has read of queues.
    seen: Seen = field(default_factory=Seen)

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
