"""The ready set of one queue inside one transaction: insert, take, look, and put back.

Follows FoundationDB's recipes: an item's key is (priority, count, random), the first key is the minimum, the last
the maximum; among equals the oldest leaves first at the minimum end, the newest at the maximum end.

Conflicts: inserting conflicts with nobody. Taking reads the end by snapshot and conflicts on exactly the keys it
takes, so pushes never abort it; with `serializable` the read itself conflicts, for callers who decide by it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from queues.bands import band_of
from queues.config import Config
from queues.cursor import End
from queues.errors import TooLarge
from queues.ids import minted, minted_at
from queues.item import Item
from queues.keyspace import (
    IN_GENERATIONS,
    QueueKeys,
    packed_suffix,
    place,
    read_place,
    ready_elements,
    ready_suffix,
    total,
    total_bytes,
    unpacked_suffix,
)
from queues.kv.port import KeyValue, ReadTransaction, Result, Transaction
from queues.packing import pack_bytes
from queues.priority import Priority
from queues.tally import Tally

#: One transaction: FoundationDB's soft budget is 1 MB, its limit 10; half of that leaves room for keys.
MAX_ITEMS = 1_000
MAX_BYTES = 5_000_000


class Entry(NamedTuple):  # made several times as fast as a dataclass, for every item that is looked at
    """A ready item as it lies in the store."""

    generation: int
    suffix: bytes
    key: bytes
    value: bytes
    #: As far as they were asked for: see `with_attempts`.
    attempts: int = 0


def insert(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    values: Sequence[tuple[bytes, Priority | None]],
    rands: Sequence[bytes],
    tally: Tally,
) -> list[Item]:
    """Push values, in order, and return them as items."""
    generation = config.generations[-1]
    tally.wake()
    tally.state(generation, "ready", "in", len(values))
    tally.traffic("push", len(values))
    base, edges, stamp, put = config.base, config.edges, tr.stamp, tr.set
    begin, index = keys.generation(generation).ready(b""), keys.indexed("ready", generation)
    where = place(generation, b"")
    items = []
    bands = []
    for (value, priority), rand in zip(values, rands, strict=True):
        count = base + stamp()
        packed = pack_bytes(rand)
        suffix = packed_suffix(priority, count, packed)
        put(begin + suffix, value)
        put(index + packed, where + suffix)
        if priority is not None:
            bands.append(band_of(priority, edges))
        items.append(
            Item.of(
                id=rand.hex(),
                priority=priority,
                count=count,
                value=value,
                pushed_at=minted(rand)[1],
                size=len(value),
            )
        )
    tally.bands(generation, bands, "in")
    return items


def put_back(tr: Transaction, keys: QueueKeys, config: Config, item: Item, *, verb: str = "restore") -> None:
    """Write an item that was taken back under its same key, in the newest generation."""
    tally = Tally(keys, wake=True)
    assert item.count is not None
    suffix = ready_suffix(item.priority, item.count, bytes.fromhex(item.id))
    become_ready(tr, keys, config, tally, suffix=suffix, value=item.value, attempts=item.attempts)
    tally.traffic(verb)
    tally.apply(tr)


def become_ready(
    tr: Transaction, keys: QueueKeys, config: Config, tally: Tally, *, suffix: bytes, value: bytes, attempts: int
) -> Item:
    """Write one item, new or from another state, as ready at this place in the newest generation."""
    generation = config.generations[-1]
    ready = keys.generation(generation)
    entry = Entry(generation, suffix, ready.ready(suffix), value, attempts)
    item = as_item(entry, config)
    tr.set(entry.key, value)
    tr.set(keys.index("ready", bytes.fromhex(item.id), generation), place(generation, suffix, attempts))
    if attempts:
        tr.set(ready.tried, b"")
    tally.wake()
    tally.state(generation, "ready", "in")
    if item.priority is not None:
        tally.band(generation, band_of(item.priority, config.edges), "in")
    return item


class Heads:
    """A read of one end, issued and not yet waited for; generations are merged by key."""

    def __init__(
        self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int], *, end: End, limit: int
    ) -> None:
        self._limit = limit
        self._reverse = end == "max"
        #: Generation, bytes of a key before what orders it, and the read.
        self._reads: list[tuple[int, int, Result[list[KeyValue]]]] = []
        for generation in generations:
            ready = keys.generation(generation)
            begin, stop = ready.ready_range
            read = tr.get_range(begin, stop, limit=limit, reverse=self._reverse)
            self._reads.append((generation, len(ready.ready(b"")), read))

    def wait(self) -> list[Entry]:
        """Return at most `limit` entries, the first to leave first."""
        lists = [
            [Entry(generation, key[size:], key, value) for key, value in read.wait()]
            for generation, size, read in self._reads
        ]
        if len(lists) == 1:
            return lists[0]
        merged = heapq.merge(*lists, key=lambda entry: entry.suffix, reverse=self._reverse)
        return [entry for entry, _ in zip(merged, range(self._limit), strict=False)]


class Ahead:
    """A look at what is ahead of ready items: whether any was tried before, and when the next delayed one is due.

    One key read for each generation, issued and not yet waited for. A mark sorts before all delayed items: it is there
    once a ready item may have attempts, and only then do takers ask for them, and once more for the next due.
    """

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int]) -> None:
        self._tr = tr
        self._reads = [
            (delayed, tr.get_key(*delayed.ahead))
            for delayed in (keys.generation(generation) for generation in generations)
        ]

    def tried(self) -> bool:
        """Say whether ready items may have attempts; ask again for the next due where that stood in the way."""
        marked = [read.wait() == delayed.tried for delayed, read in self._reads]
        self._reads = [
            (delayed, self._tr.get_key(*delayed.delayed_range()) if mark else read)
            for mark, (delayed, read) in zip(marked, self._reads, strict=True)
        ]
        return any(marked)

    def next_due_ms(self) -> int | None:
        """Return when the next delayed item is due; call `tried` first."""
        dues = (delayed.due_ms(key) for delayed, read in self._reads if (key := read.wait()) is not None)
        return min(dues, default=None)


def with_attempts(tr: ReadTransaction, keys: QueueKeys, config: Config, entries: Sequence[Entry]) -> list[Entry]:
    """Return these entries with how often each was tried."""
    reads = [
        tr.get(keys.index("ready", ready_elements(entry.suffix, fifo=config.fifo)[2], entry.generation))
        for entry in entries
    ]
    return [
        entry if where is None else entry._replace(attempts=read_place(where)[2])
        for entry, where in zip(entries, (read.wait() for read in reads), strict=True)
    ]


def take(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    entries: Sequence[Entry],
    now_ms: int,
    tally: Tally,
    *,
    verb: str = "pop",
) -> list[Item]:
    """Remove these entries, conflicting on exactly their keys, and return them as items."""
    if sum(len(entry.value) for entry in entries) > MAX_BYTES:
        raise TooLarge("These items hold more than 5 MB together: take fewer at once.")
    conflict, clear, edges, fifo = tr.add_read_conflict_key, tr.clear, config.edges, config.fifo
    left = dict.fromkeys((entry.generation for entry in entries), 0)
    bands: dict[int, list[int]] = {generation: [] for generation in left}
    indexes = {generation: keys.indexed("ready", generation) for generation in left}
    waits = []
    items = []
    for entry in entries:
        generation, suffix, key, value, attempts = entry
        conflict(key)
        clear(key)
        priority, count, rand, packed = unpacked_suffix(suffix, fifo=fifo)
        clear(indexes[generation] + packed)
        pushed_ms, pushed_at = minted(rand)
        if pushed_at is not None:
            waits.append(now_ms - pushed_ms)
        if priority is not None:
            bands[generation].append(band_of(priority, edges))
        left[generation] += 1
        items.append(
            Item.of(
                id=rand.hex(),
                priority=priority,
                count=count,
                value=value,
                pushed_at=pushed_at,
                size=len(value),
                attempts=attempts,
            )
        )
    for generation, n in left.items():
        tally.state(generation, "ready", "out", n)
        tally.bands(generation, bands[generation], "out")
    if verb in _TAKING:
        tally.waits(waits)
    tally.traffic(verb, len(items))
    return items


#: Verbs that end an item's wait.
_TAKING = ("pop", "lease")


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


def as_item(entry: Entry, config: Config, *, preview: int | None = None) -> Item:
    """Return an entry as an item, its value cut to `preview` bytes."""
    priority, count, rand = ready_elements(entry.suffix, fifo=config.fifo)
    return Item.of(
        id=rand.hex(),
        priority=priority,
        count=count,
        value=entry.value if preview is None else entry.value[:preview],
        pushed_at=minted_at(rand),
        size=len(entry.value),
        attempts=entry.attempts,
    )


class OldestRead:
    """A read of the oldest ready item's id and place, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int]) -> None:
        self._keys = keys
        self._reads = [tr.get_range(*keys.by_age("ready", generation), limit=1) for generation in generations]

    def wait(self) -> tuple[bytes, bytes] | None:
        """Return (id, place), or None when nothing is ready."""
        found = [(self._keys.rand_of_index("ready", key), value) for read in self._reads for key, value in read.wait()]
        return min(found, default=None)


class PlaceRead:
    """A read of where the item of an id stands in one state, issued and not yet waited for."""

    def __init__(
        self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int], rand: bytes, state: str = "ready"
    ) -> None:
        where = generations if state in IN_GENERATIONS else (1,)
        self._reads = [tr.get(keys.index(state, rand, generation)) for generation in where]

    def wait(self) -> bytes | None:
        """Return the place, or None when no item of the state has this id."""
        return next((where for read in self._reads if (where := read.wait()) is not None), None)


def at_place(tr: ReadTransaction, keys: QueueKeys, config: Config, where: bytes) -> Item | None:
    """Return the ready item that an index entry points to."""
    entry = entry_at(tr, keys, where)
    return None if entry is None else as_item(entry, config)


def entry_at(tr: ReadTransaction, keys: QueueKeys, where: bytes) -> Entry | None:
    """Return the ready item that an index entry points to as it lies in the store."""
    generation, suffix, attempts = read_place(where)
    key = keys.generation(generation).ready(suffix)
    value = tr.get(key).wait()
    return None if value is None else Entry(generation, suffix, key, value, attempts)
