"""Pushes of the API: of one item or many, of a raw value, of a stream."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import unquote

from django.http import HttpResponse
from ninja import Query

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import schemas, threads, values
from pqadmin.api.answers import answer, key_of, once
from pqadmin.api.bodies import BYTES, CSV, JSON, NDJSON, TEXT, checked, content_type, invalid, json_of, raw
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.streams import import_items
from pqadmin.api.verbs.open_queue import Returned, open_queue, router
from pqadmin.files.shapes import Shape, item_shape
from pqadmin.store import get_store
from queues import AnyAsyncQueue, AnyQueue, AsyncPriorityQueue, Duration, FifoQueue, Item, Transaction
from queues.admin import parse_priority
from queues.errors import Worded

#: Bytes of a body that the event loop parses itself; a larger one would hold up other requests.
PARSED_AT_ONCE = 65_536
#: Headers of a push of one raw value, by their keys in META.
_OF_RAW = {"HTTP_PQ_PRIORITY": "PQ-Priority", "HTTP_PQ_DELAY": "PQ-Delay", "HTTP_PQ_DUE": "PQ-Due"}


@router.post("/queues/{queue}/items", operation_id="push", summary="Push items", response={201: schemas.Pushed})
async def push(
    request: ApiRequest,
    queue: str,
    returned: Returned = None,
    strict: Annotated[bool, Query(description="Stop at the first bad line of a stream.")] = False,
) -> HttpResponse:
    """Push one item or up to 1,000, all or none; or a stream of any number.

    A body in JSON is an item or `{"items": […]}`. A body of bytes or plain text (UTF-8) is the value of one item; its
    priority, delay or due time are the headers `PQ-Priority`, `PQ-Delay` and `PQ-Due`. NDJSON and CSV are pushed in
    chunks: a bad line is left out and told, and with an `Idempotency-Key` the same request sent again goes on where it
    was cut off. If all lines are bad, the request is refused with `BadFormat` and these as `errors`.
    """
    opened = await open_queue(request, queue, Verb.PUSH, Right.ACT)
    if content_type(request) not in (BYTES, TEXT):
        for field, name in _OF_RAW.items():
            if field in request.META:
                message = "is of a raw value (bytes or plain text): the items of this body have their own"
                raise invalid([{"in": "header", "field": name, "message": message}])
    if content_type(request) in (NDJSON, CSV):
        return await import_items(request, opened.sync, request.body_file, strict=strict)
    shape = item_shape if returned else values.pushed_shape
    read = partial(_new_items, request, opened.sync)
    size = int(request.META.get("CONTENT_LENGTH") or PARSED_AT_ONCE + 1)
    items = read() if size <= PARSED_AT_ONCE else await threads.run(read)
    key = key_of(request)
    if key is None:
        with _alone(items):
            pushed = await _push(opened, items)
        return answer({"items": [shape(item) for item in pushed]}, 201)

    def execute(tr: Transaction) -> tuple[int, Shape]:
        with _alone(items):
            return 201, {"items": [shape(item) for item in _push_within(opened.sync, items, tr)]}

    return await threads.run(partial(once, request, key, opened.sync, execute))


def _new_items(request: ApiRequest, queue: AnyQueue) -> list[Any]:
    """Return the items of a request as `push_many` takes them: (value, priority or None, when or None)."""
    if content_type(request) in (JSON, ""):
        found = json_of(request)
        if isinstance(found, dict) and "items" in found:
            return values.each(checked(found, values.NewItems).items, lambda item: values.arrival(queue, item))
        return [values.arrival(queue, checked(found, values.NewItem))]
    if content_type(request) not in (BYTES, TEXT):
        known = f"{JSON}, {BYTES}, {TEXT}, {NDJSON}, {CSV}"
        raise Problem("UnsupportedMediaType", f"This address takes {known}; not {content_type(request)!r}.")
    charset = (request.content_params or {}).get("charset", "utf-8")
    if content_type(request) == TEXT and charset.lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
        raise Problem("UnsupportedMediaType", f"A text is stored as UTF-8: send it so, not in {charset!r}.")
    value = values.stored(raw(request), queue)
    priority, when = request.headers.get("PQ-Priority"), _when(request)
    if queue.kind == "fifo":
        values.no_priority(queue, priority)
        return [(value, None, when)]
    if priority is None:
        return [(value, None, when)]  # refused as it is pushed
    try:
        # A header in UTF-8 or in Latin-1 looks the same here.
        text = unquote(priority.encode("ascii"), errors="strict") if queue.priority_type == "str" else priority
    except UnicodeError:
        raise Problem("BadRequest", "The header PQ-Priority is not percent-encoded UTF-8.") from None
    return [(value, parse_priority(text, queue.priority_type), when)]


def _when(request: ApiRequest) -> Duration | datetime | None:
    """Return the delay or the due time of a raw item."""
    delay, due = request.headers.get("PQ-Delay"), request.headers.get("PQ-Due")
    if delay is None and due is None:
        return None
    found: dict[str, Any] = {"value": ""}
    if delay is not None:
        with suppress(ValueError):
            found["delay"] = float(delay)
        found.setdefault("delay", delay)
    if due is not None:
        found["due_at"] = due
    return checked(found, values.NewItem).when


@contextmanager
def _alone(items: list[Any]) -> Iterator[None]:
    """Remove the index from the error of an item that is pushed alone."""
    try:
        yield
    except Worded as error:
        if len(items) == 1:
            error.index = None
        raise


async def _push(queue: AnyAsyncQueue, items: list[Any]) -> list[Item]:
    if isinstance(queue, AsyncPriorityQueue):
        if len(items) == 1 and items[0][2] is None:
            return [await queue.push(items[0][0], items[0][1])]
        return await queue.push_many([item if item[2] is not None else item[:2] for item in items])
    if len({item[2] for item in items}) == 1:
        return await queue.enqueue_many([value for value, _, _ in items], **_at(items[0][2]))
    return await threads.run(lambda: get_store().transact(lambda tr: _push_within(queue.sync, items, tr)))


def _push_within(queue: AnyQueue, items: list[Any], tr: Transaction) -> list[Item]:
    if not isinstance(queue, FifoQueue):
        return queue.push_many(items, tr=tr)
    pushed: list[Item] = []
    for when, same in groupby(items, key=lambda item: item[2]):
        try:
            pushed += queue.enqueue_many([value for value, _, _ in same], **_at(when), tr=tr)
        except Worded as error:
            error.index = None if error.index is None else len(pushed) + error.index
            raise
    return pushed


def _at(when: Any) -> dict[str, Any]:
    return {"due" if isinstance(when, datetime) else "delay": when}
