"""Emptying the trash: entries beyond their deadline are marked as deleting, cleared in steps, then forgotten.

An entry that is deleting cannot be undone, and undoing reads that mark: so nothing is cleared that comes back.
Every step is one transaction, and what is left is found by the same deadline: a sweep that is killed anywhere goes on.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import IN_GENERATIONS, last_element
from queues.kv.port import KeyValueStore, Transaction
from queues.model import records
from queues.model.records import UNREADABLE, Tell, warn
from queues.model.tuples import Range

#: Keys of one step, and bytes that one reads: few at first, as they may be large.
_FIRST_STEP, _MAX_STEP, _STEP_BYTES = 16, 1_000, 1_000_000
#: Entries that cannot be read which one sweep goes past.
_MOST_LEFT = 1_000


@dataclass(frozen=True, slots=True)
class _Cleared:
    """What one step did."""

    keys: int
    size: int
    #: The entry is gone.
    done: bool
    #: The deadline of an entry that cannot be read, and why.
    left: tuple[bytes, Exception] | None = None


def sweep_trash(kv: KeyValueStore, keyspace: Keyspace, *, now_ms: int, limit: int, tell: Tell = warn) -> int:
    """Clear what is in the trash beyond its deadline, at most `limit` keys or a step more; return how many.

    Entries that cannot be read stay, and `tell` is told of them.
    """
    cleared = left = 0
    step = _FIRST_STEP
    begin: bytes | None = None
    while cleared < limit and left < _MOST_LEFT:
        one_step = partial(_step, keyspace=keyspace, now_ms=now_ms, limit=step, begin=begin)
        found = kv.transact(one_step, background=True)
        if found is None:
            break
        if found.left is not None:
            key, error = found.left
            tell(f"The trash entry {last_element(key).hex()}", error)
            left, begin = left + 1, key + b"\0"
            continue
        cleared += found.keys
        fits = _STEP_BYTES * found.keys // found.size if found.size else _MAX_STEP
        step = _FIRST_STEP if found.done else max(4, min(step * 4, fits, _MAX_STEP))
    return cleared


def _step(tr: Transaction, keyspace: Keyspace, now_ms: int, limit: int, begin: bytes | None) -> _Cleared | None:
    """Mark the first entry beyond its deadline as deleting, or clear some of its keys. None: there is none.

    `begin` leaves out the deadlines before it.
    """
    first, last = keyspace.deadlines.before(now_ms + 1)
    key = tr.get_key(first if begin is None else begin, last).wait()
    if key is None:
        return None
    tr.use_reserve()
    trash_id = last_element(key)
    record = tr.get(keyspace.trash.key(trash_id)).wait()
    try:
        header, value = ({}, b"") if record is None else records.decode(record)
        ranges = _ranges(keyspace, trash_id, header)
    except UNREADABLE as error:
        return _Cleared(0, 0, done=False, left=(key, error))
    if record is not None and not header["restored"] and not header.get("deleting"):
        tr.set(keyspace.trash.key(trash_id), records.encode(header | {"deleting": True}, value))
        return _Cleared(0, 0, done=False)
    keys = size = 0
    for start, end in ranges:
        pairs = tr.get_range(start, end, limit=limit - keys).wait()
        if pairs:
            tr.clear_range(start, pairs[-1][0] + b"\0")
        keys += len(pairs)
        size += sum(len(key) + len(value) for key, value in pairs)
        if keys == limit:
            return _Cleared(keys, size, done=False)
    if header.get("what") == "queue" and not header["restored"]:
        tr.clear(keyspace.merges.key(header["queue_id"]))
    tr.clear(keyspace.trash.key(trash_id))
    tr.clear(key)
    return _Cleared(keys + 2, size, done=True)


def _ranges(keyspace: Keyspace, trash_id: bytes, header: dict[str, Any]) -> list[Range]:
    """Return the ranges of all keys of an entry that is deleting."""
    ranges = [keyspace.trash_parts.below(trash_id)]
    if not header or header["restored"]:
        return ranges
    keys = keyspace.queue(header["queue_id"])
    if header["what"] == "queue":
        ranges += [keys.everything, *(of.below(header["queue_id"]) for of in (keyspace.history, keyspace.finished))]
    elif "generation" in header:
        generation = header["generation"]
        ranges.append(keys.generation(generation).everything)
        if generation == 1:
            ranges += [keys.index(state, generation).all for state in IN_GENERATIONS]
    return ranges
