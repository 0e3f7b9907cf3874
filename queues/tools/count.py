"""Full count of a queue: every item, compared with counters, bands and index.

A small queue is counted in one read transaction. A larger one is counted in many, and the result holds only if the
queue's change key has not moved meanwhile. Memory does not grow with the queue.
"""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from queues.items.counters import counted_in, total
from queues.items.finished import FINISHED
from queues.items.stored_item import PlaceRead, StoredItem, at_place, from_lease, from_record, sound
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import (
    OUTSIDE,
    STATES,
    GenerationKeys,
    QueueKeys,
    Side,
    id_by_age,
    last_element,
    ready_elements,
    timed_suffix,
)
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model.config import Config
from queues.model.priority import Priority
from queues.model.range_in_steps import Look, T, in_background, pairs, steps
from queues.model.records import UNREADABLE

#: Of one transaction: keys, and seconds; a transaction has five.
_MAX_KEYS, _MAX_SECONDS = 10_000, 1.5
#: How often a queue that changes meanwhile is counted.
_TRIES = 3
#: A queue has at most 10 depth totals and 32 band totals a generation.
_ALL = 1_000


@dataclass(slots=True, kw_only=True)
class QueueCount:
    """Items and counters of a queue, read while its change key had one value."""

    change: bytes | None = None
    #: By (generation, state); leased and dead items belong to no generation, and so do records of finished ones.
    items: Counter[tuple[int, str]] = field(default_factory=Counter)
    #: By (generation, band).
    bands: Counter[tuple[int, int]] = field(default_factory=Counter)
    #: Keys among the ready items that neither this project nor the recipe writes.
    strange: int = 0
    #: Items by state with a record that cannot be read.
    unreadable: Counter[str] = field(default_factory=Counter)
    #: Items by state that the index does not show at their places.
    unindexed: Counter[str] = field(default_factory=Counter)
    #: Entries of the index by state.
    index: Counter[str] = field(default_factory=Counter)
    #: Entries of the index of ready items without an item.
    stray: int = 0
    #: Items with the id of another item of the queue, by key; by state, those of them that the index does not show.
    doubles: dict[bytes, StoredItem] = field(default_factory=dict)
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
    for state in STATES:
        for generation in counted_in(config, state):
            for items in items_of(look, keys, config, state, generation):
                found.items[generation, state] += len(items)
                for item in items:
                    _add(found, keys, config, item)
        found.index[state] = sum(1 for index in keys.indexes(state, config.generations) for _ in pairs(look, index))
    found.items[OUTSIDE, FINISHED] = sum(1 for _ in pairs(look, keyspace.finished_by_time(config.id).all))
    found.expiries = sum(1 for _ in pairs(look, keys.expiries.all))
    if found.unindexed["ready"] or found.index["ready"] != found.ready - found.hidden["ready"]:
        found.stray = sum(len(strays) for strays in stray_entries(look, keys, config))
    return found if look(lambda tr: _told(tr, keyspace, keys, config, found)) else None


def _add(found: QueueCount, keys: QueueKeys, config: Config, item: "CountedItem | None") -> None:
    if item is None:
        found.strange += 1
        return
    there = item.there
    found.unreadable[there.state] += not item.readable
    found.max_count = max(found.max_count, item.count)
    if item.priority is not None:
        found.bands[there.generation, bisect_right(config.edges, item.priority)] += 1
    found.hidden[there.state] += item.hidden
    found.unindexed[there.state] += not (item.indexed or item.hidden)
    found.doubles |= {double.key(keys): double for double in item.doubles}


def _told(tr: ReadTransaction, keyspace: Keyspace, keys: QueueKeys, config: Config, found: QueueCount) -> bool:
    """Read the counters; return False when the queue changed since the count began."""
    change, record, drift = tr.get(keys.change), tr.get(keyspace.configs.key(config.id)), tr.get(keys.drift)
    reads = [(g, keys.generation(g)) for g in (OUTSIDE, *config.generations)]
    counters = [(g, of, tr.get_range(*of.counters.all, limit=_ALL)) for g, of in reads]
    bands = [(g, of, tr.get_range(*of.bands.all, limit=_ALL)) for g, of in reads]
    there = record.wait()
    if change.wait() != found.change or there is None or Config.decode(there) != config:
        return False
    found.drift = drift.wait() is not None
    signs: dict[Side, int] = {"in": 1, "out": -1}
    for generation, of, read in counters:
        for key, value in read.wait():
            state, side = of.counters.elements_again(key)
            if generation in counted_in(config, state):
                found.told[generation, state] += signs[side] * total(value)
    for generation, of, read in bands:
        for key, value in read.wait():
            band, side = of.bands.elements_again(key)
            found.told_bands[generation, band] += signs[side] * total(value)
    return True


@dataclass(slots=True)
class CountedItem:
    """An item, compared with the index."""

    #: Without its record and value.
    there: StoredItem
    #: Of a ready item; its push order.
    priority: Priority | None
    count: int
    #: Its record can be read; a ready item has none.
    readable: bool = True
    #: The index shows this place.
    indexed: bool = False
    #: Another item has this id, and the index shows that one.
    hidden: bool = False
    #: The items that need other ids: a leased item keeps its id, because its token holds it.
    doubles: Sequence[StoredItem] = ()


def items_of(
    look: Look[Any], keys: QueueKeys, config: Config, state: str, generation: int
) -> Iterator[list[CountedItem | None]]:
    """Yield the items of a state in steps. None stands for a key that neither this project nor the recipe writes.

    Of two items of one id in different states, the item of the later state is the one that finds the other.
    """
    of, earlier = keys.generation(generation), STATES[: STATES.index(state)]
    within = {"ready": of.ready.all, "delayed": of.delayed.all, "leased": keys.leases.all, "dead": keys.dead.all}

    def read(tr: ReadTransaction, found: list[KeyValue]) -> list[CountedItem | None]:
        items = [_parsed(keys, of, config, state, generation, pair) for pair in found]
        reads = [
            (
                item,
                PlaceRead(tr, keys, (generation,), item.there.rand, state),
                [(other, place_read(tr, item, other)) for other in earlier],
            )
            for item in items
            if item is not None
        ]
        for item, own, others in reads:
            rand = item.there.rand
            places = [entry_of(keys, rand, other, read.wait()) for other, read in others]
            doubles = [double for double in places if double is not None]
            _compare(tr, keys, config, item, entry_of(keys, rand, state, own.wait()), doubles)
        return items

    def place_read(tr: ReadTransaction, item: CountedItem, other: str) -> PlaceRead:
        return PlaceRead(tr, keys, config.generations, item.there.rand, other)

    yield from steps(look, within[state], read)


def _parsed(
    keys: QueueKeys, of: GenerationKeys, config: Config, state: str, generation: int, pair: KeyValue
) -> CountedItem | None:
    """Return the item of a pair with its priority and push order. None for a strange key."""
    (key, record), suffix, priority, count = pair, b"", None, 0
    if state != "ready":
        ms, rand = keys.elements(key)[-2:]
        suffix = suffix if state == "leased" else timed_suffix(ms, rand)
    else:
        suffix = of.ready.suffix_of(key)
        try:
            priority, count, rand = ready_elements(suffix, fifo=config.fifo)
            if not isinstance(rand, bytes) or isinstance(count, bool) or not isinstance(count, int):
                return None
            if priority is not None:
                bisect_right(config.edges, priority)  # raises for a priority of another type
        except Exception:  # the tuple layer raises whatever it stumbles over
            return None
    there = StoredItem(state=state, rand=rand, generation=generation, suffix=suffix, attempts=0, value=b"")
    return CountedItem(there, priority, count, readable=state == "ready" or _is_readable(config, there, record))


def _is_readable(config: Config, bare: StoredItem, record: bytes) -> bool:
    """Say whether the record of an item that is not ready can be read."""
    try:
        if bare.state == "leased":
            sound(from_lease(bare.rand, record), config)
        else:
            sound(from_record(bare.state, bare.suffix, record, generation=bare.generation), config)
    except UNREADABLE:
        return False
    return True


def entry_of(keys: QueueKeys, rand: bytes, state: str, where: bytes | None) -> StoredItem | None:
    """Return the item that an entry of the index tells of; None without one, and for one that cannot be read."""
    try:
        there = None if where is None else at_place(rand, state, where)
        if there is not None:
            there.by_age(keys)
    except UNREADABLE:
        return None
    return there


def _compare(
    tr: ReadTransaction,
    keys: QueueKeys,
    config: Config,
    item: CountedItem,
    entry: StoredItem | None,
    earlier: list[StoredItem],
) -> None:
    """Compare an item with its index entry, and with items of its id in earlier states."""
    there = item.there
    if there.state == "leased":
        item.indexed, item.doubles = entry is not None, earlier
        return
    item.indexed = entry is not None and entry.suffix == there.suffix
    item.hidden = entry is not None and not item.indexed
    if there.state == "ready":
        item.indexed = item.indexed and entry is not None and entry.generation == there.generation
        item.hidden = not item.indexed and _has_other(tr, keys, config, there.rand, entry)
        item.indexed = item.indexed and _has_age(tr, keys, entry)
    if item.hidden or earlier:
        item.doubles = [there]


def _has_age(tr: ReadTransaction, keys: QueueKeys, entry: StoredItem | None) -> bool:
    """Return whether a ready item is found by its age as it is by its id."""
    found = None if entry is None else entry.by_age(keys)
    return found is None or tr.get(found[0]).wait() == found[1]


def _has_other(tr: ReadTransaction, keys: QueueKeys, config: Config, rand: bytes, entry: StoredItem | None) -> bool:
    """Return whether the ready item that the index shows is there, or an item of this id in another state."""
    reads = [PlaceRead(tr, keys, config.generations, rand, state) for state in STATES[1:]]
    there = None if entry is None else tr.get(entry.key(keys)).wait()
    return there is not None or any(read.wait() is not None for read in reads)


def stray_entries(look: Look[Any], keys: QueueKeys, config: Config) -> Iterator[list[bytes]]:
    """Yield the keys of entries that cannot be read, or of ready items that are gone or not as they say, in steps."""

    def read(tr: ReadTransaction, found: list[KeyValue]) -> list[bytes]:
        entries = [(key, value, entry_of(keys, b"", "ready", value)) for key, value in found]
        items = [(key, value, entry and tr.get(entry.key(keys))) for key, value, entry in entries]
        return [key for key, value, item in items if not item or item.wait() is None or is_stale(tr, keys, key, value)]

    for index in keys.indexes("ready", config.generations):
        yield from steps(look, index, read)
    for generation in config.generations:
        yield from steps(look, keys.generation(generation).later.all, read)


def is_stale(tr: ReadTransaction, keys: QueueKeys, key: bytes, value: bytes) -> bool:
    """Say whether an entry by age, which can be read, shows another time than the item's entry by its id."""
    there = at_place(id_by_age(last_element(key), value), "ready", value)
    by_age = there.by_age(keys)
    if by_age is None or by_age[0] != key:
        return False
    by_id = entry_of(keys, there.rand, "ready", tr.get(there.index(keys)).wait())
    return by_id is None or by_id.since_ms != there.since_ms
