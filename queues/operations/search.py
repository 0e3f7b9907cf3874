"""Searching a queue: what is looked for, and one bounded step of looking.

A step is one read transaction over at most so many items and about so many bytes, so that it is quick at any depth;
its cursor says where the next one goes on, and how much was looked through. Positions are keys: items that come and go
meanwhile neither stop a search nor are met twice, unless an act gave them another place ahead of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from queues.errors import BadCursor, BadEnd, BadLimit, BadValue, WrongKind, display_name
from queues.items import ready
from queues.items import scan as walking
from queues.items.scan import ORDERS, Lane, Met, Order, Query, lanes_of
from queues.items.stored_item import ItemRead, PlaceRead, as_item, at_place
from queues.keys.queue_keys import STATES
from queues.kv.port import ReadTransaction
from queues.model import cursor as cursors
from queues.model import ids
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.item import Item
from queues.model.priority import normalize
from queues.model.records import reading
from queues.operations.open_queue import OpenQueue, Request, check_limit, check_preview, reads
from queues.operations.search_step import FIRST_READ, MAX_READ, Step

#: Items that one step looks through at most.
MAX_SCAN = 100_000

_ENDS: tuple[End, ...] = ("min", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one step of a search found."""

    items: tuple[Item, ...]
    #: Items that this step looked at.
    searched: int
    #: Pass it as `after=` to go on; None when there is nothing left.
    cursor: str | None
    #: The search is over: everything was looked at.
    ended: bool
    #: By place or by age: see `Queue.search`.
    order: Order
    #: Items that all steps up to here looked at, and found.
    searched_so_far: int
    found_so_far: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where a step begins."""

    order: Order | None = None
    place: bytes | None = None
    searched: int = 0
    found: int = 0


class FindRequest(Request[Item | None], frozen=True, gc=False):
    """Find the item of an id in whatever state. The answer is the item, or None."""

    item_id: str


class SearchRequest(Request[Found], frozen=True, gc=False):
    """Do one step of a search; the answer is a `Found`."""

    query: Query
    end: End
    limit: int
    #: Items that the step looks at, at most.
    scan: int
    preview: int | None
    #: The cursor of the step before.
    after: str | None


def checked_query(queue: OpenQueue, query: Query) -> Query:
    """Return a query with priorities of the queue's type. Raise the error that says why there is none."""
    if not isinstance(query, Query):
        raise BadValue("A search is for a Query, not {type}.", type=type(query).__name__)
    query.check()
    if query.low is None and query.high is None:
        return query
    config = queue.config
    if config.fifo:
        raise WrongKind("{queue} is a fifo queue: its items have no priorities.", queue=display_name(config.name))
    low, high = (None if bound is None else normalize(bound, config.priority_type) for bound in (query.low, query.high))
    return replace(query, low=low, high=high)


def search_request(
    queue: OpenQueue,
    query: Query,
    *,
    end: End,
    limit: int,
    scan: int,
    preview: int | None,
    after: str | None,
) -> SearchRequest:
    """Return the request for one step; raise `BadLimit`, `BadEnd`, `BadCursor` and what a query raises."""
    check_limit(limit)
    check_preview(preview)
    if isinstance(scan, bool) or not isinstance(scan, int) or not 1 <= scan <= MAX_SCAN:
        raise BadLimit("A step of a search looks at 1 to {most:,} items.", most=MAX_SCAN)
    if end not in _ENDS:
        raise BadEnd("A search begins at the min or the max end, not {end}.", end=f"{end!r:.40}")
    request = SearchRequest(queue.id, checked_query(queue, query), end, limit, scan, preview, after)
    _start(request)
    return request


# Executing


@reads(FindRequest)
def find(tr: ReadTransaction, queue: OpenQueue, request: FindRequest) -> Item | None:
    """Return the item of an id."""
    rand = ids.parse(request.item_id)
    if rand is None:
        return None

    def issue(config: Config) -> dict[str, PlaceRead]:
        return {state: PlaceRead(tr, queue.keys, config.generations, rand, state) for state in STATES}

    config, places = queue.with_config(tr, issue)
    for state, read in places.items():
        where = read.wait()
        if where is not None:
            with reading(config.name):
                there = ItemRead(tr, queue.keys, rand, state, where).wait()
                return None if there is None else as_item(there, fifo=config.fifo, codec=config.values)
    return None


class Layout:
    """How the items of a queue lie, as far as one step of a search asks; another class knows attached queues."""

    def __init__(self, tr: ReadTransaction, queue: OpenQueue, request: SearchRequest) -> None:
        self.tr = tr
        self.queue = queue
        self.request = request
        self.query = request.query
        self.config = queue.current(tr)

    def names_item(self) -> bool:
        """Say whether a whole id is looked for."""
        return ids.parse(self.query.item_id.lower()) is not None

    def find(self) -> Item | None:
        """Return the item of a whole id."""
        return find(self.tr, self.queue, FindRequest(self.queue.id, self.query.item_id.lower()))

    def lanes(self, order: Order) -> list[Lane]:
        """Return the stretches of keys to walk along."""
        return lanes_of(self.queue.keys, self.config, order, self.query)

    def meet(self, order: Order, found: Sequence[walking.Found]) -> list[Met | None]:
        """Return the items at these places."""
        tr, keys, config, state = self.tr, self.queue.keys, self.config, self.query.state
        if order == "age":
            return walking.read_index(tr, keys, config, state, found)
        return walking.read_places(tr, keys, config, state, found, timed=self.query.timed)

    def order(self) -> Order:
        """Choose the order in which less is looked at."""
        query = self.query
        if not query.timed:
            # Leases that are extended change their places, but not their ids.
            return "age" if query.state == "leased" and query.filters else "place"
        if query.state != "ready" or (query.low is None and query.high is None):
            return "age"
        # Bounds of both kinds: the index, when a step is enough to go through it.
        ended = walking.along(self.tr, self.lanes("age"), after=None, end="min", limit=self.request.scan)[1]
        return "age" if ended else "place"

    def with_pasts(self, found: Sequence[Item]) -> Sequence[Item]:
        """Return ready items with their pasts, which their own keys do not tell."""
        tr, keys, generations = self.tr, self.queue.keys, self.config.generations
        if not found or not ready.Ahead(tr, keys, generations).pasts():
            return found
        reading = [(item, PlaceRead(tr, keys, generations, bytes.fromhex(item.id))) for item in found]
        return [item if (where := read.wait()) is None else _with_past(item, where) for item, read in reading]


@reads(SearchRequest)
def search(
    tr: ReadTransaction,
    queue: OpenQueue,
    request: SearchRequest,
    *,
    shown: Callable[[bytes], bytes] | None = None,
    layout: type[Layout] = Layout,
) -> Found:
    """Do one step of a search."""
    query, limit, preview = request.query, request.limit, request.preview
    items_of = layout(tr, queue, request)
    if request.after is None and items_of.names_item():
        return _one(items_of.find(), query, preview, shown)
    start = _start(request)
    # Where keys tell what fits, one read brings the page and tells whether more is behind it.
    whole = not (query.text or query.item_id or query.error or query.worker) and limit < MAX_READ  # a page is one read
    first = limit + 1 if whole else FIRST_READ
    step = Step(partial(query.picked, shown=shown), limit=limit, scan=request.scan, first=first)
    order = start.order or items_of.order()
    place = _walk(items_of, order, start.place, step)
    items: Sequence[Item] = step.items
    if query.state == "ready":  # neither order tells all of their pasts
        items = items_of.with_pasts(items)
    if preview is not None:
        items = [replace(item, raw=item.raw[:preview]) for item in items]
    searched, found = start.searched + step.searched, start.found + len(items)
    return Found(
        items=tuple(items),
        searched=step.searched,
        cursor=None if place is None else _cursor(request, order, place, searched, found),
        ended=place is None,
        order=order,
        searched_so_far=searched,
        found_so_far=found,
    )


def _walk(layout: Layout, order: Order, place: bytes | None, step: Step) -> bytes | None:
    """Read until the step is full. Return the place behind which the next one begins, None when that is all."""
    lanes = layout.lanes(order)
    while True:
        found, last = walking.along(layout.tr, lanes, after=place, end=layout.request.end, limit=step.next_read())
        for (met_at, _, _), one in zip(found, layout.meet(order, found), strict=True):
            if not step.meet(met_at, one):
                return step.cut()
        if last:
            return None
        place = found[-1][0]
        if step.full():
            return place


def _one(item: Item | None, query: Query, preview: int | None, shown: Callable[[bytes], bytes] | None) -> Found:
    """Return what a search for a whole id found."""
    fits = item is not None and query.matches(item, shown=shown)
    looked = int(item is not None)
    if item is not None and preview is not None:
        item = replace(item, raw=item.raw[:preview])
    items = (item,) if item is not None and fits else ()
    return Found(
        items=items,
        searched=looked,
        cursor=None,
        ended=True,
        order="place",
        searched_so_far=looked,
        found_so_far=len(items),
    )


def _cursor(request: SearchRequest, order: Order, place: bytes, searched: int, found: int) -> str:
    head = bytes([ORDERS.index(order), _ENDS.index(request.end)]) + request.query.mark
    body = head + searched.to_bytes(8, "big") + found.to_bytes(8, "big") + place
    return cursors.encode(request.queue_id, "search", body)


def _start(request: SearchRequest) -> _Start:
    if request.after is None:
        return _Start()
    body, end = cursors.decode(request.after, request.queue_id, "search"), _ENDS.index(request.end)
    if len(body) < 23 or body[0] >= len(ORDERS) or body[1] != end or body[2:6] != request.query.mark:
        raise BadCursor("This page address belongs to another search; start again from its beginning.")
    return _Start(
        order=ORDERS[body[0]],
        place=body[22:],
        searched=int.from_bytes(body[6:14], "big"),
        found=int.from_bytes(body[14:22], "big"),
    )


def _with_past(item: Item, where: bytes) -> Item:
    there = at_place(bytes.fromhex(item.id), "ready", where)
    return replace(item, ready_at=there.ready_at, attempts=there.attempts, attempt_records=there.entries)
