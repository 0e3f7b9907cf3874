"""Full count of a queue: every item, compared with counters, bands and index.

A small queue is counted in one read transaction. A larger one is counted in many, and the result holds only if the
queue's change key has not moved meanwhile. Memory does not grow with the queue.
"""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from queues.items.counters import counted_in, total
from queues.keys.item_suffix import read_place, ready_elements, timed_suffix
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import IN_GENERATIONS, OUTSIDE, STATES, QueueKeys, Side
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model.config import Config
from queues.model.priority import Priority
from queues.model.steps import Look, T, in_background, pairs, steps
from queues.model.tuples import Range

#: Of one transaction: keys, and seconds; a transaction has five.
_MAX_KEYS, _MAX_SECONDS = 10_000, 1.5
#: How often a queue that changes meanwhile is counted.
_TRIES = 3
#: A queue has at most 8 depth totals and 32 band totals a generation.
_ALL = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Double:
    """An item with the id of another item of its queue, and its place."""

    state: str
    generation: int
    suffix: bytes
    rand: bytes


@dataclass(slots=True, kw_only=True)
class QueueCount:
    """Items and counters of a queue, read while its change key had one value."""

    change: bytes | None = None
    #: By (generation, state); leased and dead items belong to no generation.
    items: Counter[tuple[int, str]] = field(default_factory=Counter)
    #: By (generation, band).
    bands: Counter[tuple[int, int]] = field(default_factory=Counter)
    #: Keys among the ready items that neither this project nor the recipe writes.
    strange: int = 0
    #: Items by state whose place the index does not show.
    unindexed: Counter[str] = field(default_factory=Counter)
    #: Entries of the index by state.
    index: Counter[str] = field(default_factory=Counter)
    #: Entries of the index of ready items without an item.
    stray: int = 0
    #: Items with the id of another item of the queue; by state, those of them that the index does not show.
    doubles: dict[Double, None] = field(default_factory=dict)
    hidden: Counter[str] = field(default_factory=Counter)
    expiries: int = 0
    #: The largest push order.
    max_count: int = 0
    #: As `items` and `bands`, by the counters.
    told: Counter[tuple[int, str]] = field(default_factory=Counter)
    told_bands: Counter[tuple[int, int]] = field(default_factory=Counter)
    drift: bool = False

    @property
    def ready(self) -> int:
        """The items that are ready."""
        return sum(n for (_, state), n in self.items.items() if state == "ready")


class _TooMany(Exception):
    """The queue does not fit into one transaction."""


def count_queue(kv: KeyValueStore, keyspace: Keyspace, config: Config) -> QueueCount | None:
    """Count a queue; None when it kept changing meanwhile, or is gone."""
    keys = keyspace.queue(config.id)

    def at_once(tr: ReadTransaction) -> QueueCount | None:
        until = time.monotonic() + _MAX_SECONDS
        left = _MAX_KEYS

        def look(fn: Callable[[ReadTransaction], T]) -> T:
            if time.monotonic() > until or tr.reads > left:
                raise _TooMany
            return fn(tr)

        return _count(look, keyspace, keys, config)

    try:
        return kv.read(at_once, background=True)
    except _TooMany:
        pass
    for _ in range(_TRIES):
        found = _count(in_background(kv), keyspace, keys, config)
        if found is not None:
            return found
    return None


def _count(look: Look[Any], keyspace: Keyspace, keys: QueueKeys, config: Config) -> QueueCount | None:
    found = QueueCount(change=look(lambda tr: tr.get(keys.change).wait()))
    for generation in config.generations:
        _count_ready(look, keys, config, generation, found)
        delayed = keys.generation(generation).delayed_range()
        _count_indexed(look, keys, config, delayed, "delayed", found, generation)
    _count_indexed(look, keys, config, keys.leases(), "leased", found)
    _count_indexed(look, keys, config, keys.dead(), "dead", found)
    found.expiries = sum(1 for _ in pairs(look, keys.expiries()))
    for state in STATES:
        found.index[state] = sum(1 for index in keys.indexes(state, config.generations) for _ in pairs(look, index))
    if found.unindexed["ready"] or found.index["ready"] != found.ready - found.hidden["ready"]:
        found.stray = sum(len(strays) for strays in stray_entries(look, keys, config))
    return found if look(lambda tr: _told(tr, keyspace, keys, config, found)) else None


def _told(tr: ReadTransaction, keyspace: Keyspace, keys: QueueKeys, config: Config, found: QueueCount) -> bool:
    """Read the counters; return False when the queue changed since the count began."""
    change, record, drift = tr.get(keys.change), tr.get(keyspace.config(config.id)), tr.get(keys.drift)
    reads = [(g, keys.generation(g)) for g in (OUTSIDE, *config.generations)]
    counters = [(g, of, tr.get_range(*of.counters(), limit=_ALL)) for g, of in reads]
    bands = [(g, of, tr.get_range(*of.bands(), limit=_ALL)) for g, of in reads]
    there = record.wait()
    if change.wait() != found.change or there is None or Config.decode(there) != config:
        return False
    found.drift = drift.wait() is not None
    signs: dict[Side, int] = {"in": 1, "out": -1}
    for generation, of, read in counters:
        for key, value in read.wait():
            state, side = of.counter_of(key)
            if generation in counted_in(config, state):
                found.told[generation, state] += signs[side] * total(value)
    for generation, of, read in bands:
        for key, value in read.wait():
            band, side = of.band_of(key)
            found.told_bands[generation, band] += signs[side] * total(value)
    return True


def _count_ready(look: Look[Any], keys: QueueKeys, config: Config, generation: int, found: QueueCount) -> None:
    for items in ready_items(look, keys, config, generation):
        for item in items:
            found.items[generation, "ready"] += 1
            if item.rand is None:
                found.strange += 1
                continue
            found.max_count = max(found.max_count, item.count)
            if item.priority is not None:
                found.bands[generation, bisect_right(config.edges, item.priority)] += 1
            if item.double:
                found.hidden["ready"] += 1
                found.doubles[Double(state="ready", generation=generation, suffix=item.suffix, rand=item.rand)] = None
            elif not item.indexed:
                found.unindexed["ready"] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedItem:
    """A ready item, compared with the index."""

    key: bytes
    suffix: bytes
    priority: Priority | None
    count: int
    #: None: the key does not have the form of this project's and the recipe's keys.
    rand: bytes | None
    #: Whether the index shows this place.
    indexed: bool
    #: Whether it has the id of another item; looked up only for items that the index does not show.
    double: bool = False


def ready_items(look: Look[Any], keys: QueueKeys, config: Config, generation: int) -> Iterator[list[CountedItem]]:
    """Yield the ready items of a generation in steps."""
    ready = keys.generation(generation)

    def read(tr: ReadTransaction, found: list[KeyValue]) -> list[CountedItem]:
        parts = [(key, ready.suffix_of(key)) for key, _ in found]
        items = [(key, suffix, _elements(suffix, config)) for key, suffix in parts]
        entries = [
            None if rand is None else tr.get(keys.index("ready", rand, generation)) for _, _, (_, _, rand) in items
        ]
        counted = []
        for (key, suffix, (priority, count, rand)), read in zip(items, entries, strict=True):
            entry = None if read is None else read.wait()
            indexed = _shows(entry, generation, suffix)
            counted.append(
                CountedItem(
                    key=key,
                    suffix=suffix,
                    priority=priority,
                    count=count,
                    rand=rand,
                    indexed=indexed,
                    double=not indexed and rand is not None and _is_double(tr, keys, config, rand, entry),
                )
            )
        return counted

    yield from steps(look, ready.ready_range, read)


def _is_double(tr: ReadTransaction, keys: QueueKeys, config: Config, rand: bytes, entry: bytes | None) -> bool:
    """Return whether another item has the id of a ready item."""
    reads = [
        tr.get(keys.index(state, rand, generation))
        for state in STATES[1:]
        for generation in (config.generations if state in IN_GENERATIONS else (1,))
    ]
    if entry is not None:
        generation, suffix, _ = read_place(entry)
        reads.append(tr.get(keys.generation(generation).ready(suffix)))
    return any(read.wait() is not None for read in reads)


def stray_entries(look: Look[Any], keys: QueueKeys, config: Config) -> Iterator[list[bytes]]:
    """Yield the keys of the ready index whose item is gone, in steps."""

    def read(tr: ReadTransaction, found: list[KeyValue]) -> list[bytes]:
        places = [(key, *read_place(value)[:2]) for key, value in found]
        items = [(key, tr.get(keys.generation(generation).ready(suffix))) for key, generation, suffix in places]
        return [key for key, item in items if item.wait() is None]

    for index in keys.indexes("ready", config.generations):
        yield from steps(look, index, read)


def _count_indexed(
    look: Look[Any],
    keys: QueueKeys,
    config: Config,
    within: Range,
    state: str,
    found: QueueCount,
    generation: int = OUTSIDE,
) -> None:
    """Count delayed, leased or dead items, and compare them with the index.

    Of two items of one id in different states, the item of the earlier state is found by the other one.
    """
    earlier = [
        (other, live)
        for other in STATES[: STATES.index(state)]
        for live in (config.generations if other in IN_GENERATIONS else (OUTSIDE,))
    ]

    def read(tr: ReadTransaction, items: list[KeyValue]) -> list[tuple[bool, bool, list[Double]]]:
        places = [(keys.elements(key)[-2], keys.elements(key)[-1]) for key, _ in items]
        entries = [tr.get(keys.index(state, rand, generation or 1)) for _, rand in places]
        lookups = [[tr.get(keys.index(other, rand, live or 1)) for other, live in earlier] for _, rand in places]
        return [
            compared(ms, rand, entry.wait(), [lookup.wait() for lookup in of])
            for (ms, rand), entry, of in zip(places, entries, lookups, strict=True)
        ]

    def compared(
        ms: int, rand: bytes, entry: bytes | None, doubles: list[bytes | None]
    ) -> tuple[bool, bool, list[Double]]:
        """Return whether an entry exists, whether it shows another item, and items of equal ids."""
        if state == "leased":  # a lease keeps its id: its token holds it
            return (
                entry is not None,
                False,
                [
                    Double(state=other, generation=live, suffix=read_place(at)[1], rand=rand)
                    for (other, live), at in zip(earlier, doubles, strict=True)
                    if at is not None
                ],
            )
        own = Double(state=state, generation=generation, suffix=timed_suffix(ms, rand), rand=rand)
        hidden = entry is not None and read_place(entry)[1] != own.suffix
        double = hidden or any(at is not None for at in doubles)
        return entry is not None, hidden, [own] if double else []

    for items in steps(look, within, read):
        found.items[generation, state] += len(items)
        for known, hidden, doubles in items:
            found.unindexed[state] += not known
            found.hidden[state] += hidden
            found.doubles |= dict.fromkeys(doubles)


def _elements(suffix: bytes, config: Config) -> tuple[Priority | None, int, bytes | None]:
    try:
        priority, count, rand = ready_elements(suffix, fifo=config.fifo)
        if not isinstance(rand, bytes) or isinstance(count, bool) or not isinstance(count, int):
            return None, 0, None
        if priority is not None:
            bisect_right(config.edges, priority)  # raises for a priority of another type
        return priority, count, rand
    except Exception:  # the tuple layer raises whatever it stumbles over
        return None, 0, None


def _shows(entry: bytes | None, generation: int, suffix: bytes) -> bool:
    return entry is not None and read_place(entry)[:2] == (generation, suffix)
