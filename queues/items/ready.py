"""The ready set of one queue inside one transaction: insert, take, look, and put back.

Follows FoundationDB's recipes: an item's key is (priority, count, random), the first key is the minimum, the last
the maximum; among equals the oldest leaves first at the minimum end, the newest at the maximum end.

Conflicts: inserting conflicts with no other transaction. Taking reads the end by snapshot and conflicts on exactly the
keys it takes, so pushes never abort it; with `serializable` the read itself conflicts, for callers that decide by it.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from queues.errors import TooLarge
from queues.items.counters import CounterDelta, total, total_bytes
from queues.items.stored_item import StoredItem, clear_entries
from queues.keys.queue_keys import (
    QueueKeys,
    id_by_age,
    last_element,
    place_header,
    read_place,
    ready_elements,
)
from queues.keys.ready_batch import read_batch
from queues.kv.port import KeyValue, ReadTransaction, Result, Transaction
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.ids import LAST_MS, minted_ms
from queues.model.item import Item, Parts, ready_items

#: One transaction: FoundationDB's soft budget is 1 MB, its limit 10; half of that leaves room for keys.
MAX_ITEMS = 1_000
MAX_BYTES = 5_000_000


class Heads:
    """A read of one end, issued and not yet waited for. Generations are merged by key."""

    def __init__(
        self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int], *, end: End, limit: int
    ) -> None:
        self._limit = limit
        self._reverse = end == "max"
        #: Bytes of a key before what orders it, and the read.
        self._reads: list[tuple[int, Result[list[KeyValue]]]] = []
        for generation in generations:
            items = keys.generation(generation).ready
            read = tr.get_range(*items.all, limit=limit, reverse=self._reverse)
            self._reads.append((len(items.prefix), read))

    def wait(self) -> list[KeyValue]:
        """Return at most `limit` pairs, the first to leave first."""
        if len(self._reads) == 1:
            return self._reads[0][1].wait()
        found = [(key[size:], key, value) for size, read in self._reads for key, value in read.wait()]
        return [(key, value) for _, key, value in sorted(found, reverse=self._reverse)[: self._limit]]


class Ahead:
    """Tells whether any ready item has a past, and when the next delayed one is due.

    One key read for each generation, issued and not yet waited for. The entries of items that became ready after their
    push sort before all delayed items. Only where there is one do takers ask for pasts, and once more for the next due.
    """

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int]) -> None:
        self._tr = tr
        self._reads = [
            (delayed, tr.get_key(*delayed.ahead))
            for delayed in (keys.generation(generation) for generation in generations)
        ]

    def pasts(self) -> bool:
        """Say whether ready items may have a past. Ask again for the next due where that prevented it."""
        hidden = [key is not None and key <= of.delayed.prefix for of, read in self._reads for key in [read.wait()]]
        self._reads = [
            (of, self._tr.get_key(*of.delayed.all) if hides else read)
            for hides, (of, read) in zip(hidden, self._reads, strict=True)
        ]
        return any(hidden)

    def next_due_ms(self) -> int | None:
        """Return when the next delayed item is due; call `pasts` first."""
        dues = (delayed.delayed.elements(key)[0] for delayed, read in self._reads if (key := read.wait()) is not None)
        return min(dues, default=None)


def pasts_of(
    tr: ReadTransaction, keys: QueueKeys, config: Config, pairs: Sequence[KeyValue]
) -> dict[bytes, StoredItem]:
    """Return the items that have a past, by key: were tried, or became ready after their push."""
    return _with_a_past(keys, with_pasts(tr, keys, stored(keys, config, pairs)))


def _with_a_past(keys: QueueKeys, items: Iterable[StoredItem]) -> dict[bytes, StoredItem]:
    return {there.key(keys): there for there in items if there.attempts or there.header}


def stored(
    keys: QueueKeys,
    config: Config,
    pairs: Iterable[KeyValue],
    pasts: Mapping[bytes, StoredItem] | None = None,
    ids: Mapping[bytes, Any] | None = None,
) -> list[StoredItem]:
    """Return pairs of any of the queue's generations as stored items, in their order.

    `pasts` has those with a past, by key; `ids` the ids, by key, if they are known.
    """
    begins = [(generation, keys.generation(generation).ready.prefix) for generation in config.generations]
    known = pasts or {}
    return [
        known.get(key)
        or StoredItem(
            state="ready",
            rand=ids[key] if ids else ready_elements(suffix, fifo=config.fifo)[2],
            generation=generation,
            suffix=suffix,
            attempts=0,
            value=value,
        )
        for key, value in pairs
        for generation, begin in begins
        if key.startswith(begin)
        for suffix in [key[len(begin) :]]
    ]


def with_pasts(tr: ReadTransaction, keys: QueueKeys, items: Sequence[StoredItem]) -> list[StoredItem]:
    """Return these ready items with their attempts, the log of these, and since when each is ready."""
    reads = [(there, tr.get(keys.generation(there.generation).later.key(there.rand))) for there in items]
    return [
        there if where is None else replace(there, attempts=read_place(where)[2], header=place_header(where))
        for there, read in reads
        for where in [read.wait()]
    ]


def take(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    items: Sequence[StoredItem],
    now_ms: int,
    delta: CounterDelta,
    *,
    verb: str,
) -> list[Item]:
    """Remove these ready items, conflicting on exactly their keys, and return them as items."""
    pairs = [(there.key(keys), there.value) for there in items]
    return take_pairs(tr, keys, config, pairs, now_ms, delta, pasts=_with_a_past(keys, items), verb=verb)


def take_pairs(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    pairs: Sequence[KeyValue],
    now_ms: int,
    delta: CounterDelta,
    *,
    pasts: Mapping[bytes, StoredItem],
    verb: str = "pop",
) -> list[Item]:
    """Remove ready items as they lie in the store, conflicting on exactly their keys, and return them as items.

    `pasts` has the items that have a past, by key.
    """
    suffixes = remove_pairs(tr, keys, config, pairs, now_ms, delta, pasts=pasts, verb=verb)
    parts: Iterable[Parts] = suffixes
    if pasts:
        known = {key: (there.attempts, there.entries, there.since_ms) for key, there in pasts.items()}
        parts = [(suffix, known.get(key)) for suffix, (key, _) in zip(suffixes, pairs, strict=True)]
    return ready_items(list(map(itemgetter(1), pairs)), parts, config.values)


def remove_pairs(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    pairs: Sequence[KeyValue],
    now_ms: int,
    delta: CounterDelta,
    *,
    pasts: Mapping[bytes, StoredItem],
    verb: str,
) -> Sequence[bytes]:
    """Remove ready items as they lie in the store, and return the ordering parts of their keys, in the same order.

    Nothing is written before all keys were read: a caller's transaction may go on after the error of a damaged one.
    """
    found, values = zip(*pairs, strict=True)
    if sum(map(len, values)) > MAX_BYTES:
        raise TooLarge("These items hold more than 5 MB together: take fewer at once.")
    suffixes: list[bytes] = []
    entries: list[bytes] = []
    several: dict[bytes, bytes] = {}
    created: dict[int, int] = {}
    for generation in config.generations:
        begin, index = keys.generation(generation).ready.prefix, keys.index("ready", generation).prefix
        own = found if len(config.generations) == 1 else [key for key in found if key.startswith(begin)]
        if not own:
            continue
        suffixes = list(map(itemgetter(slice(len(begin), None)), own))
        if len(own) < len(found):
            several.update(zip(own, suffixes, strict=True))
        batch = read_batch(suffixes, config.edges, fifo=config.fifo)
        entries += [index + packed_id for packed_id in batch.packed_ids]
        delta.state(generation, "ready", "out", len(own))
        delta.bands(generation, batch.bands, "out")
        for ms, n in batch.created.items():
            created[ms] = created.get(ms, 0) + n
    tr.add_read_conflict_keys(found)
    tr.clear_many(found)
    tr.clear_many(entries)
    later = [pasts[key] for key in found if key in pasts and pasts[key].since_ms is not None] if pasts else []
    for there in later:
        clear_entries(tr, keys, there)
    if verb in _TAKING:
        for there in later:
            for ms, n in ((minted_ms(there.rand), -1), (there.since_ms or 0, 1)):
                created[ms] = created.get(ms, 0) + n
        delta.waits(now_ms, {ms: n for ms, n in created.items() if n > 0 and ms <= LAST_MS})
    delta.traffic(verb, len(found))
    return [several[key] for key in found] if several else suffixes


#: Verbs that end an item's wait.
_TAKING = ("pop", "lease")


def note_drift(tr: Transaction, keys: QueueKeys, config: Config) -> None:
    """Raise the drift flag when counters say that an empty ready set is not empty.

    Counters and items are read at one version, so a difference is no race: something else wrote here.
    """
    reads = [
        (tr.snapshot.get(ready.counters.key("ready", "in")), tr.snapshot.get(ready.counters.key("ready", "out")))
        for ready in (keys.generation(generation) for generation in config.generations)
    ]
    flagged = tr.snapshot.get(keys.drift)
    depth = sum(total(arrived.wait()) - total(left.wait()) for arrived, left in reads)
    if depth and flagged.wait() is None:
        tr.set(keys.drift, total_bytes(tr.get_read_version()) or b"")
        CounterDelta(keys, wake=False).apply(tr)


class OldestRead:
    """A read of the id and place of the item that is ready for longest, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int]) -> None:
        self._keys = keys
        self._reads = [tr.get_range(*keys.index("ready", generation).all, limit=1) for generation in generations]

    def wait(self) -> tuple[bytes, bytes] | None:
        """Return (id, place), or None when nothing is ready."""
        found = [(last_element(key), value) for read in self._reads for key, value in read.wait()]
        if not found:
            return None
        element, where = min(found)
        return id_by_age(element, where), where
