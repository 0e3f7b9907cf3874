"""Repair of one queue: index, ids, counters, bands, push order, drift flag.

Every transaction reads again what it repairs. Counters are set to a count only while the queue's change key is still
that of the count. Totals only grow, so the smaller side of a depth is raised.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from msgspec import structs

from queues.items import state_machine
from queues.items.counters import CounterDelta
from queues.items.stored_item import PlaceRead, StoredItem, clear_entries, with_stored, write_entries
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import QueueKeys, Side, read_place, timed_suffix, with_rand
from queues.kv.port import KeyValueStore, Transaction
from queues.model.config import Config
from queues.model.ids import another
from queues.model.range_in_steps import in_background
from queues.tools.count import QueueCount, entry_of, is_stale, items_of, stray_entries

#: Index entries of one transaction.
_STEP = 200
T = TypeVar("T")


def repair_index(kv: KeyValueStore, keyspace: Keyspace, config: Config) -> tuple[int, int]:
    """Make the index show every ready item at its place, and nothing else. Return (entries written, cleared)."""
    keys, look = keyspace.queue(config.id), in_background(kv)
    written = cleared = 0
    for generation in config.generations:
        for items in items_of(look, keys, config, "ready", generation):
            lost = [item.there for item in items if item is not None and not item.indexed]
            written += _in_steps(kv, keys, lost, _write_entry)
    for strays in stray_entries(look, keys, config):
        cleared += _in_steps(kv, keys, strays, _clear_entry)
    return written, cleared


def repair_ids(kv: KeyValueStore, keyspace: Keyspace, config: Config, doubles: Sequence[StoredItem]) -> int:
    """Give items with the id of another item new ids, and return their number."""
    return _in_steps(kv, keyspace.queue(config.id), doubles, partial(_give_id, fifo=config.fifo))


def _give_id(tr: Transaction, keys: QueueKeys, bare: StoredItem, *, fifo: bool) -> int:
    """Give an item another id, made of its own and of its key. Leave the index of the other item alone."""
    key = bare.key(keys)
    read, where = tr.get(key), PlaceRead(tr, keys, (bare.generation,), bare.rand, bare.state).wait()
    stored = read.wait()
    if stored is None:
        return 0
    there, rand = with_stored(bare, stored), another(bare.rand, key)
    tried, header = there.header.get("attempts", 0), there.header
    tr.clear(key)
    entry = entry_of(keys, bare.rand, bare.state, where)
    if entry is not None and entry.suffix == bare.suffix:
        tried, header = entry.attempts, entry.header or header
        clear_entries(tr, keys, entry)
    ready = bare.state == "ready"
    suffix = with_rand(bare.suffix, rand, fifo=fifo) if ready else timed_suffix(there.due_ms, rand)
    there = structs.replace(there, rand=rand, suffix=suffix, attempts=tried, header=header)
    state_machine.write(tr, keys, state_machine.with_time(there))
    return 1


def _in_steps(
    kv: KeyValueStore, keys: QueueKeys, wrong: Sequence[T], repair: Callable[[Transaction, QueueKeys, T], int]
) -> int:
    """Repair things of a queue, some in a transaction, and return how many were repaired."""

    def step(tr: Transaction, at: int) -> int:
        tr.use_reserve()
        repaired = sum([repair(tr, keys, one) for one in wrong[at : at + _STEP]])
        if repaired:
            CounterDelta(keys, wake=False).apply(tr)
        return repaired

    return sum(kv.transact(partial(step, at=at), background=True) for at in range(0, len(wrong), _STEP))


def _write_entry(tr: Transaction, keys: QueueKeys, there: StoredItem) -> int:
    entry = PlaceRead(tr, keys, (there.generation,), there.rand)
    if tr.get(there.key(keys)).wait() is None:
        return 0
    old = entry.wait()
    other = entry_of(keys, there.rand, "ready", old)
    if other is not None:
        if other.key(keys) != there.key(keys) and tr.get(other.key(keys)).wait() is not None:
            return 0  # two items of one id: the index keeps the one that it shows
        there = structs.replace(there, attempts=other.attempts, header=other.header)
    elif old is not None and (place := read_place(old))[1] == there.suffix:  # only the rest of it is damaged
        there = structs.replace(there, attempts=place[2])
    write_entries(tr, keys, state_machine.with_time(there))
    return 1


def _clear_entry(tr: Transaction, keys: QueueKeys, key: bytes) -> int:
    where = tr.get(key).wait()
    if where is None:
        return 0
    entry = entry_of(keys, b"", "ready", where)
    if entry is not None and tr.get(entry.key(keys)).wait() is not None and not is_stale(tr, keys, key, where):
        return 0
    tr.clear(key)
    return 1


def repair_counters(kv: KeyValueStore, keyspace: Keyspace, config: Config, count: QueueCount) -> bool:
    """Set counters and bands to a count and clear the drift flag. Return False when the queue has changed."""
    keys = keyspace.queue(config.id)

    def write(tr: Transaction) -> bool:
        tr.use_reserve()
        if tr.get(keys.change).wait() != count.change or _config(tr, keyspace, config.id) != config:
            return False
        for (generation, state), missing in _differences(count.items, count.told):
            side: Side = "in" if missing > 0 else "out"
            tr.add(keys.generation(generation).counters.key(state, side), abs(missing))
        if not config.fifo:
            for (generation, band), missing in _differences(count.bands, count.told_bands):
                tr.add(keys.generation(generation).bands.key(band, "in" if missing > 0 else "out"), abs(missing))
        tr.clear(keys.drift)
        CounterDelta(keys, wake=True).apply(tr)
        return True

    return kv.transact(write, background=True)


def repair_order(kv: KeyValueStore, keyspace: Keyspace, config: Config, max_count: int) -> bool:
    """Raise the queue's base so that pushes sort behind its items. Return False when that is not needed."""
    keys = keyspace.queue(config.id)

    def write(tr: Transaction) -> bool:
        tr.use_reserve()
        current = _config(tr, keyspace, config.id)
        if current is None or current.base + tr.stamp() > max_count:
            return False
        tr.set(keyspace.configs.key(config.id), replace(current, base=max_count).encode())
        CounterDelta(keys, wake=True).apply(tr)
        return True

    return kv.transact(write, background=True)


def _config(tr: Transaction, keyspace: Keyspace, queue_id: int) -> Config | None:
    record = tr.get(keyspace.configs.key(queue_id)).wait()
    return None if record is None else Config.decode(record)


def _differences(there: Any, told: Any) -> list[tuple[Any, int]]:
    """Return by how much each counter is short of the count."""
    return [
        (what, there[what] - told[what]) for what in sorted(there.keys() | told.keys()) if there[what] != told[what]
    ]
