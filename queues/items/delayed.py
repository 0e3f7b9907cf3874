"""Delayed items that are due: promoted together in one transaction.

A delayed item lies under its due time. Promoting it makes it ready, behind all items pushed before: its count is the
promoting transaction's. Generations hold delayed items as they hold ready ones.

Conflicts: due items are read by snapshot, and promoting conflicts on exactly the keys it takes. So of two transactions
that promote the same item one does it and the other finds it done.
"""

import random

from queues.items import state_machine
from queues.items.counters import CounterDelta
from queues.items.stored_item import StoredItem, from_record, sound
from queues.keys.queue_keys import GenerationKeys, QueueKeys
from queues.kv.port import KeyValue, Transaction
from queues.model.config import Config
from queues.model.records import UNREADABLE, Tell

#: Bytes of values that one transaction promotes or expires, unless one item alone is larger.
BUDGET = 1_000_000
#: Pops of different processes must not promote the same late items; tests seed it.
_dice = random.SystemRandom()
#: Reads of one transaction of what is due, at most: it reads on where there is nothing but what cannot be read.
PAGES = 10


def promote_due(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    *,
    until_ms: int,
    limit: int,
    few: int | None = None,
    tell: Tell = lambda what, error: None,
) -> int:
    """Make at most `limit` items that are due by `until_ms` ready, in due order. Return their number.

    With `few` only so many of them, chosen at random. `tell` is told of records that cannot be read: they stay.
    """
    reads = [
        (generation, delayed, tr.snapshot.get_range(*delayed.delayed.before(until_ms + 1), limit=limit))
        for generation, delayed in ((generation, keys.generation(generation)) for generation in config.generations)
    ]
    due: list[StoredItem] = []
    for generation, delayed, read in reads:
        for _ in range(PAGES):
            found = read.wait()
            readable = [_readable(delayed, config, generation, pair, tell) for pair in found]
            due += (there for there in readable if there is not None)
            if len(found) < limit or any(readable):
                break
            rest = delayed.delayed.before(until_ms + 1, behind=found[-1][0])
            read = tr.snapshot.get_range(*rest, limit=limit)
    due = sorted(due, key=lambda there: there.suffix)[:limit]
    if few is not None and len(due) > few:
        due = [due[n] for n in sorted(_dice.sample(range(len(due)), few))]
    delta = CounterDelta(keys, wake=False)
    room, promoted = BUDGET, 0
    tr.use_reserve()
    for there in due:
        room -= there.weight
        if room < 0 and promoted:
            break
        tr.add_read_conflict_key(there.key(keys))
        after = state_machine.promoted(there, config, config.base + tr.stamp(), there.due_ms)
        state_machine.change(tr, keys, config, there, after, delta)
        promoted += 1
    if promoted:
        delta.traffic("promote", promoted)
        delta.apply(tr)
    return promoted


def _readable(
    delayed: GenerationKeys, config: Config, generation: int, pair: KeyValue, tell: Tell
) -> StoredItem | None:
    """Return the item of a pair; None where its record cannot be read."""
    key, record = pair
    try:
        return sound(from_record("delayed", delayed.delayed.suffix_of(key), record, generation=generation), config)
    except UNREADABLE as error:
        tell(f"A delayed item of {config.name!r}", error)
        return None
