"""A search of one item in what a bulk job has changed: the log beside its trash entry, in the job's order.

The log is searched by halves, so no read grows with the job.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from queues.bulk.bulk_job import Job
from queues.items.stored_item import StoredItem
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import last_element, ready_elements, timed_elements
from queues.kv.port import ReadTransaction
from queues.model import records
from queues.model.ids import at, to_ms
from queues.model.item import Item
from queues.model.records import UNREADABLE
from queues.trash.entries import PLACES

#: Changes of a log that is read whole where its order does not lead to the item.
_SHORT = 200
#: The record of one change: its places before and after.
_Change = Mapping[str, Any]


def has_changed(tr: ReadTransaction, keyspace: Keyspace, job: Job, item: Item) -> bool | None:
    """Say whether a job has changed an item; None where its log is gone, or where item and log do not tell."""
    found = _change(tr, keyspace, job, item)
    return None if found is None else bool(found)


def lease_released(tr: ReadTransaction, keyspace: Keyspace, job: Job, item: Item) -> datetime | None:
    """Return when the lease began that a job released. None: it released none of the item, as far as is known."""
    found = _change(tr, keyspace, job, item) if job.act == "release" else None
    if not found:
        return None
    with suppress(*UNREADABLE):
        return at(found["before"]["record"]["leased"])
    return None


def _change(tr: ReadTransaction, keyspace: Keyspace, job: Job, item: Item) -> _Change | None:
    """Return what a job's log tells of an item: empty where the job did not change it, None where it is not known."""
    if item.foreign is not None or not job.done:
        return {}
    try:
        key = _key_of(job, item)
        return _in_short(tr, keyspace, job, item) if key is None else _by_halves(tr, keyspace, job, item, key)
    except UNREADABLE:
        return None


def _by_halves(
    tr: ReadTransaction, keyspace: Keyspace, job: Job, item: Item, key: tuple[int | bytes, ...]
) -> _Change | None:
    parts, low, high = keyspace.trash_parts.sub(bytes.fromhex(job.id)), 0, job.done
    while low < high:
        middle = (low + high) // 2
        record = tr.get(parts.key(middle, PLACES)).wait()
        if record is None:
            return None
        header = records.decode(record)[0]
        if header["before"]["rand"] == item.id:
            return header
        if _logged_key(job, header, fifo=item.priority is None) < key:
            low = middle + 1
        else:
            high = middle
    return {}


def _in_short(tr: ReadTransaction, keyspace: Keyspace, job: Job, item: Item) -> _Change | None:
    begin, end = keyspace.trash_parts_from(bytes.fromhex(job.id), 0)
    pairs = tr.get_range(begin, end, limit=_SHORT).wait()
    changes = [records.decode(stored)[0] for key, stored in pairs if last_element(key) == PLACES]
    for header in changes:
        if header["before"]["rand"] == item.id:
            return header
    return {} if len(changes) == job.done else None


def _key_of(job: Job, item: Item) -> tuple[int | bytes, ...] | None:
    """Return what an item tells of its place in a job's order; None when it tells nothing any more."""
    rand = bytes.fromhex(item.id)
    if job.order == "age":
        if job.state != "ready":
            return (rand,)
        return None if item.ready_at is None else (to_ms(item.ready_at), rand)
    if job.act == "reprioritize" and job.ahead is None:
        return None  # in the order of the priorities before
    if job.act == "retry":  # in the order in which they died, the last time before
        died = [one.ended_at for one in item.attempt_log if one.died and one.ended_at <= job.began_at]
        return (to_ms(died[-1]), rand) if died else None
    if job.state == "delayed" and job.act != "promote":
        return None if item.due_at is None else (to_ms(item.due_at), rand)
    # Items that came in, became ready, or came to an end, have rising counts, and keep them in every state.
    return None if item.count is None else (item.count,)


def _logged_key(job: Job, header: dict[str, Any], *, fifo: bool) -> tuple[Any, ...]:
    rand = bytes.fromhex(header["before"]["rand"])
    if job.order == "age":
        before = StoredItem.of_place(header["before"], b"")
        return (rand,) if before.ready_at is None or job.state != "ready" else (to_ms(before.ready_at), rand)
    if job.act == "retry":
        return timed_elements(bytes.fromhex(header["before"]["suffix"]))
    suffix = bytes.fromhex(header["after"]["suffix"])
    timed = job.state == "delayed" and job.act != "promote"
    return timed_elements(suffix) if timed else (ready_elements(suffix, fifo=fifo)[1],)
