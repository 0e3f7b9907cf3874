"""The items of an attached queue inside one transaction: push by the recipe's own rule, take, look, put back.

Conflicts as in other queues: a push reads by snapshot alone and conflicts with no other; taking conflicts on exactly
the keys it takes. Items are cleared one by one, never as a range: other programs may be pushing among them.
"""

from collections.abc import Sequence

from queues.errors import NotTheRecipe, TooLarge
from queues.items.counters import CounterDelta
from queues.items.ready import MAX_BYTES
from queues.items.stored_item import StoredItem, attached
from queues.keys.queue_keys import AttachedKeys, QueueKeys, ready_suffix
from queues.kv.port import KeyValue, ReadTransaction, Transaction
from queues.model.codec import Codec
from queues.model.config import Config
from queues.model.foreign_tuples import ForeignKey, item_id
from queues.model.item import Item
from queues.model.priority import Priority

#: Keys read for the last push order, where some keys are not the recipe's.
_LOOK_BACK = 20
#: The tuple encoding ends here.
_LARGEST = (1 << (255 * 8)) - 1


def insert(
    tr: Transaction,
    keys: QueueKeys,
    foreign: AttachedKeys,
    values: Sequence[tuple[bytes, Priority | None]],
    rands: Sequence[bytes],
    config: Config,
) -> list[Item]:
    """Push values, in order, each one behind the last of its priority, and return them as items."""
    places = suffixes(tr, foreign, [priority for _, priority in values], rands)
    for suffix, (value, _) in zip(places, values, strict=True):
        tr.set(foreign.at(suffix), value)
    _tell(tr, keys, "push", len(values), wake=True)
    return [
        as_item(suffix, value, fifo=config.fifo, codec=config.values)
        for suffix, (value, _) in zip(places, values, strict=True)
    ]


def suffixes(
    tr: Transaction, foreign: AttachedKeys, priorities: Sequence[Priority | None], rands: Sequence[bytes]
) -> list[bytes]:
    """Return the keys of new items behind the prefix, each after the last of its priority."""
    counts: dict[Priority | None, int] = {}
    for priority in priorities:
        if priority not in counts:
            counts[priority] = _last(tr, foreign, priority)
    found = []
    for priority, rand in zip(priorities, rands, strict=True):
        counts[priority] += 1
        found.append(ready_suffix(priority, counts[priority], rand))
    return found


def _last(tr: Transaction, foreign: AttachedKeys, priority: Priority | None) -> int:
    """Return the largest count of a priority. Where there is none, the recipes begin with count 0, with index 1."""
    fifo = priority is None
    pairs = tr.snapshot.get_range(*foreign.counts(priority), limit=_LOOK_BACK, reverse=True).wait()
    for key, _ in pairs:
        elements = ForeignKey(foreign.suffix_of(key), fifo).elements
        at = 0 if fifo else 1
        count = elements[at] if elements is not None and len(elements) > at else None
        if isinstance(count, int) and count < _LARGEST:
            return count
    if pairs:
        raise NotTheRecipe(
            "The last keys here are not the recipe's: no push order goes on from them. Nothing was pushed."
        )
    return 0 if fifo else -1


def as_item(suffix: bytes, value: bytes, *, fifo: bool, codec: Codec | None, preview: int | None = None) -> Item:
    """Return what lies at a key as an item, its value cut to `preview` bytes."""
    key = ForeignKey(suffix, fifo)
    priority, count = key.order
    return Item(
        id=item_id(suffix),
        priority=priority,
        count=count,
        raw=value if preview is None else value[:preview],
        pushed_at=None,
        size=len(value),
        foreign=key,
        codec=codec,
    )


def find(tr: ReadTransaction, foreign: AttachedKeys, suffix: bytes, config: Config) -> Item | None:
    """Return the item at this key."""
    if not foreign.holds(suffix):
        return None
    for _, value in tr.get_range(*foreign.only(suffix), limit=1).wait():
        return as_item(suffix, value, fifo=config.fifo, codec=config.values)
    return None


def find_all(tr: ReadTransaction, foreign: AttachedKeys, suffixes: Sequence[bytes | None]) -> list[StoredItem | None]:
    """Return the items at these keys behind the prefix. None for those that are not here."""
    reads = [
        tr.get_range(*foreign.only(suffix), limit=1) if suffix is not None and foreign.holds(suffix) else None
        for suffix in suffixes
    ]
    found = [[] if read is None else read.wait() for read in reads]
    return [attached(foreign.suffix_of(pairs[0][0]), pairs[0][1]) if pairs else None for pairs in found]


def take(
    tr: Transaction, keys: QueueKeys, foreign: AttachedKeys, pairs: Sequence[KeyValue], config: Config, verb: str
) -> list[Item]:
    """Remove these pairs, conflicting on exactly their keys, and return them as items."""
    if sum(len(value) for _, value in pairs) > MAX_BYTES:
        raise TooLarge("These items hold more than 5 MB together: take fewer at once.")
    items = []
    for key, value in pairs:
        suffix = foreign.suffix_of(key)
        clear(tr, foreign, suffix)
        items.append(as_item(suffix, value, fifo=config.fifo, codec=config.values))
    _tell(tr, keys, verb, len(items), wake=False)
    return items


def clear(tr: Transaction, foreign: AttachedKeys, suffix: bytes) -> None:
    """Remove one key, conflicting on exactly that."""
    tr.add_read_conflict_range(*foreign.only(suffix))
    tr.clear_range(*foreign.only(suffix))


def _tell(tr: Transaction, keys: QueueKeys, verb: str, n: int, *, wake: bool) -> None:
    """Count a verb's work, and wake viewers and workers of this store. Other programs do not watch its keys."""
    delta = CounterDelta(keys, wake=wake)
    delta.traffic(verb, n)
    delta.apply(tr)
