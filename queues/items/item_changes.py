"""Changes of items inside one transaction: delete, move, re-prioritize, edit. Each returns its changes, for the trash.

A leased item is held by a worker: it can be deleted, and nothing else.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from queues.errors import (
    BadPriority,
    ItemLeased,
    NotForAttached,
    ValueChanged,
    ValueTooLarge,
    Words,
    WrongKind,
    display_name,
    some_are,
)
from queues.items import attached as attached_items
from queues.items import state_machine
from queues.items.counters import admit, refuse_large
from queues.items.ready import Heads, stored
from queues.items.state_machine import Change
from queues.items.stored_item import StoredItem, as_item, attached, digest
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys, QueueKeys, ready_elements, ready_suffix
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config
from queues.model.foreign_tuples import ForeignKey
from queues.model.priority import Priority, normalize
from queues.model.records import MAX_VALUE_SIZE

Place = Literal["front", "back"]
#: How a refusal of a move ends.
_NOTHING_MOVED = Words(": nothing was moved.")


def delete(tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem]) -> list[Change]:
    """Take items out of a queue, whatever their state."""
    tr.use_reserve()  # values go, they do not come in
    return state_machine.apply(tr, keyspace, config, [Change(there, None) for there in stored_items], "delete")


def move(
    tr: Transaction,
    keyspace: Keyspace,
    source: Config,
    target: Config,
    stored_items: Sequence[StoredItem],
    *,
    priority: Priority | None,
    rands: Sequence[bytes],
    now_ms: int,
) -> list[Change]:
    """Bring items to another queue: ready and dead ones come in as newcomers, delayed ones stay delayed.

    Each keeps its id, unless it comes from an attached queue, which has none of ours: `rands` are for those. Its
    priority is kept where it fits, or `priority` given to it.
    """
    priorities = arriving(source, target, stored_items, priority=priority)
    sizes = (len(there.value) for there in stored_items)
    admit(tr, keyspace.queue(target.id), target, sizes, _NOTHING_MOVED)
    tr.use_reserve()  # values move, they do not come in
    state_machine.apply(tr, keyspace, source, [Change(there, None) for there in stored_items], "move")
    afters = _moved(tr, target, stored_items, priorities, rands, now_ms)
    state_machine.apply(tr, keyspace, target, [(None, there) for there in afters], "move_in")
    return list(map(Change, stored_items, afters))


def arriving(
    source: Config, target: Config, stored_items: Sequence[StoredItem], *, priority: Priority | None
) -> list[Priority | None]:
    """Return the priorities that items get in another queue, or raise why they do not fit there."""
    _refuse_leased(stored_items)
    if target.attached and any(there.state == "delayed" for there in stored_items):
        raise NotForAttached(target.name, "its items are never delayed. Nothing was moved.")
    if source.prefix is not None and target.prefix is None:
        _check_sizes(target, stored_items)
    same = source.prefix is None and source.priority_type == target.priority_type
    return [_priority_in(target, _priority_of(there, source), priority, same=same) for there in stored_items]


def _moved(
    tr: Transaction,
    target: Config,
    stored_items: Sequence[StoredItem],
    priorities: Sequence[Priority | None],
    rands: Sequence[bytes],
    now_ms: int,
) -> list[StoredItem]:
    """Return items as they come into another queue."""
    ids = [there.rand or minted for there, minted in zip(stored_items, rands, strict=True)]
    if target.prefix is not None:
        suffixes = attached_items.suffixes(tr, AttachedKeys(target.prefix), priorities, ids)
        return [attached(suffix, there.value) for suffix, there in zip(suffixes, stored_items, strict=True)]
    moved = []
    for there, priority, rand in zip(stored_items, priorities, ids, strict=True):
        if there.state == "delayed":
            after = replace(state_machine.with_priority(there, target, priority), generation=target.generations[-1])
        else:
            suffix = ready_suffix(priority, target.base + tr.stamp(), rand)
            # Dead items begin anew, or the next worker's failure would be their last again.
            tried = there.attempts if there.state == "ready" else 0
            after = state_machine.new_ready(
                rand, there.value, target, suffix, tried=tried, log=there.log, since_ms=now_ms
            )
        moved.append(after)
    return moved


def reprioritize(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    stored_items: Sequence[StoredItem],
    *,
    priority: Priority | None = None,
    shift: Priority | None = None,
    place: Place | None = None,
) -> list[Change]:
    """Give items another priority, or bring them to the front or the back; those that do not change are left out."""
    newest = config.base + tr.stamp() if place == "back" else 0
    # Ends are read by snapshot: an item pushed there meanwhile counts as pushed later.
    afters = reprioritized(
        tr.snapshot, keyspace, config, stored_items, priority=priority, shift=shift, place=place, newest=newest
    )
    changes = [
        Change(before, after)
        for before, after in zip(stored_items, afters, strict=True)
        if (after.suffix, after.header) != (before.suffix, before.header)
    ]
    return state_machine.apply(tr, keyspace, config, changes, "reprioritize")


def reprioritized(
    tr: ReadTransaction,
    keyspace: Keyspace,
    config: Config,
    stored_items: Sequence[StoredItem],
    *,
    priority: Priority | None = None,
    shift: Priority | None = None,
    place: Place | None = None,
    newest: int,
) -> list[StoredItem]:
    """Return items as they would be with another priority, or at the front or the back; change nothing."""
    if config.attached:
        raise NotForAttached(config.name, "its items are not re-prioritized.")
    _refuse_leased(stored_items)
    if place is not None:
        return _to_place(tr, keyspace.queue(config.id), config, stored_items, place, newest)
    if config.fifo:
        raise WrongKind(
            "{queue} is a fifo queue: its items go to the front or the back.", queue=display_name(config.name)
        )
    return [
        state_machine.with_priority(there, config, _shifted(there.priority(fifo=config.fifo), priority, shift, config))
        for there in stored_items
    ]


def edit(
    tr: Transaction, keyspace: Keyspace, config: Config, there: StoredItem, value: bytes, *, expect: bytes | str
) -> list[Change]:
    """Give an item another value, if its value still is what was seen: the very bytes, or their digest."""
    if config.attached:
        raise NotForAttached(config.name, "its items are not edited.")
    _refuse_leased([there])
    now = there.value
    if (digest(now) if isinstance(expect, str) else now) != expect:
        raise ValueChanged(
            "The item has another value now than the one you saw: nothing was changed.",
            as_item(there, fifo=config.fifo, codec=config.values),
        )
    if value != now:
        refuse_large(config, [len(value)])
    after = state_machine.with_value(there, value)
    changes = [Change(there, after)] if value != now else []
    return state_machine.apply(tr, keyspace, config, changes, "edit")


def _to_place(
    tr: ReadTransaction, keys: QueueKeys, config: Config, stored_items: Sequence[StoredItem], place: Place, newest: int
) -> list[StoredItem]:
    """Return ready items at the front or the back, in their present order."""
    if any(there.state != "ready" for there in stored_items):
        raise WrongKind("Only ready items can be brought to the front or the back: promote or retry the rest first.")
    priority, first = beyond(tr, keys, config, place, len(stored_items), newest)
    order = sorted(range(len(stored_items)), key=lambda n: stored_items[n].suffix)
    afters = list(stored_items)
    for offset, n in enumerate(order):
        suffix = ready_suffix(priority, first + offset, stored_items[n].rand)
        afters[n] = state_machine.at_suffix(stored_items[n], suffix)
    return afters


def beyond(
    tr: ReadTransaction, keys: QueueKeys, config: Config, place: Place, number: int, newest: int
) -> tuple[Priority | None, int]:
    """Return priority and count of the first of `number` items beyond the rest at the front or back.

    At the back the count is `newest` at least, that of an item pushed now.
    """
    end = Heads(tr, keys, config.generations, end="min" if place == "front" else "max", limit=1).wait()
    if not end:
        return None, 0
    priority, count, _ = ready_elements(stored(keys, config, end)[0].suffix, fifo=config.fifo)
    return priority, count - number if place == "front" else max(count + 1, newest)


def _shifted(now: Priority | None, to: Priority | None, shift: Priority | None, config: Config) -> Priority:
    if shift is None:
        return normalize(to, config.priority_type)
    if isinstance(now, str) or isinstance(shift, str | bool) or now is None:
        raise BadPriority("A text has no number to be shifted by: set the priority instead.")
    if isinstance(now, int) and isinstance(shift, float):
        shift = normalize(shift, "float")
        if not float(shift).is_integer():
            raise BadPriority("Priorities here are whole numbers: they cannot be shifted by {shift}.", shift=shift)
        shift = int(shift)
    try:
        return normalize(now + shift, config.priority_type)
    except OverflowError:
        raise BadPriority("Shifted so far, a priority would not fit the queue's type. Nothing was changed.") from None


def _priority_of(there: StoredItem, config: Config) -> Priority | None:
    if config.prefix is not None:
        return ForeignKey(there.suffix, config.fifo).priority
    return there.priority(fifo=config.fifo)


def _priority_in(target: Config, now: Priority | None, given: Priority | None, *, same: bool) -> Priority | None:
    """Return the priority of an item in another queue; `same`: both queues have one type of priorities."""
    if target.fifo:
        if given is not None:
            raise WrongKind("{queue} is a fifo queue: its items have no priority.", queue=display_name(target.name))
        return None
    if given is None and now is None:
        raise BadPriority(
            "Say which priority the items get in {queue}: they have none.", queue=display_name(target.name)
        )
    if given is None:
        return now if same else normalize(now, target.priority_type)
    return normalize(given, target.priority_type)


def _check_sizes(target: Config, stored_items: Sequence[StoredItem]) -> None:
    """Raise `ValueTooLarge` for foreign values that are larger than a queue of this store takes."""
    largest = max(len(there.value) for there in stored_items)
    if largest > MAX_VALUE_SIZE:
        raise ValueTooLarge(
            "A value in {queue} has at most {most:,} bytes; one of these has {size:,}. Nothing was moved.",
            queue=display_name(target.name),
            most=MAX_VALUE_SIZE,
            size=largest,
        )


def _refuse_leased(stored_items: Sequence[StoredItem]) -> None:
    leased = sum(there.state == "leased" for there in stored_items)
    if leased:
        what = some_are(leased, len(stored_items))
        raise ItemLeased("{what} in a worker's hands: release the lease first. Nothing was changed.", what=what)
