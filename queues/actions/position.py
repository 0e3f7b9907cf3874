"""Positions: the place that an item has, or would have, among the ready items.

Neighbors are read at any depth. The items that leave before it are counted from the nearer edge of its priority band,
as far as a page may count; beyond that the number is an estimate.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from queues.items.stored_item import StoredItem
from queues.keys.queue_keys import QueueKeys, ready_elements, ready_suffix
from queues.kv.port import ReadTransaction
from queues.model import cursor, ids
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.item import Item
from queues.queue import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbors:
    """The items next to an item; None: it is the first, or the last."""

    #: Nearer to the minimum (FIFO: the head).
    lower: Item | None
    #: Nearer to the maximum (FIFO: the tail).
    higher: Item | None


def neighbors(queue: Queue, item: Item, *, preview: int, tr: ReadTransaction) -> Neighbors | None:
    """Return the neighbors of a ready item, their values cut to `preview` bytes. None for one of another state."""
    suffix = _suffix(item)
    return None if suffix is None else _neighbors(queue, suffix, (), preview, tr)


def _neighbors(queue: Queue, suffix: bytes, leaving: Collection[bytes], preview: int, tr: ReadTransaction) -> Neighbors:
    """Return the items next to a place, without those that leave theirs: a few reads at any depth."""

    def beside(end: End) -> Item | None:
        after: str | None = cursor.encode(queue.id, end, suffix)
        while after is not None:
            page = queue.items(end=end, limit=_NEXT if leaving else 1, after=after, preview=preview, tr=tr)
            stays = next((item for item in page.items if _suffix(item) not in leaving), None)
            if stays is not None:
                return stays
            after = page.cursor
        return None

    return Neighbors(lower=beside("max"), higher=beside("min"))


def _suffix(item: Item) -> bytes | None:
    if item.foreign is not None:
        return item.foreign.suffix
    rand = ids.parse(item.id)
    if item.state != "ready" or item.count is None or rand is None:
        return None
    return ready_suffix(item.priority, item.count, rand)


#: Items and bytes that are read at most to count from one edge, and how many at once.
BOUND = 1_000
_BYTES, _STEP = 1_000_000, 200
#: Items that are read at once to find the next one that stays.
_NEXT = 4
#: A value of a neighbor is cut to so many bytes.
_PREVIEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place among ready items."""

    #: Items that leave before it at the minimum end (FIFO: the head).
    before: int
    #: Ready items, this one left out.
    of: int
    #: False: `before` is about right.
    exact: bool
    neighbors: Neighbors


def position(
    tr: ReadTransaction, keys: QueueKeys, queue: Queue, suffix: bytes, leaving: Sequence[StoredItem]
) -> Position:
    """Return the position of an item that leaves its place for this suffix."""
    config = queue.config
    old = {there.suffix for there in leaving if there.state == "ready"}
    status = queue.status(preview=0, tr=tr)
    depths = [band.depth for band in status.bands] or [status.totals.ready]
    neighbors = _neighbors(queue, suffix, old, _PREVIEW, tr)
    before, exact = _before(tr, keys, config, suffix, depths)
    before -= sum(each < suffix for each in old)
    of = max(0, sum(depths) - len(old))
    return Position(before=max(0, min(before, of)), of=of, exact=exact, neighbors=neighbors)


def _before(
    tr: ReadTransaction, keys: QueueKeys, config: Config, suffix: bytes, depths: Sequence[int]
) -> tuple[int, bool]:
    band = 0 if config.fifo else _band(config, suffix)
    below = sum(depths[:band])
    low = config.edges[band - 1] if band else None
    high = config.edges[band] if not config.fifo and band < len(config.edges) else None
    ranges = []
    for of in map(keys.generation, config.generations):
        begin, end = of.ready.all
        begin = begin if low is None else of.ready.below(low)[0]
        end = end if high is None else of.ready.below(high)[0]
        ranges.append((begin, of.ready.at(suffix), end))
    counted = _count(tr, [(begin, place) for begin, place, _ in ranges], reverse=True)
    if counted is not None:
        return below + counted, True
    behind = _count(tr, [(place, end) for _, place, end in ranges], reverse=False)
    if behind is not None:
        return below + depths[band] - behind, True
    return below + depths[band] // 2, False


def _band(config: Config, suffix: bytes) -> int:
    priority = ready_elements(suffix, fifo=config.fifo)[0]
    assert priority is not None
    return bisect_right(config.edges, priority)


def _count(tr: ReadTransaction, ranges: Sequence[tuple[bytes, bytes]], *, reverse: bool) -> int | None:
    """Return the keys of these ranges. None when they are more than a page may count."""
    counted = size = 0
    for begin, end in ranges:
        while begin < end:
            pairs = tr.get_range(begin, end, limit=_STEP, reverse=reverse).wait()
            counted += len(pairs)
            size += sum(len(value) for _, value in pairs)
            if len(pairs) < _STEP:
                break
            if counted >= BOUND or size >= _BYTES:
                return None
            if reverse:
                end = pairs[-1][0]
            else:
                begin = pairs[-1][0] + b"\0"
    return counted
