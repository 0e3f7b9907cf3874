"""Items as they are: pages of one state, one item of any state, and finished items."""

from typing import Annotated, Literal

from django.http import HttpResponse
from ninja import Query

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import schemas
from pqadmin.api.answers import answer, tagged
from pqadmin.api.authorization import found
from pqadmin.api.items.matching import PREVIEW, State
from pqadmin.api.parameters import Cursor, Limit
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import Moment, looked_shape, seen_shape
from pqadmin.api.verbs.open_queue import router
from pqadmin.display.redaction import Redaction, rules_of
from pqadmin.display.values import what_searchers_see
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.pages.item_search import search_queue
from pqadmin.store import get_store
from queues import AnyQueue, Item
from queues import Query as ItemQuery
from queues.admin import MAX_VALUE_SIZE, Picked, parse_priority


@router.get("/queues/{queue}/items", operation_id="list_items", summary="List items", response=schemas.ItemPage)
@in_thread
def list_items(
    request: ApiRequest,
    queue: str,
    state: State = "ready",
    match: Annotated[str, Query(description="A part of the value.")] = "",
    field: Annotated[str, Query(description="A path such as `customer.id`, in which `match` is looked for.")] = "",
    exact: Annotated[bool, Query(description="The field is `match`.")] = False,
    id: Annotated[str, Query(description="An id, or a part of one.")] = "",
    error: Annotated[str, Query(description="The group of the errors of dead items.")] = "",
    worker: Annotated[str, Query(description="The whole name of the worker that holds leased items.")] = "",
    low: Annotated[str | None, Query(description="The smallest priority.")] = None,
    high: Annotated[str | None, Query(description="The largest priority.")] = None,
    since: Annotated[Moment | None, Query(description="Pushed, or ready, then or later.")] = None,
    until: Annotated[Moment | None, Query(description="Pushed, or ready, then or earlier.")] = None,
    end: Annotated[Literal["min", "max"], Query(description="The end to begin at.")] = "min",
    cursor: Cursor = None,
    limit: Limit = 50,
    preview: Annotated[
        int, Query(ge=0, le=MAX_VALUE_SIZE, description="Bytes of each value; `truncated` says if it is cut.")
    ] = PREVIEW,
) -> HttpResponse:
    """Return a page of items of one state, in the order of that state.

    With filters a page may hold fewer items than `limit`, even none, and a `next`: that many were looked through.
    """
    there = found(request, queue, Verb.READ, Right.READ)
    wanted = ItemQuery(
        state=state,
        text=match,
        field=field,
        exact=exact,
        item_id=id,
        error=error,
        worker=worker,
        low=None if low is None else parse_priority(low, there.priority_type),
        high=None if high is None else parse_priority(high, there.priority_type),
        since=since,
        until=until,
    )
    shown, rules = what_searchers_see(there.config), rules_of(there.config.redact)
    items, last = search_queue(there, wanted, after=cursor, end=end, limit=limit, preview=preview, shown=shown)
    shapes = [looked_shape(item, rules) for item in items]
    return answer({"items": shapes, "next": last.cursor, "searched": last.searched_so_far})


@router.get(
    "/queues/{queue}/items/{id}", operation_id="get_item", summary="Look at an item", response=schemas.ItemPicked
)
@in_thread
def get_item(request: ApiRequest, queue: str, id: str) -> HttpResponse:
    """Return an item of any state; the ETag is for `If-Match`. Rules of redaction hide parts of its value."""
    there = found(request, queue, Verb.READ, Right.READ)
    picked = pick(there, id)
    seen = seen_shape(picked.item, rules_of(there.config.redact))
    return answer({**seen, "etag": picked.etag}, headers=tagged(picked.etag))


@router.get(
    "/queues/{queue}/finished",
    operation_id="list_finished",
    summary="List finished items",
    response=schemas.FinishedPage,
)
@in_thread
def list_finished(request: ApiRequest, queue: str, cursor: Cursor = None, limit: Limit = 50) -> HttpResponse:
    """Return a page of the items that programs acknowledged or popped, the newest first.

    A queue keeps them for the time of its setting `keep_finished`: the newest 10,000 at most, each with the first 256
    bytes of its value.
    """
    there = found(request, queue, Verb.READ, Right.READ)
    page, rules = there.finished(limit=limit, after=cursor), rules_of(there.config.redact)
    return answer({"items": [_finished_shape(item, rules) for item in page.items], "next": page.cursor})


@router.get(
    "/queues/{queue}/finished/{id}",
    operation_id="get_finished",
    summary="Look at a finished item",
    response=schemas.Finished,
)
@in_thread
def get_finished(request: ApiRequest, queue: str, id: str) -> HttpResponse:
    """Return what the queue keeps of a finished item: how, when and by which program it left, and its attempts."""
    there = found(request, queue, Verb.READ, Right.READ)
    if (item := there.find_finished(id)) is None:
        raise Problem("ItemNotFound", "The queue keeps no record of this item: it is not finished, or was so long ago.")
    return answer(_finished_shape(item, rules_of(there.config.redact)))


def _finished_shape(item: Item, rules: Redaction) -> Shape:
    return {**looked_shape(item, rules), "finished_at": time_shape(item.finished_at)}


def pick(queue: AnyQueue, item_id: str) -> Picked:
    """Return an item of any state with its tag; raise `ItemNotFound`."""
    selection = get_store().actions("").pick(queue.name, [item_id], expect_id=queue.id)
    if not selection.picked:
        raise Problem("ItemNotFound", "The item is not in the queue: it was taken, or was never there.")
    return selection.picked[0]
