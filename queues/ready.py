"""The ready set of one queue inside one transaction: insert, take, look, and put back.

Follows FoundationDB's recipes: an item's key is (priority, count, random), the first key is the minimum, the last
the maximum; among equals the oldest leaves first at the minimum end, the newest at the maximum end.

Conflicts: inserting conflicts with nobody. Taking reads the end by snapshot and conflicts on exactly the keys it
takes, so pushes never abort it; with `serializable` the read itself conflicts, for callers who decide by it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queues.bands import band_of
from queues.config import Config
from queues.cursor import End
from queues.errors import TooLarge
from queues.ids import minted_at, minted_ms
from queues.item import Item
from queues.keyspace import (
    GenerationKeys,
    QueueKeys,
    place,
    read_place,
    ready_elements,
    ready_suffix,
    total,
    total_bytes,
)
from queues.kv.port import KeyValue, ReadTransaction, Result, Transaction
from queues.priority import Priority
from queues.tally import Tally

#: One transaction: FoundationDB's soft budget is 1 MB, its limit 10; half of that leaves room for keys.
MAX_ITEMS = 1_000
MAX_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A ready item as it lies in the store."""

    generation: int
    suffix: bytes
    key: bytes
    value: bytes


def insert(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    values: Sequence[tuple[bytes, Priority | None]],
    rands: Sequence[bytes],
) -> list[Item]:
    """Push values, in order, and return them as items."""
    generation = config.generations[-1]
    ready = keys.generation(generation)
    tally = Tally(keys, wake=True)
    tally.state(generation, "ready", "in", len(values))
    tally.traffic("push", len(values))
    items = []
    for (value, priority), rand in zip(values, rands, strict=True):
        count = config.base + tr.stamp()
        suffix = ready_suffix(priority, count, rand)
        tr.set(ready.ready(suffix), value)
        tr.set(keys.index("ready", rand), place(generation, suffix))
        if priority is not None:
            tally.band(generation, band_of(priority, config.edges), "in")
        items.append(
            Item(
                id=rand.hex(),
                priority=priority,
                count=count,
                value=value,
                pushed_at=minted_at(rand),
                size=len(value),
            )
        )
    tally.apply(tr)
    return items


def put_back(tr: Transaction, keys: QueueKeys, config: Config, item: Item, *, verb: str = "restore") -> None:
    """Write an item that was taken back under its same key, in the newest generation."""
    generation = config.generations[-1]
    rand = bytes.fromhex(item.id)
    suffix = ready_suffix(item.priority, item.count, rand)
    tr.set(keys.generation(generation).ready(suffix), item.value)
    tr.set(keys.index("ready", rand), place(generation, suffix, item.attempts))
    tally = Tally(keys, wake=True)
    tally.state(generation, "ready", "in")
    tally.traffic(verb)
    if item.priority is not None:
        tally.band(generation, band_of(item.priority, config.edges), "in")
    tally.apply(tr)


class Heads:
    """A read of one end, issued and not yet waited for; generations are merged by key."""

    def __init__(
        self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int], *, end: End, limit: int
    ) -> None:
        self._limit = limit
        self._reverse = end == "max"
        self._reads: list[tuple[int, GenerationKeys, Result[list[KeyValue]]]] = []
        for generation in generations:
            ready = keys.generation(generation)
            begin, stop = ready.ready_range
            read = tr.get_range(begin, stop, limit=limit, reverse=self._reverse)
            self._reads.append((generation, ready, read))

    def wait(self) -> list[Entry]:
        """Return at most `limit` entries, the first to leave first."""
        lists = [
            [Entry(generation, ready.suffix_of(key), key, value) for key, value in read.wait()]
            for generation, ready, read in self._reads
        ]
        if len(lists) == 1:
            return lists[0]
        merged = heapq.merge(*lists, key=lambda entry: entry.suffix, reverse=self._reverse)
        return [entry for entry, _ in zip(merged, range(self._limit), strict=False)]


def take(
    tr: Transaction, keys: QueueKeys, config: Config, entries: Sequence[Entry], now_ms: int, *, verb: str = "pop"
) -> list[Item]:
    """Remove these entries, conflicting on exactly their keys, and return them as items."""
    if sum(len(entry.value) for entry in entries) > MAX_BYTES:
        raise TooLarge("These items hold more than 5 MB together: take fewer at once.")
    tally = Tally(keys, wake=False)
    items = []
    for entry in entries:
        tr.add_read_conflict_key(entry.key)
        tr.clear(entry.key)
        item = as_item(entry, config)
        rand = bytes.fromhex(item.id)
        tr.clear(keys.index("ready", rand))
        tally.state(entry.generation, "ready", "out")
        if item.priority is not None:
            tally.band(entry.generation, band_of(item.priority, config.edges), "out")
        if item.pushed_at is not None and verb == "pop":
            tally.wait(now_ms - minted_ms(rand))
        items.append(item)
    tally.traffic(verb, len(items))
    tally.apply(tr)
    return items


def note_drift(tr: Transaction, keys: QueueKeys, config: Config) -> None:
    """Raise the drift flag when counters say that an empty ready set is not empty.

    Counters and items are read at one version, so a difference is no race: something else wrote here.
    """
    reads = [
        (tr.snapshot.get(ready.counter("ready", "in")), tr.snapshot.get(ready.counter("ready", "out")))
        for ready in (keys.generation(generation) for generation in config.generations)
    ]
    flagged = tr.snapshot.get(keys.drift)
    depth = sum(total(arrived.wait()) - total(left.wait()) for arrived, left in reads)
    if depth and flagged.wait() is None:
        tr.set(keys.drift, total_bytes(tr.get_read_version()) or b"")
        Tally(keys, wake=False).apply(tr)


def as_item(entry: Entry, config: Config, *, preview: int | None = None, attempts: int = 0) -> Item:
    """Return an entry as an item, its value cut to `preview` bytes."""
    priority, count, rand = ready_elements(entry.suffix, fifo=config.fifo)
    return Item(
        id=rand.hex(),
        priority=priority,
        count=count,
        value=entry.value if preview is None else entry.value[:preview],
        pushed_at=minted_at(rand),
        size=len(entry.value),
        attempts=attempts,
    )


class OldestRead:
    """A read of the oldest ready item's id and place, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys) -> None:
        self._keys = keys
        begin, end = keys.by_age("ready")
        self._read = tr.get_range(begin, end, limit=1)

    def wait(self) -> tuple[bytes, bytes] | None:
        """Return (id, place), or None when nothing is ready."""
        for key, value in self._read.wait():
            return self._keys.rand_of_index("ready", key), value
        return None


def at_place(tr: ReadTransaction, keys: QueueKeys, config: Config, where: bytes) -> Item | None:
    """Return the ready item that an index entry points to."""
    entry = entry_at(tr, keys, where)
    return None if entry is None else as_item(entry, config, attempts=read_place(where)[2])


def entry_at(tr: ReadTransaction, keys: QueueKeys, where: bytes) -> Entry | None:
    """Return the ready item that an index entry points to as it lies in the store."""
    generation, suffix, _ = read_place(where)
    key = keys.generation(generation).ready(suffix)
    value = tr.get(key).wait()
    return None if value is None else Entry(generation, suffix, key, value)
