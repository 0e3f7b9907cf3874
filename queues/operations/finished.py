"""Reading the records of finished items, changing nothing: see `queues.items.finished`."""

from queues.items import finished
from queues.kv.port import ReadTransaction
from queues.model import cursor as cursors
from queues.model import ids
from queues.model.item import Item, Page
from queues.operations.open_queue import OpenQueue, Request, check_limit, reads


class FindFinishedRequest(Request[Item | None], frozen=True, gc=False):
    """Find the record of a finished item by its id. The answer is the item, or None."""

    item_id: str


class FinishedPageRequest(Request[Page], frozen=True, gc=False):
    """Look at a page of finished items, the newest first."""

    limit: int
    #: The place of the last item of the page before.
    after: bytes | None


def finished_page_request(queue: OpenQueue, limit: int, after: str | None) -> FinishedPageRequest:
    """Return the request for a page; raise `BadLimit`, `BadCursor`."""
    check_limit(limit)
    return FinishedPageRequest(queue.id, limit, None if after is None else cursors.decode(after, queue.id, "finished"))


@reads(FindFinishedRequest)
@reads(FindFinishedRequest, attached=True)
def find_finished(tr: ReadTransaction, queue: OpenQueue, request: FindFinishedRequest) -> Item | None:
    """Return a finished item."""
    rand = ids.parse(request.item_id)
    return None if rand is None else finished.find(tr, queue.context.keyspace, queue.current(tr), rand)


@reads(FinishedPageRequest)
def finished_page(tr: ReadTransaction, queue: OpenQueue, request: FinishedPageRequest) -> Page:
    """Return a page of finished items."""
    keyspace, limit = queue.context.keyspace, request.limit
    found = finished.page(tr, keyspace, queue.current(tr), after=request.after, limit=limit + 1)
    cursor = cursors.encode(queue.id, "finished", found[limit - 1][0]) if len(found) > limit else None
    return Page(items=tuple(item for _, item in found[:limit]), cursor=cursor)
