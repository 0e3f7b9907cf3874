"""Merges the generations of a queue after the undo of a purge, item by item, in short transactions.

An item keeps its place and its id: only the generation that its key names is another one afterwards. Every step is one
transaction, so a merge that is killed anywhere goes on where it was; a key says which queues have something to merge.
Merging neither brings nor takes items: the older generation's total in falls by what the newest one's rises.
"""

from dataclasses import replace

from msgspec import structs

from queues.items import generations, state_machine
from queues.items.counters import CounterDelta, total
from queues.items.stored_item import PlaceRead, StoredItem, at_place, from_record, with_stored
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import SIDES, QueueKeys, place, read_place, ready_elements
from queues.kv.port import KeyValue, KeyValueStore, Transaction
from queues.model.config import Config
from queues.model.range_in_steps import in_background, pairs
from queues.model.records import UNREADABLE, Tell, warn

#: Items and bytes of one step.
_STEP, _STEP_BYTES = 100, 1_000_000


def merge(kv: KeyValueStore, keyspace: Keyspace, *, limit: int, tell: Tell = warn) -> int:
    """Move at most `limit` items, or a step more, to the newest generations of their queues; return their number.

    Queues that cannot be read stay as they are, and `tell` is told of them.
    """
    moved = 0
    for key, _ in pairs(in_background(kv), keyspace.merges.all):
        if moved >= limit:
            break
        queue_id = keyspace.merges.elements(key)[0]
        try:
            moved += _merge_queue(kv, keyspace, queue_id, limit - moved)
        except UNREADABLE as error:
            tell(f"The undone purge of queue {queue_id}", error)
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
    record = tr.get(keyspace.configs.key(queue_id)).wait()
    if record is None:
        return None  # in the trash: it may come back, and its merge goes on then
    config = Config.decode(record)
    tr.use_reserve()
    if len(config.generations) < 2:
        tr.clear(keyspace.merges.key(queue_id))
        return None
    keys = keyspace.queue(queue_id)
    old = keys.generation(config.generations[0])
    found = tr.snapshot.get_range(*old.ready.all, limit=_STEP).wait()
    if found:
        return _move(tr, keys, config, "ready", _ready(tr, keys, config, _within(found)))
    found = tr.snapshot.get_range(*old.delayed.all, limit=_STEP).wait()
    if found:
        return _move(tr, keys, config, "delayed", _delayed(keys, config, _within(found)))
    _finish(tr, keyspace, config)
    return None


def _ready(tr: Transaction, keys: QueueKeys, config: Config, found: list[KeyValue]) -> list[StoredItem]:
    """Return the ready items of these found, with the attempts of their indexes."""
    generation = config.generations[0]
    suffixes = [keys.generation(generation).ready.suffix_of(key) for key, _ in found]
    rands = [ready_elements(suffix, fifo=config.fifo)[2] for suffix in suffixes]
    reads = [PlaceRead(tr, keys, (generation,), rand) for rand in rands]
    bare = [
        at_place(rand, "ready", place(generation, suffix) if where is None or read_place(where)[1] != suffix else where)
        for rand, suffix, where in zip(rands, suffixes, (read.wait() for read in reads), strict=True)
    ]
    return [with_stored(there, value) for there, (_, value) in zip(bare, found, strict=True)]


def _delayed(keys: QueueKeys, config: Config, found: list[KeyValue]) -> list[StoredItem]:
    generation = config.generations[0]
    suffix_of = keys.generation(generation).delayed.suffix_of
    return [from_record("delayed", suffix_of(key), record, generation=generation) for key, record in found]


def _move(tr: Transaction, keys: QueueKeys, config: Config, state: str, items: list[StoredItem]) -> int:
    """Bring items from the older generation to the newest one. Nothing comes to the queue or leaves it."""
    delta = CounterDelta(keys, wake=False)
    for there in items:
        tr.add_read_conflict_key(there.key(keys))
        state_machine.change(tr, keys, config, there, structs.replace(there, generation=config.generations[-1]), delta)
    for side in SIDES:
        delta.state(config.generations[0], state, side, -len(items))
    delta.apply(tr)
    return len(items)


def _finish(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Drop the older generation, which is empty now: what is put back there meanwhile conflicts with that."""
    keys = keyspace.queue(config.id)
    generation, newest = config.generations[0], config.generations[-1]
    old = keys.generation(generation)
    for of in (old.ready.all, old.delayed.all):
        tr.add_read_conflict_range(*of)
    left = total(tr.snapshot.get(old.counters.key("ready", "out")).wait())
    tr.set(keyspace.configs.key(config.id), replace(config, generations=config.generations[1:]).encode())
    delta = CounterDelta(keys, wake=True)
    # What came and went here did so all the same.
    delta.state(newest, "ready", "in", left)
    delta.state(newest, "ready", "out", left)
    delta.apply(tr)
    generations.drop(tr, keys, generation)
    tr.clear(keyspace.merges.key(config.id))


def _within(found: list[KeyValue]) -> list[KeyValue]:
    room = _STEP_BYTES
    for n, (_, value) in enumerate(found):
        room -= len(value)
        if room < 0 and n:
            return found[:n]
    return found
