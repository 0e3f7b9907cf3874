"""Looking at items, changing nothing: the ends of a queue, and pages of its items."""

from datetime import datetime

from queues.errors import BadEnd, BadTime, NaiveTime, TooLarge
from queues.items import ready, scan
from queues.items.stored_item import as_item
from queues.keys.queue_keys import Subspace
from queues.kv.port import KeyValue, ReadTransaction, Result
from queues.model import cursor as cursors
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.ids import to_ms
from queues.model.item import Item, Page
from queues.model.priority import Priority, normalize
from queues.model.records import reading
from queues.model.tuples import Range
from queues.operations.open_queue import OpenQueue, Request, check_limit, check_number, check_preview, reads

_ENDS: dict[str, End] = {"min": "min", "max": "max", "head": "min", "tail": "max"}


class PeekManyRequest(Request[list[Item]], frozen=True, gc=False):
    """Look at one end. The answer is the list of the items that a pop of `n` would take."""

    n: int
    end: End


class PageRequest(Request[Page], frozen=True, gc=False):
    """Look at a page of ready items in order from one end."""

    end: End
    limit: int
    #: The place of the last item of the page before.
    after: bytes | None
    priority: Priority | None
    preview: int | None


class StatePageRequest(Request[Page], frozen=True, gc=False):
    """Look at a page of delayed, leased or dead items, in the order of their times."""

    state: cursors.List
    limit: int
    #: The place of the last item of the page before.
    after: bytes | None
    preview: int | None


def check_end(end: str) -> End:
    """Return an end by its name; raise `BadEnd`."""
    if end not in _ENDS:
        raise BadEnd("The ends of a queue are min and max (FIFO: head and tail), not {end}.", end=repr(end))
    return _ENDS[end]


def peek_many_request(queue: OpenQueue, n: int, end: str) -> PeekManyRequest:
    """Return the request to look at `n` items; raise `BadLimit`, `BadEnd`."""
    check_number(n)
    return PeekManyRequest(queue.id, n, check_end(end))


def page_request(
    queue: OpenQueue, *, end: str, limit: int, after: str | None, priority: Priority | None, preview: int | None
) -> PageRequest:
    """Return the request for a page; raise `BadEnd`, `BadLimit`, `BadCursor`, `WrongKind`, `BadPriority`."""
    side = check_end(end)
    check_limit(limit)
    check_preview(preview)
    place = None if after is None else cursors.decode(after, queue.id, side)
    if priority is not None:
        queue.check_kind("priority", "priorities", "head or tail")
        priority = normalize(priority, queue.config.priority_type)
    return PageRequest(queue.id, side, limit, place, priority, preview)


def state_page_request(
    queue: OpenQueue,
    state: cursors.List,
    limit: int,
    after: str | None,
    preview: int | None,
    since: datetime | None = None,
) -> StatePageRequest:
    """Return the request for a page of a state; raise `BadLimit`, `BadCursor`, `NaiveTime`.

    Without `after` it begins with the dead items that died at `since`.
    """
    check_limit(limit)
    check_preview(preview)
    place = None if after is None else cursors.decode(after, queue.id, state)
    if place is None and since is not None:
        if not isinstance(since, datetime):
            raise BadTime("The time since which items died is a datetime, not {type}.", type=type(since).__name__)
        if since.tzinfo is None:
            raise NaiveTime("The time since which items died needs a time zone.")
        place = queue.keys.dead.suffix_of(queue.keys.dead.key(to_ms(since)))
    return StatePageRequest(queue.id, state, limit, place, preview)


# Executing


@reads(PeekManyRequest)
def peek_many(tr: ReadTransaction, queue: OpenQueue, request: PeekManyRequest) -> list[Item]:
    """Return the first items from an end; raise `TooLarge` where a pop does."""
    items, _ = first_items(tr, queue, PageRequest(queue.id, request.end, request.n, None, None, None), request.n)
    return within_bytes(items)


@reads(PeekManyRequest, attached=True)
def peek_many_attached(tr: ReadTransaction, queue: OpenQueue, request: PeekManyRequest) -> list[Item]:
    """Return the first items of an attached queue; raise `TooLarge` where a pop does."""
    page = queue.look(PageRequest(queue.id, request.end, request.n, None, None, None), tr)
    return within_bytes([*page.items])


def within_bytes(items: list[Item]) -> list[Item]:
    """Return the items; raise `TooLarge` where they are too many bytes for one answer."""
    if sum(item.size for item in items) > ready.MAX_BYTES:
        raise TooLarge("These items hold more than 5 MB together: take fewer at once.")
    return items


@reads(PageRequest)
def page(tr: ReadTransaction, queue: OpenQueue, request: PageRequest) -> Page:
    """Return a page of ready items, of all generations in one order."""
    items, last = first_items(tr, queue, request, request.limit + 1)
    cursor = None if last is None else cursors.encode(queue.id, request.end, last)
    return Page(items=tuple(items), cursor=cursor)


def first_items(
    tr: ReadTransaction, queue: OpenQueue, request: PageRequest, reads: int
) -> tuple[list[Item], bytes | None]:
    """Return the items of a page, and the place of the last one where `reads` items show that more follow.

    Raise `QueueUnreadable`.
    """
    keys, reverse, limit = queue.keys, request.end == "max", request.limit

    def issue(config: Config) -> tuple[list[Result[list[KeyValue]]], ready.Ahead]:
        windows = [window_of(keys.generation(generation).ready, request) for generation in config.generations]
        results = [tr.get_range(*window, limit=reads, reverse=reverse) for window in windows]
        return results, ready.Ahead(tr, keys, config.generations)

    config, (results, ahead) = queue.with_config(tr, issue)
    with reading(config.name):
        found = ready.stored(keys, config, [pair for result in results for pair in result.wait()])
        found.sort(key=lambda there: there.suffix, reverse=reverse)
        shown = found[:limit]
        if ahead.pasts():
            shown = ready.with_pasts(tr, keys, shown)
        items = [as_item(there, fifo=config.fifo, codec=config.values, preview=request.preview) for there in shown]
    return items, shown[-1].suffix if len(found) > limit else None


def window_of(keys: Subspace, request: PageRequest) -> Range:
    """Return the range of the items that a page begins with."""
    begin, stop = keys.all
    if request.after is not None:
        place = keys.at(request.after)
        return (place + b"\x00", stop) if request.end == "min" else (begin, place)
    if request.priority is not None:
        first, last = keys.below(request.priority)
        return (first, stop) if request.end == "min" else (begin, last)
    return begin, stop


@reads(StatePageRequest)
def state_page(tr: ReadTransaction, queue: OpenQueue, request: StatePageRequest) -> Page:
    """Return a page of the items of a state."""
    found = scan.page(
        tr,
        queue.keys,
        queue.current(tr),
        request.state,
        after=request.after,
        limit=request.limit + 1,
        preview=request.preview,
    )
    shown = found[: request.limit]
    more = len(found) > request.limit
    return Page(
        items=tuple(item for _, item in shown),
        cursor=cursors.encode(queue.id, request.state, shown[-1][0]) if more else None,
    )
