"""The delayed set of one queue inside one transaction: insert, promote, take out, look.

A delayed item lies under the time it is due at. Promoting it makes it ready, behind whatever was pushed before: its
count is the promoting transaction's. Generations hold delayed items as they hold ready ones.

Conflicts: inserting conflicts with nobody. Promoting reads by snapshot and conflicts on exactly the keys it takes, so
of two that promote the same item one does it and the other finds it done.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from queues.items import ready
from queues.items.counters import CounterDelta
from queues.items.equal_ids import FreeIds
from queues.keys.queue_keys import GenerationKeys, QueueKeys
from queues.keys.suffix import place, read_place, ready_suffix, timed_elements, timed_suffix
from queues.kv.port import KeyValue, ReadTransaction, Transaction
from queues.model import records
from queues.model.config import Config
from queues.model.ids import at, minted_at
from queues.model.item import Item
from queues.model.priority import Priority

#: Bytes of values that one transaction promotes, unless a single one is larger: FoundationDB's soft budget.
BUDGET = 1_000_000
_KNOWN = frozenset({"priority", "attempts", "reason"})
#: Which of many late items a pop promotes must not be the same for all who pop; seeded by whoever tests.
_dice = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A delayed item as it lies in the store."""

    generation: int
    suffix: bytes
    key: bytes
    priority: Priority | None
    attempts: int
    reason: str
    value: bytes
    #: What a later build of this format keeps here besides: written again as it was read.
    unknown: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def rand(self) -> bytes:
        """The item's id."""
        return timed_elements(self.suffix)[1]


def insert(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    delta: CounterDelta,
    *,
    rand: bytes,
    due_ms: int,
    now_ms: int,
    priority: Priority | None,
    value: bytes,
    attempts: int = 0,
    reason: str = "",
    unknown: Mapping[str, Any] | None = None,
) -> Item:
    """Write one item, new or from another state, as delayed."""
    generation = config.generations[-1]
    suffix = timed_suffix(due_ms, rand)
    key = keys.generation(generation).delayed(suffix)
    tr.set(key, record_of(priority, attempts, value, reason, unknown))
    tr.set(keys.index("delayed", rand, generation), place(generation, suffix, attempts))
    delta.state(generation, "delayed", "in")
    delta.falls_due(due_ms, now_ms)
    return as_item(
        Entry(
            generation=generation,
            suffix=suffix,
            key=key,
            priority=priority,
            attempts=attempts,
            reason=reason,
            value=value,
        )
    )


def record_of(
    priority: Priority | None,
    attempts: int,
    value: bytes,
    reason: str = "",
    unknown: Mapping[str, Any] | None = None,
) -> bytes:
    """Return what a delayed item is in the store."""
    header: dict[str, Any] = {**(unknown or {}), "priority": priority, "attempts": attempts}
    if reason:
        header["reason"] = reason
    return records.encode(header, value)


def promote_due(
    tr: Transaction, keys: QueueKeys, config: Config, *, until_ms: int, limit: int, few: int | None = None
) -> int:
    """Make at most `limit` items that are due by `until_ms` ready, in due order; return their number.

    With `few` only so many of them, chosen at random.
    """
    reads = [
        (generation, delayed, tr.snapshot.get_range(*delayed.due_by(until_ms), limit=limit))
        for generation, delayed in ((generation, keys.generation(generation)) for generation in config.generations)
    ]
    entries = _merge(
        [[decode(generation, delayed, pair) for pair in read.wait()] for generation, delayed, read in reads]
    )
    entries = entries[:limit]
    if few is not None and len(entries) > few:
        entries = [entries[n] for n in sorted(_dice.sample(range(len(entries)), few))]
    entries = _within(entries, BUDGET)
    if not entries:
        return 0
    delta = CounterDelta(keys, wake=True)
    ids = free_ids(tr, keys, config, entries)
    for entry in entries:
        tr.add_read_conflict_key(entry.key)
        promote(tr, keys, config, entry, delta, ids)
    delta.apply(tr)
    return len(entries)


def free_ids(tr: Transaction, keys: QueueKeys, config: Config, entries: Sequence[Entry]) -> FreeIds:
    """Issue the reads of whether other items with the ids of these are ready already."""
    generation = config.generations[-1]
    return FreeIds(tr, lambda rand: keys.index("ready", rand, generation), [entry.rand for entry in entries])


def promote(tr: Transaction, keys: QueueKeys, config: Config, entry: Entry, delta: CounterDelta, ids: FreeIds) -> Item:
    """Make a delayed item, on whose key `tr` conflicts, ready; `ids` tell which ids are free."""
    tr.use_reserve()  # the value moves, it does not come in
    remove(tr, keys, entry, delta)
    delta.traffic("promote")
    suffix = ready_suffix(entry.priority, config.base + tr.stamp(), ids.give(entry.rand, entry.key))
    return ready.become_ready(tr, keys, config, delta, suffix=suffix, value=entry.value, attempts=entry.attempts)


def remove(tr: Transaction, keys: QueueKeys, entry: Entry, delta: CounterDelta) -> None:
    """Take a delayed item, on whose key `tr` conflicts, out of the set."""
    tr.clear(entry.key)
    tr.clear(keys.index("delayed", entry.rand, entry.generation))
    delta.state(entry.generation, "delayed", "out")


def entry_of(tr: ReadTransaction, keys: QueueKeys, config: Config, rand: bytes) -> Entry | None:
    """Return the delayed item of this id; None when no delayed item has it."""
    where = ready.PlaceRead(tr, keys, config.generations, rand, "delayed").wait()
    return None if where is None else entry_at(tr, keys, where)


def entry_at(tr: ReadTransaction, keys: QueueKeys, where: bytes) -> Entry | None:
    """Return the delayed item that an index entry points to."""
    generation, suffix, _ = read_place(where)
    delayed = keys.generation(generation)
    key = delayed.delayed(suffix)
    record = tr.get(key).wait()
    return None if record is None else decode(generation, delayed, (key, record))


def at_place(tr: ReadTransaction, keys: QueueKeys, config: Config, where: bytes) -> Item | None:
    """Return the delayed item that an index entry points to."""
    entry = entry_at(tr, keys, where)
    return None if entry is None else as_item(entry)


def look(tr: ReadTransaction, keys: QueueKeys, config: Config, *, after: bytes | None, limit: int) -> list[Entry]:
    """Return delayed items behind a place, the next due first."""
    reads = []
    for generation in config.generations:
        delayed = keys.generation(generation)
        begin, end = delayed.delayed_range()
        if after is not None:
            begin = delayed.delayed(after) + b"\x00"
        reads.append((generation, delayed, tr.get_range(begin, end, limit=limit)))
    found = [[decode(generation, delayed, pair) for pair in read.wait()] for generation, delayed, read in reads]
    return _merge(found)[:limit]


def as_item(entry: Entry, *, preview: int | None = None) -> Item:
    """Return an entry as an item, its value cut to `preview` bytes."""
    due_ms, rand = timed_elements(entry.suffix)
    return Item(
        id=rand.hex(),
        priority=entry.priority,
        count=None,
        value=entry.value if preview is None else entry.value[:preview],
        pushed_at=minted_at(rand),
        size=len(entry.value),
        state="delayed",
        attempts=entry.attempts,
        due_at=at(due_ms),
        reason=entry.reason,
    )


def decode(generation: int, delayed: GenerationKeys, pair: KeyValue) -> Entry:
    """Read a delayed item from the store."""
    key, record = pair
    header, value = records.decode(record)
    return Entry(
        generation=generation,
        suffix=delayed.delayed_suffix_of(key),
        key=key,
        priority=header["priority"],
        attempts=header["attempts"],
        reason=header.get("reason", ""),
        value=value,
        unknown=records.unknown(header, _KNOWN),
    )


def _merge(found: Sequence[list[Entry]]) -> list[Entry]:
    return found[0] if len(found) == 1 else list(heapq.merge(*found, key=lambda entry: entry.suffix))


def _within(entries: list[Entry], budget: int) -> list[Entry]:
    for n, entry in enumerate(entries):
        budget -= len(entry.value)
        if budget < 0 and n:
            return entries[:n]
    return entries
