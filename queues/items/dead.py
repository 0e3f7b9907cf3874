"""The dead set of one queue inside one transaction: insert, take out, look.

A dead item was leased as often as the queue allows, and never acknowledged. It lies under the time it died at, outside
of generations, and remembers its priority and count, so that it can be put back at its place.

Conflicts: taking one out reads its record, so of two that would do it one does, and the other finds it done.
"""

from __future__ import annotations

from dataclasses import dataclass

from queues.items.counters import CounterDelta
from queues.keys.queue_keys import OUTSIDE, QueueKeys
from queues.keys.suffix import place, read_place, timed_elements, timed_suffix
from queues.kv.port import KeyValue, ReadTransaction, Transaction
from queues.model import records
from queues.model.config import Config
from queues.model.ids import at, minted_at
from queues.model.item import Item
from queues.model.priority import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A dead item as it lies in the store."""

    rand: bytes
    died_ms: int
    priority: Priority | None
    count: int
    attempts: int
    #: Who held it last.
    worker: str
    reason: str
    value: bytes

    @property
    def suffix(self) -> bytes:
        """The ordering part of its key."""
        return timed_suffix(self.died_ms, self.rand)

    def encode(self) -> bytes:
        """Return the item as the store keeps it."""
        header = {
            "priority": self.priority,
            "count": self.count,
            "attempts": self.attempts,
            "worker": self.worker,
            "reason": self.reason,
        }
        return records.encode(header, self.value)


def insert(tr: Transaction, keys: QueueKeys, entry: Entry, delta: CounterDelta, *, nonce: bytes = b"") -> Item:
    """Write one item, from another state, as dead; `nonce` is that of its lease that expired."""
    tr.set(keys.dead_item(entry.suffix), entry.encode())
    tr.set(keys.index("dead", entry.rand), place(OUTSIDE, entry.suffix, entry.attempts, nonce))
    delta.state(OUTSIDE, "dead", "in")
    return as_item(entry)


def remove(tr: Transaction, keys: QueueKeys, entry: Entry, delta: CounterDelta) -> None:
    """Take a dead item, on whose record `tr` conflicts, out of the set."""
    remove_at(tr, keys, entry.rand, entry.suffix, delta)


def remove_at(tr: Transaction, keys: QueueKeys, rand: bytes, suffix: bytes, delta: CounterDelta) -> None:
    """Take the dead item at this place, on whose record or index `tr` conflicts, out of the set."""
    tr.use_reserve()  # the value moves or goes, it does not come in
    tr.clear(keys.dead_item(suffix))
    tr.clear(keys.index("dead", rand))
    delta.state(OUTSIDE, "dead", "out")


def entry_of(tr: ReadTransaction, keys: QueueKeys, rand: bytes) -> Entry | None:
    """Return the dead item of this id; None when no dead item has it."""
    where = tr.get(keys.index("dead", rand)).wait()
    return None if where is None else entry_at(tr, keys, where)


def entry_at(tr: ReadTransaction, keys: QueueKeys, where: bytes) -> Entry | None:
    """Return the dead item that an index entry points to."""
    key = keys.dead_item(read_place(where)[1])
    record = tr.get(key).wait()
    return None if record is None else decode(keys, (key, record))


def look(tr: ReadTransaction, keys: QueueKeys, *, after: bytes | None, limit: int) -> list[Entry]:
    """Return dead items behind a place, the first to die first."""
    begin, end = keys.dead()
    if after is not None:
        begin = keys.dead_item(after) + b"\x00"
    return [decode(keys, pair) for pair in tr.get_range(begin, end, limit=limit).wait()]


def at_place(tr: ReadTransaction, keys: QueueKeys, config: Config, where: bytes) -> Item | None:
    """Return the dead item that an index entry points to."""
    entry = entry_at(tr, keys, where)
    return None if entry is None else as_item(entry)


def as_item(entry: Entry, *, preview: int | None = None) -> Item:
    """Return an entry as an item, its value cut to `preview` bytes."""
    return Item(
        id=entry.rand.hex(),
        priority=entry.priority,
        count=entry.count,
        value=entry.value if preview is None else entry.value[:preview],
        pushed_at=minted_at(entry.rand),
        size=len(entry.value),
        state="dead",
        attempts=entry.attempts,
        worker=entry.worker,
        died_at=at(entry.died_ms),
        reason=entry.reason,
    )


def decode(keys: QueueKeys, pair: KeyValue) -> Entry:
    """Read a dead item from the store."""
    key, record = pair
    died_ms, rand = timed_elements(keys.dead_suffix_of(key))
    header, value = records.decode(record)
    return Entry(
        rand=rand,
        died_ms=died_ms,
        priority=header["priority"],
        count=header["count"],
        attempts=header["attempts"],
        worker=header["worker"],
        reason=header["reason"],
        value=value,
    )
