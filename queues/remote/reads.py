"""Reads over HTTP: ends, pages, searches, depths and what a queue has to take."""

import re
from typing import Any

from queues.consumers.consumer import Consumers
from queues.errors import ItemNotFound, QueueNotFound
from queues.model import cursor as cursors
from queues.model import ids
from queues.model.item import Item, Page
from queues.operations.finished import FindFinishedRequest, FinishedPageRequest
from queues.operations.measure import ConsumersRequest, DepthRequest, TotalsRequest
from queues.operations.open_queue import OpenQueue, Request
from queues.operations.peek import PageRequest, PeekManyRequest, StatePageRequest
from queues.operations.search import FindRequest, Found, SearchRequest
from queues.operations.wait import Outlook, OutlookRequest
from queues.remote.connection import Connection
from queues.remote.delivery import description_call, over_http, refuse
from queues.remote.delivery import outlook as ask_outlook
from queues.remote.shapes import consumers_of, item_of, judged_of, look_of, shape_of_query
from queues.remote.verbs import call_on
from queues.status.site_protocol import QueueLook
from queues.status.status import Totals

#: Bytes of a value in a list that is not cut.
_WHOLE = 90_000
_CURSOR = re.compile(rb"[\w=-]+")


@over_http(PeekManyRequest)
async def peek_many(connection: Connection, queue: OpenQueue, request: PeekManyRequest, key: str) -> list[Item]:
    """Look at one end."""
    call = call_on(queue, "GET", "peek", query={"end": request.end, "n": request.n})
    return [item_of(shape, queue.config) for shape in (await connection.send(call))["items"]]


@over_http(FindRequest)
async def find(connection: Connection, queue: OpenQueue, request: FindRequest, key: str) -> Item | None:
    """Find an item by its id."""
    if ids.parse(request.item_id) is None:
        return None
    try:
        shape = await connection.send(call_on(queue, "GET", "items", request.item_id))
    except ItemNotFound:
        return None
    return item_of(shape, queue.config)


@over_http(FindFinishedRequest)
async def find_finished(
    connection: Connection, queue: OpenQueue, request: FindFinishedRequest, key: str
) -> Item | None:
    """Find the record of a finished item by its id."""
    if ids.parse(request.item_id) is None:
        return None
    try:
        shape = await connection.send(call_on(queue, "GET", "finished", request.item_id))
    except ItemNotFound:
        return None
    return item_of(shape, queue.config)


@over_http(PageRequest)
async def page(connection: Connection, queue: OpenQueue, request: PageRequest, key: str) -> Page:
    """Look at a page of ready items."""
    begin = {} if request.priority is None else {"low" if request.end == "min" else "high": str(request.priority)}
    return await _page(connection, queue, request, request.end, state="ready", end=request.end, **begin)


@over_http(FinishedPageRequest)
async def finished_page(connection: Connection, queue: OpenQueue, request: FinishedPageRequest, key: str) -> Page:
    """Look at a page of finished items."""
    after = None if request.after is None else request.after.decode()
    call = call_on(queue, "GET", "finished", query={"cursor": after, "limit": request.limit})
    return _page_of(queue, "finished", await connection.send(call))


@over_http(StatePageRequest)
async def state_page(connection: Connection, queue: OpenQueue, request: StatePageRequest, key: str) -> Page:
    """Look at a page of another state."""
    return await _page(connection, queue, request, request.state, state=request.state)


async def _page(
    connection: Connection,
    queue: OpenQueue,
    request: PageRequest | StatePageRequest,
    of: cursors.List,
    **query: str,
) -> Page:
    if request.after is not None and not _CURSOR.fullmatch(request.after):
        refuse()  # dead items since a time
    after = None if request.after is None else request.after.decode()
    found = await _list(connection, queue, query, cursor=after, limit=request.limit, preview=request.preview)
    return _page_of(queue, of, found)


def _page_of(queue: OpenQueue, of: cursors.List, found: Any) -> Page:
    # The server's cursor is in place of a key's suffix.
    cursor = None if found["next"] is None else cursors.encode(queue.id, of, found["next"].encode())
    return Page(items=tuple(item_of(shape, queue.config) for shape in found["items"]), cursor=cursor)


@over_http(SearchRequest)
async def search(connection: Connection, queue: OpenQueue, request: SearchRequest, key: str) -> Found:
    """Do some steps of a search."""
    wanted, query = request.query, {**shape_of_query(request.query), "end": request.end}
    found = await _list(connection, queue, query, cursor=request.after, limit=request.limit, preview=request.preview)
    items = tuple(item_of(shape, queue.config) for shape in found["items"])
    return Found(
        items=items,
        searched=found["searched"],
        cursor=found["next"],
        ended=found["next"] is None,
        order="age" if wanted.timed or wanted.state == "leased" else "place",
        searched_so_far=found["searched"],
        found_so_far=len(items),
    )


async def _list(
    connection: Connection,
    queue: OpenQueue,
    query: dict[str, Any],
    *,
    cursor: str | None,
    limit: int,
    preview: int | None,
) -> Any:
    asked = {**query, "cursor": cursor, "limit": limit, "preview": _WHOLE if preview is None else preview}
    return await connection.send(call_on(queue, "GET", "items", query=asked))


@over_http(DepthRequest)
async def depth(connection: Connection, queue: OpenQueue, request: DepthRequest, key: str) -> int:
    """Count the items of a state."""
    return int((await connection.send(call_on(queue, "GET")))[request.state] or 0)


@over_http(TotalsRequest)
async def totals(connection: Connection, queue: OpenQueue, request: TotalsRequest, key: str) -> Totals:
    """Count the items by state. Of the traffic, what came in is known."""
    return judged_of(await connection.send(call_on(queue, "GET"))).status.totals


class LookRequest(Request[QueueLook | None], frozen=True, gc=False):
    """Read counters and the items near the ends, unless the queue is as it was at a change."""

    change: int | None


@over_http(LookRequest)
async def look(connection: Connection, queue: OpenQueue, request: LookRequest, key: str) -> QueueLook | None:
    """Look at a queue that is followed."""
    shape = await connection.send(call_on(queue, "GET", "look", query={"change": request.change}))
    return look_of(shape, queue.config)


@over_http(ConsumersRequest)
async def consumers(connection: Connection, queue: OpenQueue, request: ConsumersRequest, key: str) -> Consumers:
    """Read which processes take from the queue."""
    return consumers_of(await connection.send(call_on(queue, "GET", "consumers")))


@over_http(OutlookRequest)
async def outlook(connection: Connection, queue: OpenQueue, request: OutlookRequest, key: str) -> Outlook:
    """Ask what there is to take; the server waits for something if it is to."""
    found = await ask_outlook(connection, {queue.id: queue.config.name}, request.wait)
    if not found:
        await connection.send(description_call(queue.config.name, queue.id))  # it says why
        raise QueueNotFound(queue.config.name)
    return outlook_of(queue, found[0]["ready"])


def outlook_of(queue: OpenQueue, ready: int) -> Outlook:
    """Return what a server tells of a queue: its delivery watches names by ids."""
    return Outlook(known={b"%d" % queue.id: queue.config.name.encode()}, ready=ready)
