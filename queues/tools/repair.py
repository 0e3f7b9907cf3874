"""Mending one queue: index, counters, bands, push order, drift flag.

Every mending transaction reads again what it mends. Counters are mended by what was counted, and only while the
queue's change key still is the one of the count; totals only grow, so the smaller side of a depth is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from queues.items import located
from queues.items.counters import CounterDelta
from queues.items.located import StoredItem
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import QueueKeys, Side
from queues.keys.suffix import place, read_place
from queues.kv.port import KeyValueStore, Transaction
from queues.model.config import Config
from queues.tools.count import CountedItem, Double, QueueCount, ready_items, stray_entries

#: Index entries of one transaction.
_STEP = 200


def mend_index(kv: KeyValueStore, keyspace: Keyspace, config: Config) -> tuple[int, int]:
    """Let the index show every ready item where it stands, and nothing else; return (entries written, cleared)."""
    keys = keyspace.queue(config.id)

    def look(fn: Callable[[Any], Any]) -> Any:
        return kv.read(fn, background=True)

    written = cleared = 0
    for generation in config.generations:
        for items in ready_items(look, keys, config, generation):
            lost = [item for item in items if not item.indexed and item.rand is not None]
            for at in range(0, len(lost), _STEP):
                part = lost[at : at + _STEP]
                written += kv.transact(
                    lambda tr, part=part, generation=generation: _write_entries(tr, keys, generation, part),  # type: ignore[misc]
                    background=True,
                )
    for strays in stray_entries(look, keys, config):
        for at in range(0, len(strays), _STEP):
            some = strays[at : at + _STEP]
            cleared += kv.transact(lambda tr, some=some: _clear_entries(tr, keys, some), background=True)  # type: ignore[misc]
    return written, cleared


def _write_entries(tr: Transaction, keys: QueueKeys, generation: int, items: Sequence[CountedItem]) -> int:
    tr.use_reserve()
    reads = [(item, tr.get(item.key), tr.get(keys.index("ready", item.rand or b"", generation))) for item in items]
    written = 0
    for item, there, entry in reads:
        old = entry.wait()
        if there.wait() is None or item.rand is None:
            continue
        attempts = 0
        if old is not None:
            other_generation, other, attempts = read_place(old)
            # Two items of one id: the index keeps the one that it shows.
            if tr.get(keys.generation(other_generation).ready(other)).wait() is not None:
                continue
        tr.set(keys.index("ready", item.rand, generation), place(generation, item.suffix, attempts))
        if attempts:
            tr.set(keys.generation(generation).tried, b"")
        written += 1
    if written:
        CounterDelta(keys, wake=False).apply(tr)
    return written


def _clear_entries(tr: Transaction, keys: QueueKeys, entries: Sequence[bytes]) -> int:
    tr.use_reserve()
    cleared = 0
    for key, read in [(key, tr.get(key)) for key in entries]:
        entry = read.wait()
        if entry is None:
            continue
        generation, suffix, _ = read_place(entry)
        if tr.get(keys.generation(generation).ready(suffix)).wait() is None:
            tr.clear(key)
            cleared += 1
    if cleared:
        CounterDelta(keys, wake=False).apply(tr)
    return cleared


def mend_ids(kv: KeyValueStore, keyspace: Keyspace, config: Config, doubles: Sequence[Double]) -> int:
    """Give items that have the id of another one other ids, and return their number."""
    keys = keyspace.queue(config.id)

    def give(tr: Transaction, some: Sequence[Double]) -> int:
        tr.use_reserve()
        given = sum(
            located.give_id(
                tr,
                keys,
                StoredItem(
                    state=double.state,
                    rand=double.rand,
                    generation=double.generation,
                    suffix=double.suffix,
                    attempts=0,
                    stored=b"",
                ),
                fifo=config.fifo,
            )
            for double in some
        )
        if given:
            CounterDelta(keys, wake=False).apply(tr)
        return given

    steps = (doubles[at : at + _STEP] for at in range(0, len(doubles), _STEP))
    return sum(kv.transact(lambda tr, some=some: give(tr, some), background=True) for some in steps)  # type: ignore[misc]


def mend_counters(kv: KeyValueStore, keyspace: Keyspace, config: Config, count: QueueCount) -> bool:
    """Let counters and bands say what was counted, and take the drift flag down; False when the queue has changed."""
    keys = keyspace.queue(config.id)

    def write(tr: Transaction) -> bool:
        tr.use_reserve()
        if tr.get(keys.change).wait() != count.change or _config(tr, keyspace, config.id) != config:
            return False
        for (generation, state), missing in _differences(count.items, count.told):
            side: Side = "in" if missing > 0 else "out"
            tr.add(keys.generation(generation).counter(state, side), abs(missing))
        if not config.fifo:
            for (generation, band), missing in _differences(count.bands, count.told_bands):
                tr.add(keys.generation(generation).band(band, "in" if missing > 0 else "out"), abs(missing))
        tr.clear(keys.drift)
        CounterDelta(keys, wake=True).apply(tr)
        return True

    return kv.transact(write, background=True)


def mend_order(kv: KeyValueStore, keyspace: Keyspace, config: Config, max_count: int) -> bool:
    """Raise the queue's base so that pushes sort behind what is there; False when it is not needed."""
    keys = keyspace.queue(config.id)

    def write(tr: Transaction) -> bool:
        tr.use_reserve()
        current = _config(tr, keyspace, config.id)
        if current is None or current.base + tr.stamp() > max_count:
            return False
        tr.set(keyspace.config(config.id), replace(current, base=max_count).encode())
        CounterDelta(keys, wake=True).apply(tr)
        return True

    return kv.transact(write, background=True)


def _config(tr: Transaction, keyspace: Keyspace, queue_id: int) -> Config | None:
    record = tr.get(keyspace.config(queue_id)).wait()
    return None if record is None else Config.decode(record)


def _differences(there: Any, told: Any) -> list[tuple[Any, int]]:
    """Return by how much counters fall short of what is there."""
    return [
        (what, there[what] - told[what]) for what in sorted(there.keys() | told.keys()) if there[what] != told[what]
    ]
