"""Neighbours: which items stand next to one that is ready, whatever the queue's depth."""

from __future__ import annotations

from dataclasses import dataclass

from queues import cursor, ids
from queues.cursor import End
from queues.item import Item
from queues.kv.port import ReadTransaction
from queues.queue import Queue
from queues.suffixes import ready_suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """What stands next to an item; None: it is the first, or the last."""

    #: Nearer to the minimum (FIFO: the head).
    lower: Item | None
    #: Nearer to the maximum (FIFO: the tail).
    higher: Item | None


def neighbours(queue: Queue, item: Item, *, preview: int, tr: ReadTransaction) -> Neighbours | None:
    """Return the neighbours of a ready item, their values cut to `preview` bytes; None for one of another state.

    Two reads of at most two keys each, at any depth.
    """
    suffix = _suffix(item)
    if suffix is None:
        return None

    def beside(end: End) -> Item | None:
        after = cursor.encode(queue.id, end, suffix)
        return next(iter(queue.items(end=end, limit=1, after=after, preview=preview, tr=tr).items), None)

    return Neighbours(lower=beside("max"), higher=beside("min"))


def _suffix(item: Item) -> bytes | None:
    if item.foreign is not None:
        return item.foreign.suffix
    rand = ids.parse(item.id)
    if item.state != "ready" or item.count is None or rand is None:
        return None
    return ready_suffix(item.priority, item.count, rand)
