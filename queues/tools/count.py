"""The full count of a queue: every item, and whether counters, bands and index say the same.

A small queue is counted in one read transaction. A larger one is counted in many, and believed only if its change key
says that nothing happened meanwhile. Memory does not grow with the queue.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from queues.items.counters import counted_in, total
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import IN_GENERATIONS, OUTSIDE, STATES, QueueKeys, Side
from queues.keys.suffix import read_place, ready_elements, timed_suffix
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model.bands import band_of
from queues.model.config import Config
from queues.model.priority import Priority
from queues.model.tuples import Range

T = TypeVar("T")
Look = Callable[[Callable[[ReadTransaction], T]], T]

#: Of one transaction: keys, and seconds; a transaction has five.
_MAX_KEYS, _MAX_SECONDS = 10_000, 1.5
#: Keys of one read, at first and at most, and about how many bytes it brings.
_FIRST_STEP, _MAX_STEP, _STEP_BYTES = 20, 500, 500_000
#: How often a queue that changes meanwhile is counted.
_TRIES = 3
#: A queue has at most 8 depth totals and 32 band totals a generation.
_ALL = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Double:
    """An item that has the id of another item of its queue, and where it stands."""

    state: str
    generation: int
    suffix: bytes
    rand: bytes


@dataclass(slots=True, kw_only=True)
class QueueCount:
    """What is there, and what is said to be there, while the change key had one value."""

    change: bytes | None = None
    #: By (generation, state); leased and dead items belong to no generation.
    items: Counter[tuple[int, str]] = field(default_factory=Counter)
    #: By (generation, band).
    bands: Counter[tuple[int, int]] = field(default_factory=Counter)
    #: Items among the ready ones that are none of ours or the recipe's.
    strange: int = 0
    #: Items by state that the index does not show where they are.
    unindexed: Counter[str] = field(default_factory=Counter)
    #: Entries of the index by state.
    index: Counter[str] = field(default_factory=Counter)
    #: Entries of the index of ready items that show where none is.
    stray: int = 0
    #: Items that have the id of another item of the queue; and those of them, by state, that the index does not show.
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
    """Count a queue; None when it kept changing while it was counted, or is gone."""
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
        found = _count(lambda fn: kv.read(fn, background=True), keyspace, keys, config)
        if found is not None:
            return found
    return None


def _count(look: Look[Any], keyspace: Keyspace, keys: QueueKeys, config: Config) -> QueueCount | None:
    found = QueueCount(change=look(lambda tr: tr.get(keys.change).wait()))
    for generation in config.generations:
        _count_ready(look, keys, config, generation, found)
        found.items[generation, "delayed"] = _count_delayed(look, keys, config, generation, found)
    found.items[OUTSIDE, "leased"] = _count_indexed(look, keys, config, keys.leases(), "leased", found)
    found.items[OUTSIDE, "dead"] = _count_indexed(look, keys, config, keys.dead(), "dead", found)
    found.expiries = sum(len(pairs) for pairs in steps(look, keys.expiries()))
    for state in STATES:
        found.index[state] = sum(
            len(pairs) for index in keys.indexes(state, config.generations) for pairs in steps(look, index)
        )
    if found.unindexed["ready"] or found.index["ready"] != found.ready - found.hidden["ready"]:
        found.stray = sum(len(strays) for strays in stray_entries(look, keys, config))
    return found if look(lambda tr: _told(tr, keyspace, keys, config, found)) else None


def _told(tr: ReadTransaction, keyspace: Keyspace, keys: QueueKeys, config: Config, found: QueueCount) -> bool:
    """Read what counters say; False when the queue changed since the count began."""
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
                found.bands[generation, band_of(item.priority, config.edges)] += 1
            if item.double:
                found.hidden["ready"] += 1
                found.doubles[Double(state="ready", generation=generation, suffix=item.suffix, rand=item.rand)] = None
            elif not item.indexed:
                found.unindexed["ready"] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedItem:
    """A ready item as a count sees it."""

    key: bytes
    suffix: bytes
    priority: Priority | None
    count: int
    #: None: the key is not of the form that we and the recipe write.
    rand: bytes | None
    #: Whether the index shows that it stands here.
    indexed: bool
    #: Whether it has the id of another item; asked only of what the index does not show.
    double: bool = False


def ready_items(look: Look[Any], keys: QueueKeys, config: Config, generation: int) -> Iterator[list[CountedItem]]:
    """Yield the ready items of a generation in steps."""
    ready = keys.generation(generation)

    def read(tr: ReadTransaction, pairs: list[KeyValue]) -> list[CountedItem]:
        parts = [(key, ready.suffix_of(key)) for key, _ in pairs]
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

    yield from _walk(look, ready.ready_range, read)


def _is_double(tr: ReadTransaction, keys: QueueKeys, config: Config, rand: bytes, entry: bytes | None) -> bool:
    """Say whether another item has the id of a ready one that its index entry does not show."""
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
    """Yield the keys of the ready index that show where no item is, in steps."""

    def read(tr: ReadTransaction, pairs: list[KeyValue]) -> list[bytes]:
        places = [(key, *read_place(value)[:2]) for key, value in pairs]
        items = [(key, tr.get(keys.generation(generation).ready(suffix))) for key, generation, suffix in places]
        return [key for key, item in items if item.wait() is None]

    for index in keys.indexes("ready", config.generations):
        yield from _walk(look, index, read)


def steps(look: Look[Any], of: Range) -> Iterator[list[KeyValue]]:
    """Yield the pairs of a range in steps."""
    yield from _walk(look, of, lambda tr, pairs: pairs)


def _walk(look: Look[Any], of: Range, read: Callable[[ReadTransaction, list[KeyValue]], list[T]]) -> Iterator[list[T]]:
    """Read a range in steps, each in one transaction together with what `read` reads about it."""
    begin, end = of
    limit = _FIRST_STEP
    while True:

        def step(tr: ReadTransaction, begin: bytes = begin, limit: int = limit) -> tuple[list[KeyValue], list[T]]:
            pairs = tr.get_range(begin, end, limit=limit).wait()
            return pairs, read(tr, pairs)

        pairs, seen = look(step)
        yield seen
        if len(pairs) < limit:
            return
        begin = pairs[-1][0] + b"\0"
        size = sum([len(key) + len(value) for key, value in pairs])
        limit = max(4, min(_MAX_STEP, limit * 4, _STEP_BYTES * len(pairs) // size))


def _count_indexed(
    look: Look[Any],
    keys: QueueKeys,
    config: Config,
    of: Range,
    state: str,
    found: QueueCount,
    generation: int = OUTSIDE,
) -> int:
    """Count items that are no ready ones, those of them that the index does not know, and those of equal ids.

    Of two items of different states the one of the earlier state is found by the other.
    """
    before = [
        (earlier, live)
        for earlier in STATES[: STATES.index(state)]
        for live in (config.generations if earlier in IN_GENERATIONS else (OUTSIDE,))
    ]

    def read(tr: ReadTransaction, pairs: list[KeyValue]) -> list[tuple[bool, bool, list[Double]]]:
        places = [(keys.elements(key)[-2], keys.elements(key)[-1]) for key, _ in pairs]
        entries = [tr.get(keys.index(state, rand, generation or 1)) for _, rand in places]
        others = [[tr.get(keys.index(earlier, rand, live or 1)) for earlier, live in before] for _, rand in places]
        return [
            seen(ms, rand, entry.wait(), [other.wait() for other in of])
            for (ms, rand), entry, of in zip(places, entries, others, strict=True)
        ]

    def seen(ms: int, rand: bytes, shown: bytes | None, there: list[bytes | None]) -> tuple[bool, bool, list[Double]]:
        """Return whether the index knows an item, whether it shows another one, and the items of equal ids."""
        if state == "leased":  # a lease keeps its id: its token holds it
            doubles = [
                Double(state=earlier, generation=live, suffix=read_place(at)[1], rand=rand)
                for (earlier, live), at in zip(before, there, strict=True)
                if at is not None
            ]
            return shown is not None, False, doubles
        own = timed_suffix(ms, rand)
        hidden = shown is not None and read_place(shown)[1] != own
        if not hidden and not any(at is not None for at in there):
            return shown is not None, False, []
        return shown is not None, hidden, [Double(state=state, generation=generation, suffix=own, rand=rand)]

    number = 0
    for items in _walk(look, of, read):
        number += len(items)
        for known, hidden, doubles in items:
            found.unindexed[state] += not known
            found.hidden[state] += hidden
            found.doubles |= dict.fromkeys(doubles)
    return number


def _count_delayed(look: Look[Any], keys: QueueKeys, config: Config, generation: int, found: QueueCount) -> int:
    of = keys.generation(generation).delayed_range()
    return _count_indexed(look, keys, config, of, "delayed", found, generation)


def _elements(suffix: bytes, config: Config) -> tuple[Priority | None, int, bytes | None]:
    try:
        priority, count, rand = ready_elements(suffix, fifo=config.fifo)
        if not isinstance(rand, bytes) or isinstance(count, bool) or not isinstance(count, int):
            return None, 0, None
        if priority is not None:
            band_of(priority, config.edges)  # a priority of another type cannot be compared
        return priority, count, rand
    except Exception:  # the tuple layer raises whatever it stumbles over
        return None, 0, None


def _shows(entry: bytes | None, generation: int, suffix: bytes) -> bool:
    return entry is not None and read_place(entry)[:2] == (generation, suffix)
