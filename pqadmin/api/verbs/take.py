"""Pops, leases and looks of the API."""

import base64
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import lru_cache, partial
from typing import Annotated, Any, Literal
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from ninja import Query

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import limits, long_polls, schemas, threads, values
from pqadmin.api.answers import Nothing, answer, caller_in, key_of, once
from pqadmin.api.bodies import BYTES, JSON, TEXT, invalid
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.verbs.open_queue import may_take_now, open_queue, router
from pqadmin.display.redaction import rules_of
from pqadmin.files.shapes import Shape, item_shape, time_shape
from queues import AnyAsyncQueue, AnyQueue, AsyncFifoQueue, FifoQueue, Lease, Transaction
from queues.admin import to_ms, wait_in_loop
from queues.errors import WrongKind, display_name

#: Seconds that a request waits at most; a program sends it again.
LONGEST_WAIT = 60
#: Seconds of a lease, unless the request says otherwise.
LEASE_SECONDS = 30
#: Names of the ends, with those of FIFO queues.
ENDS = {"min": "min", "max": "max", "head": "min", "tail": "max"}

End = Annotated[
    Literal["min", "max", "head", "tail"],
    Query(description="The end; in a FIFO queue `min` is the head. Items leave a FIFO queue at its head only."),
]
Count = Annotated[int, Query(ge=1, le=values.MOST, description="How many items at most.")]
WaitFor = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the first item, through a pause too.")
]


@router.post("/queues/{queue}/pop", operation_id="pop", summary="Pop items", response=schemas.Taken)
async def pop(request: ApiRequest, queue: str, end: End = "min", n: Count = 1, wait: WaitFor = 0) -> HttpResponse:
    """Take items from one end for good; an empty list when none came.

    With `n=1` and the header `Accept: application/octet-stream` the answer is the value alone, with the rest of the
    item in headers; 204 when none came. The answer may be lost on its way: to take an item safely lease it, or send an
    `Idempotency-Key` and repeat the request.
    """
    opened = await open_queue(request, queue, Verb.TAKE, Right.ACT)
    side = _end_of(opened.sync, end)

    def execute(tr: Transaction) -> list[Shape]:
        found = opened.sync
        taken = found.dequeue_many(n, tr=tr) if isinstance(found, FifoQueue) else found.pop_many(n, end=side, tr=tr)
        return [item_shape(item) for item in taken]

    async def take() -> list[Shape]:
        many = opened.dequeue_many(n) if isinstance(opened, AsyncFifoQueue) else opened.pop_many(n, end=side)
        return [item_shape(item) for item in await many]

    return await _taken(request, opened, execute, take, n=n, wait=wait)


@router.post("/queues/{queue}/lease", operation_id="lease", summary="Lease items", response=schemas.LeasesTaken)
async def lease(
    request: ApiRequest,
    queue: str,
    end: End = "min",
    n: Count = 1,
    seconds: Annotated[float, Query(gt=0, description="How long the lease holds, unless it is extended.")] = (
        LEASE_SECONDS
    ),
    worker: Annotated[
        str | None, Query(max_length=200, description="The name of the holder; by default the caller's.")
    ] = None,
    wait: WaitFor = 0,
) -> HttpResponse:
    """Hold items from one end for a time: acknowledge each by its `lease`, or it returns to its place.

    A raw answer is that of pop.
    """
    opened = await open_queue(request, queue, Verb.TAKE, Right.ACT)
    how: dict[str, Any] = {
        "seconds": seconds,
        "end": _end_of(opened.sync, end),
        "worker": worker or caller_in(request).name,
    }

    def execute(tr: Transaction) -> list[Shape]:
        return [_lease_shape(one) for one in opened.sync.lease_many(n, **how, tr=tr)]

    async def take() -> list[Shape]:
        return [_lease_shape(one) for one in await opened.lease_many(n, **how)]

    return await _taken(request, opened, execute, take, n=n, wait=wait)


@router.get(
    "/queues/{queue}/peek", operation_id="peek", summary="Look at the items of one end", response=schemas.Peeked
)
async def peek(request: ApiRequest, queue: str, end: End = "min", n: Count = 1) -> HttpResponse:
    """Return the items that a pop would take, and change nothing. Rules of redaction hide parts of values."""
    opened = await open_queue(request, queue, Verb.READ, Right.READ)
    side = _end_of(opened.sync, end, takes=False)

    def look() -> HttpResponse:
        items, rules = opened.sync.peek_many(n, end=side), rules_of(opened.sync.config.redact)
        return answer({"items": [values.seen_shape(item, rules) for item in items]})

    return await threads.run(look)


async def _taken(
    request: ApiRequest,
    queue: AnyAsyncQueue,
    execute: Callable[[Transaction], list[Shape]],
    take: Callable[[], Awaitable[list[Shape]]],
    *,
    n: int,
    wait: float,
) -> HttpResponse:
    """Answer what was taken, as soon as there is something, at most after the wait."""
    form = _raw_form(request, n)
    key = key_of(request)
    headers: dict[str, str] = {}
    if key is not None:
        _ = request.body  # read now: it is closed when the client goes away, and a thread asks for it then

        def keep(tr: Transaction) -> tuple[int, Shape]:
            taken = execute(tr)
            if not taken:
                raise Nothing
            return 200, {"items": taken}

        async def take() -> list[Shape]:  # in place of the other
            try:
                kept = await threads.finish(partial(once, request, key, queue.sync, keep))
            except Nothing:
                return []
            found: list[Shape] = json.loads(kept.content)["items"]
            if "Idempotent-Replay" in kept.headers:
                headers["Idempotent-Replay"] = "true"
            else:
                _count(queue, found)
            return found

    taken = await (_waited(request, queue, take, wait) if wait else take())
    return _raw_answer(taken, form, headers) if form else answer({"items": taken}, headers=headers)


def _count(queue: AnyAsyncQueue, taken: list[Shape]) -> None:
    """Count what was taken in a transaction, which verbs within it do not: it may be undone."""
    held = {
        bytes.fromhex(str(one["lease"]).partition("-")[2]): to_ms(datetime.fromisoformat(str(one["expires_at"])))
        for one in taken
        if "lease" in one
    }
    if held:
        queue.opened.consumption.leased(held, None)
    else:
        queue.opened.consumption.took(len(taken))


async def _waited(
    request: ApiRequest, queue: AnyAsyncQueue, take: Callable[[], Awaitable[list[Shape]]], wait: float
) -> list[Shape]:
    """Take as soon as there is something; a caller that loses the right meanwhile takes nothing."""

    asked = queue.sync.name

    async def try_once(seconds: float) -> list[Shape]:
        await may_take_now(request, queue.sync, asked)
        return await take()

    with limits.waiting(caller_in(request)):
        waiting = wait_in_loop(queue.opened, try_once, list[Shape](), wait)
        async with long_polls.while_there(request.receive):
            return await long_polls.until_stopped(waiting, list[Shape]())


def _raw_form(request: ApiRequest, n: int) -> str:
    """Return the content type of a raw answer; empty: JSON is wanted."""
    form = _preferred(request.META.get("HTTP_ACCEPT", ""))
    if form == JSON:
        return ""
    if not form:
        raise Problem("NotAcceptable", f"The answer is {JSON}, or of one item {BYTES} or {TEXT}.")
    if n != 1:
        raise invalid([{"in": "query", "field": "n", "message": "a raw answer holds one item, so n is 1"}])
    return form


@lru_cache(maxsize=100)
def _preferred(accept: str) -> str:
    """Return the content type of the answer that an Accept header prefers, JSON where it does not say; or nothing."""
    if not accept.strip():
        return JSON
    asked = HttpRequest()
    asked.META["HTTP_ACCEPT"] = accept
    found = asked.get_preferred_type([form + end for form in (JSON, BYTES, TEXT) for end in ("", "; charset=utf-8")])
    return (found or "").partition(";")[0]


def _raw_answer(taken: list[Shape], form: str, headers: dict[str, str]) -> HttpResponse:
    if not taken:
        return HttpResponse(status=204)
    item = taken[0]
    encoded = item.get("value_base64")
    value = str(item["value"]).encode() if encoded is None else base64.b64decode(str(encoded))
    response = HttpResponse(value, content_type=form if form == BYTES else f"{form}; charset=utf-8", headers=headers)
    for name in ("id", "priority", "count", "state", "pushed_at", "attempts", "lease", "expires_at", "worker"):
        if item.get(name) is not None:
            response["PQ-" + name.title().replace("_", "-")] = quote(str(item[name]), safe=":+/@,;=!$&'()*~")
    return response


def _lease_shape(held: Lease) -> Shape:
    return {**item_shape(held.item), "lease": held.token, "expires_at": time_shape(held.expires_at)}


def _end_of(queue: AnyQueue, end: str, *, takes: bool = True) -> str:
    """Return the end as the verbs name it; raise `WrongKind` for the tail of a FIFO queue."""
    side = ENDS[end]
    if takes and side == "max" and queue.kind == "fifo":
        raise WrongKind("{queue} is a fifo queue: items leave at its head only.", queue=display_name(queue.name))
    return side
