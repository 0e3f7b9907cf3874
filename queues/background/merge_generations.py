"""Merging the generations of a queue to which an undo brought purged items back: item by item, in short transactions.

An item keeps its place and its id: only the generation that its key names is another one afterwards. Every step is one
transaction, so a merge that is killed anywhere goes on where it was; a key says which queues have something to merge.
Merging neither brings nor takes items: the older generation's total in falls by what the newest one's rises.
"""

from __future__ import annotations

from dataclasses import replace

from queues.items import generations, ready
from queues.items.counters import CounterDelta, total
from queues.items.equal_ids import FreeIds
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import QueueKeys
from queues.keys.suffix import in_generation, place, read_place, ready_elements, timed_elements, timed_suffix, with_rand
from queues.kv.port import KeyValue, KeyValueStore, Transaction
from queues.model.bands import band_of
from queues.model.config import Config
from queues.model.records import UNREADABLE, Tell, warn

#: Items and bytes of one step.
_STEP, _STEP_BYTES = 100, 1_000_000
#: Queues of one look.
_QUEUES = 500


def merge(kv: KeyValueStore, keyspace: Keyspace, *, limit: int, tell: Tell = warn) -> int:
    """Move at most `limit` items, or a step more, to the newest generations of their queues; return their number.

    Queues that cannot be read stay as they are, and `tell` hears of them.
    """
    begin, end = keyspace.all_merges
    moved = 0
    while moved < limit:
        pairs = kv.read(lambda tr, begin=begin: tr.get_range(begin, end, limit=_QUEUES).wait(), background=True)  # type: ignore[misc]
        for key, _ in pairs:
            queue_id = keyspace.id_of_merge(key)
            try:
                moved += _merge_queue(kv, keyspace, queue_id, limit - moved)
            except UNREADABLE as error:
                tell(f"The undone purge of queue {queue_id}", error)
        if len(pairs) < _QUEUES:
            break
        begin = pairs[-1][0] + b"\0"
    return moved


def _merge_queue(kv: KeyValueStore, keyspace: Keyspace, queue_id: int, limit: int) -> int:
    moved = 0
    while moved < limit:
        step = kv.transact(lambda tr: merge_step(tr, keyspace, queue_id), background=True)
        if step is None:
            break
        moved += step
    return moved


def merge_step(tr: Transaction, keyspace: Keyspace, queue_id: int) -> int | None:
    """Move some items and return their number; None when there is nothing more to do."""
    record = tr.get(keyspace.config(queue_id)).wait()
    if record is None:
        return None  # in the trash: it may come back, and its merge goes on then
    config = Config.decode(record)
    tr.use_reserve()
    if len(config.generations) < 2:
        tr.clear(keyspace.merge(queue_id))
        return None
    keys = keyspace.queue(queue_id)
    old = keys.generation(config.generations[0])
    pairs = tr.snapshot.get_range(*old.ready_range, limit=_STEP).wait()
    if pairs:
        return _move_ready(tr, keys, config, _within(pairs))
    pairs = tr.snapshot.get_range(*old.delayed_range(), limit=_STEP).wait()
    if pairs:
        return _move_delayed(tr, keys, config, _within(pairs))
    _finish(tr, keyspace, config)
    return None


def _move_ready(tr: Transaction, keys: QueueKeys, config: Config, pairs: list[KeyValue]) -> int:
    generation, newest = config.generations[0], config.generations[-1]
    old, new = keys.generation(generation), keys.generation(newest)
    entries = [ready.Entry(generation, old.suffix_of(key), key, value) for key, value in pairs]
    delta = CounterDelta(keys, wake=False)
    elements = [ready_elements(entry.suffix, fifo=config.fifo) for entry in entries]
    reads = [tr.get(keys.index("ready", rand, generation)) for _, _, rand in elements]
    ids = FreeIds(tr, lambda rand: keys.index("ready", rand, newest), [rand for _, _, rand in elements])
    for entry, (priority, _, rand), read in zip(entries, elements, reads, strict=True):
        where = read.wait()
        if where is None or read_place(where)[1] != entry.suffix:
            where = place(generation, entry.suffix)
        suffix, free = entry.suffix, ids.give(rand, entry.key)
        if free != rand:
            suffix = with_rand(suffix, free, fifo=config.fifo)
            where = place(generation, suffix, read_place(where)[2])
        tr.add_read_conflict_key(entry.key)
        tr.clear(entry.key)
        tr.clear(keys.index("ready", rand, generation))
        tr.set(new.ready(suffix), entry.value)
        tr.set(keys.index("ready", free, newest), in_generation(where, newest))
        if read_place(where)[2]:
            tr.set(new.tried, b"")
        if priority is not None:
            band = band_of(priority, config.edges)
            delta.band(generation, band, "out")
            delta.band(newest, band, "in")
    _count(delta, config, "ready", len(entries))
    delta.apply(tr)
    return len(entries)


def _move_delayed(tr: Transaction, keys: QueueKeys, config: Config, pairs: list[KeyValue]) -> int:
    generation, newest = config.generations[0], config.generations[-1]
    old, new = keys.generation(generation), keys.generation(newest)
    suffixes = [(key, old.delayed_suffix_of(key), stored) for key, stored in pairs]
    reads = [tr.get(keys.index("delayed", timed_elements(suffix)[1], generation)) for _, suffix, _ in suffixes]
    rands = [timed_elements(suffix)[1] for _, suffix, _ in suffixes]
    ids = FreeIds(tr, lambda rand: keys.index("delayed", rand, newest), rands)
    delta = CounterDelta(keys, wake=False)
    for (key, suffix, stored), read in zip(suffixes, reads, strict=True):
        due_ms, rand = timed_elements(suffix)
        where = read.wait()
        attempts = 0 if where is None else read_place(where)[2]
        tr.add_read_conflict_key(key)
        tr.clear(key)
        tr.clear(keys.index("delayed", rand, generation))
        free = ids.give(rand, key)
        suffix = timed_suffix(due_ms, free)
        tr.set(new.delayed(suffix), stored)
        tr.set(keys.index("delayed", free, newest), place(newest, suffix, attempts))
    _count(delta, config, "delayed", len(suffixes))
    delta.apply(tr)
    return len(suffixes)


def _finish(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Drop the older generation, which is empty now: what is put back there meanwhile conflicts with that."""
    keys = keyspace.queue(config.id)
    generation, newest = config.generations[0], config.generations[-1]
    old = keys.generation(generation)
    for of in (old.ready_range, old.delayed_range()):
        tr.add_read_conflict_range(*of)
    left = total(tr.snapshot.get(old.counter("ready", "out")).wait())
    tr.set(keyspace.config(config.id), replace(config, generations=config.generations[1:]).encode())
    delta = CounterDelta(keys, wake=True)
    # What came and went here did so all the same.
    delta.state(newest, "ready", "in", left)
    delta.state(newest, "ready", "out", left)
    delta.apply(tr)
    generations.drop(tr, keys, generation)
    tr.clear(keyspace.merge(config.id))


def _count(delta: CounterDelta, config: Config, state: str, n: int) -> None:
    delta.state(config.generations[0], state, "in", -n)
    delta.state(config.generations[-1], state, "in", n)


def _within(pairs: list[KeyValue]) -> list[KeyValue]:
    room = _STEP_BYTES
    for n, (_, value) in enumerate(pairs):
        room -= len(value)
        if room < 0 and n:
            return pairs[:n]
    return pairs
