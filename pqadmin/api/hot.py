"""The verbs of programs: push, pop, peek, lease and what settles leases, awaited without a thread.

A request with an Idempotency-Key is a transaction of its own, in a thread; those without one join batches.
"""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from itertools import groupby
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote, unquote

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field, StrictBool, StrictStr

from pqadmin.accounts.rights import Right
from pqadmin.accounts.turns import OncePerTurn
from pqadmin.api import limits, problems, schemas, threads, values, waits
from pqadmin.api.answers import Nothing, answer, caller_in, key_of, once
from pqadmin.api.bodies import BYTES, CSV, JSON, NDJSON, TEXT, Body, checked, content_type, invalid, json_of, raw
from pqadmin.api.caller import Verb, caller_now
from pqadmin.api.problems import Problem
from pqadmin.api.streams import import_items
from pqadmin.display.redaction import rules_of
from pqadmin.files.shapes import Shape, item_shape, time_shape
from pqadmin.store import get_store, opened_store
from queues import (
    AnyAsyncQueue,
    AnyQueue,
    AsyncFifoQueue,
    AsyncPriorityQueue,
    Duration,
    FifoQueue,
    Item,
    Lease,
    Transaction,
)
from queues.admin import Client, for_client, parse_priority, to_ms, wait_in_loop
from queues.errors import QueueNotFound, StaleLease, WrongKind, display_name

router = Router(tags=["Items"])
T = TypeVar("T")

#: Seconds that a request waits at most; a program sends it again.
LONGEST_WAIT = 60
#: Seconds of a lease, unless the request says otherwise.
LEASE_SECONDS = 30
#: Bytes of a body that the event loop parses itself; a larger one would hold up other requests.
PARSED_AT_ONCE = 65_536
#: Engines whose reads are there at once, so that the event loop may read.
_AT_ONCE = ("lmdb:", "memory:")
#: Headers of a push of one raw value.
_OF_RAW = ("PQ-Priority", "PQ-Delay", "PQ-Due")
#: The id, number, host and name of a program that takes, percent-encoded.
_CLIENT = re.compile(r"([0-9a-f]{16}) ([0-9]{1,10}) (\S{1,2000}) (\S{1,2000})")
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
Returned = Annotated[
    Literal["value"] | None, Query(alias="return", description="`value`: answer whole items, with their values.")
]
Leases = Annotated[list[StrictStr], Field(min_length=1, max_length=values.MOST, description="Tokens of leases.")]


class Settled(Body):
    """Leases whose items are done."""

    leases: Leases
    must_hold: StrictBool = Field(
        False, description="A lease whose item is nowhere in the queue any more is refused too."
    )


class Released(Body):
    """Leases whose items are given back."""

    leases: Leases
    delay: float | None = Field(None, ge=0, description="Seconds until the items are ready again.")
    reason: StrictStr = Field("", description="Kept with this attempt of each item.")
    traceback: StrictStr = Field("", description="Kept with this attempt of each item; of a long one its ends.")
    count_attempt: StrictBool = Field(True, description="Without it this lease counts as no attempt.")


class Extended(Body):
    """Leases that shall end later."""

    leases: Leases
    seconds: float = Field(LEASE_SECONDS, gt=0, description="Seconds from now.")


async def open_queue(request: HttpRequest, name: str, verb: Verb, right: Right) -> AnyAsyncQueue:
    """Return the queue if the caller has the right on it; raise `QueueNotFound`."""
    caller_in(request).require(verb, right, name)
    try:
        found = await find_queue(name)
    except QueueNotFound:
        # Slower: it suggests names that look alike.
        found = await threads.run(lambda: get_store().queue(name))
    return _for_coroutines(as_taken_by(request, found) if verb is Verb.TAKE else found)


def as_taken_by(request: HttpRequest, queue: AnyQueue) -> AnyQueue:
    """Return the queue of which takes are told as those of the program that names itself."""
    client = _client(request.META.get("HTTP_PQ_CLIENT", ""))
    return queue if client is None else for_client(queue, client)


@lru_cache(maxsize=1_000)
def _client(told: str) -> Client | None:
    """Return the program that a header names: its id, number, host and name; None where it names none."""
    found = _CLIENT.fullmatch(told)
    return (
        None if found is None else Client(bytes.fromhex(found[1]), int(found[2]), unquote(found[3]), unquote(found[4]))
    )


async def may_take_now(request: HttpRequest, queue: AnyQueue, asked: str) -> None:
    """Return if the caller may take from the queue now; a name that it got meanwhile is told to no other caller."""
    caller = await caller_now(request)
    try:
        caller.require(Verb.TAKE, Right.ACT, queue.name)
    except QueueNotFound:
        raise QueueNotFound(asked) from None


async def find_queue(name: str) -> AnyQueue:
    """Return the queue of this name; raise `QueueNotFound` without suggestions."""
    store = opened_store()
    if store is not None and store.url.startswith(_AT_ONCE):
        return _find_at_once((store.url, name))
    return await threads.run(partial(_find, name))


@router.post("/queues/{queue}/items", operation_id="push", summary="Push items", response={201: schemas.Pushed})
async def push(
    request: HttpRequest,
    queue: str,
    returned: Returned = None,
    strict: Annotated[bool, Query(description="Stop at the first bad line of a stream.")] = False,
) -> HttpResponse:
    """Push one item or up to 1,000, all or none; or a stream of any number.

    A body in JSON is an item or `{"items": […]}`. A body of bytes or plain text is the value of one item, whose
    priority, delay or due time are the headers `PQ-Priority`, `PQ-Delay` and `PQ-Due`. NDJSON and CSV are pushed in
    chunks: a bad line is left out and told, and with an `Idempotency-Key` the same request sent again goes on where it
    was cut off.
    """
    opened = await open_queue(request, queue, Verb.PUSH, Right.ACT)
    if content_type(request) not in (BYTES, TEXT):
        for name in _OF_RAW:
            if name in request.headers:
                message = "is of a raw value (bytes or plain text): the items of this body have their own"
                raise invalid([{"in": "header", "field": name, "message": message}])
    if content_type(request) in (NDJSON, CSV):
        return await import_items(request, opened.sync, request.body_file, strict=strict)  # type: ignore[attr-defined] # ours
    shape = item_shape if returned else values.pushed_shape
    read = partial(_new_items, request, opened.sync)
    size = int(request.META.get("CONTENT_LENGTH") or PARSED_AT_ONCE + 1)
    items = read() if size <= PARSED_AT_ONCE else await threads.run(read)
    key = key_of(request)
    if key is None:
        pushed = await _push(opened, items)
        return answer({"items": [shape(item) for item in pushed]}, 201)

    def execute(tr: Transaction) -> tuple[int, Shape]:
        return 201, {"items": [shape(item) for item in _push_within(opened.sync, items, tr)]}

    return await threads.run(partial(once, request, key, execute))


@router.post("/queues/{queue}/pop", operation_id="pop", summary="Pop items", response=schemas.Taken)
async def pop(request: HttpRequest, queue: str, end: End = "min", n: Count = 1, wait: WaitFor = 0) -> HttpResponse:
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
    request: HttpRequest,
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
async def peek(request: HttpRequest, queue: str, end: End = "min", n: Count = 1) -> HttpResponse:
    """Return the items that a pop would take, and change nothing. Rules of redaction hide parts of values."""
    opened = await open_queue(request, queue, Verb.READ, Right.READ)
    side = _end_of(opened.sync, end, takes=False)

    def look() -> HttpResponse:
        items, rules = opened.sync.peek_many(n, end=side), rules_of(opened.sync.config.redact)
        return answer({"items": [values.seen_shape(item, rules) for item in items]})

    return await threads.run(look)


@router.post("/queues/{queue}/ack", operation_id="ack", summary="Acknowledge leases", response=schemas.Results)
async def ack(request: HttpRequest, queue: str, body: Settled) -> HttpResponse:
    """Remove leased items that are done, in one transaction; acknowledging again changes nothing.

    Each result says whether it is done; a lease that is over has the problem `StaleLease`.
    """
    opened = await open_queue(request, queue, Verb.TAKE, Right.ACT)
    if body.must_hold:
        return await _settled(
            request,
            opened,
            body.leases,
            lambda token: opened.ack(token, must_hold=True),
            lambda token, tr: opened.sync.ack(token, must_hold=True, tr=tr),
        )

    def shape(stale: Sequence[str]) -> Shape:
        over = set(stale)
        return {"results": [_result(token, StaleLease(_OVER) if token in over else None) for token in body.leases]}

    key = key_of(request)
    if key is None:
        return answer(shape(await opened.ack_many(body.leases)))
    execute = partial(once, request, key, lambda tr: (200, shape(opened.sync.ack_many(body.leases, tr=tr))))
    return await threads.run(execute)


@router.post("/queues/{queue}/release", operation_id="release", summary="Release leases", response=schemas.Results)
async def release(request: HttpRequest, queue: str, body: Released, returned: Returned = None) -> HttpResponse:
    """Give leased items back to their places, perhaps after a delay. After its last attempt an item is dead."""
    opened = await open_queue(request, queue, Verb.TAKE, Right.ACT)
    how: dict[str, Any] = {
        "delay": body.delay,
        "reason": body.reason,
        "traceback": body.traceback,
        "count_attempt": body.count_attempt,
    }
    return await _settled(
        request,
        opened,
        body.leases,
        lambda token: opened.release(token, **how),
        lambda token, tr: opened.sync.release(token, **how, tr=tr),
        lambda item: {"item": item_shape(item) if returned else _without_value(item_shape(item))},
    )


@router.post("/queues/{queue}/extend", operation_id="extend", summary="Extend leases", response=schemas.Results)
async def extend(request: HttpRequest, queue: str, body: Extended, returned: Returned = None) -> HttpResponse:
    """Let leases end so many seconds from now; their tokens stay."""
    opened = await open_queue(request, queue, Verb.TAKE, Right.ACT)
    return await _settled(
        request,
        opened,
        body.leases,
        lambda token: opened.extend(token, seconds=body.seconds),
        lambda token, tr: opened.sync.extend(token, seconds=body.seconds, tr=tr),
        lambda held: {
            "expires_at": time_shape(held.expires_at),
            **({"item": item_shape(held.item)} if returned else {}),
        },
    )


# Pushing


def _new_items(request: HttpRequest, queue: AnyQueue) -> list[Any]:
    """Return the items of a request as `push_many` takes them: (value, priority or None, when or None)."""
    if content_type(request) in (JSON, ""):
        found = json_of(request)
        many = isinstance(found, dict) and "items" in found
        items = checked(found, values.NewItems).items if many else [checked(found, values.NewItem)]
        return [values.arrival(queue, item) for item in items]
    if content_type(request) not in (BYTES, TEXT):
        known = f"{JSON}, {BYTES}, {TEXT}, {NDJSON}, {CSV}"
        raise Problem("UnsupportedMediaType", f"This address takes {known}; not {content_type(request)!r}.")
    value = values.stored(raw(request), queue)
    priority, when = request.headers.get("PQ-Priority"), _when(request)
    if queue.kind == "fifo":
        values.no_priority(queue, priority)
        return [(value, None, when)]
    if priority is None:
        return [(value, None, when)]  # refused as it is pushed
    try:
        text = unquote(priority, errors="strict") if queue.priority_type == "str" else priority
    except UnicodeDecodeError:
        raise Problem("BadRequest", "The header PQ-Priority is not percent-encoded UTF-8.") from None
    return [(value, parse_priority(text, queue.priority_type), when)]


def _when(request: HttpRequest) -> Duration | datetime | None:
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
        pushed += queue.enqueue_many([value for value, _, _ in same], **_at(when), tr=tr)
    return pushed


def _at(when: Any) -> dict[str, Any]:
    return {"due" if isinstance(when, datetime) else "delay": when}


# Taking


async def _taken(
    request: HttpRequest,
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
                kept = await threads.finish(partial(once, request, key, keep))
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
    request: HttpRequest, queue: AnyAsyncQueue, take: Callable[[], Awaitable[list[Shape]]], wait: float
) -> list[Shape]:
    """Take as soon as there is something; a caller whose right ends meanwhile takes nothing."""

    asked = queue.sync.name

    async def try_once(seconds: float) -> list[Shape]:
        await may_take_now(request, queue.sync, asked)
        return await take()

    with limits.waiting(caller_in(request)):
        waiting = wait_in_loop(queue.opened, try_once, list[Shape](), wait)
        async with waits.while_there(request.receive):  # type: ignore[attr-defined] # ours
            return await waits.until_stopped(waiting, list[Shape]())


def _raw_form(request: HttpRequest, n: int) -> str:
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


# Settling

_OVER = "This lease is over: it ended before it was acknowledged, so the item may be worked on again."


async def _settled(
    request: HttpRequest,
    queue: AnyAsyncQueue,
    leases: Sequence[str],
    settle: Callable[[str], Awaitable[T]],
    settle_within: Callable[[str, Transaction], T],
    shape: Callable[[T], Shape] = lambda done: {},
) -> HttpResponse:
    """Settle leases one by one, together in a batch; or in one transaction under the key."""
    key = key_of(request)
    if key is None:
        found = await asyncio.gather(*map(settle, leases), return_exceptions=True)
        for outcome in found:
            if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
                raise outcome
        return answer(_results(leases, found, shape))

    def execute(tr: Transaction) -> tuple[int, Shape]:
        outcomes: list[T | BaseException] = []
        for token in leases:
            try:
                outcomes.append(settle_within(token, tr))
            except StaleLease as stale:  # raised before anything is written for it
                outcomes.append(stale)
        return 200, _results(leases, outcomes, shape)

    return await threads.run(partial(once, request, key, execute))


def _results(leases: Sequence[str], found: Sequence[T | BaseException], shape: Callable[[T], Shape]) -> Shape:
    return {
        "results": [
            _result(token, outcome) if isinstance(outcome, StaleLease) else {**_result(token, None), **shape(outcome)}  # type: ignore[arg-type] # no other error is left
            for token, outcome in zip(leases, found, strict=True)
        ]
    }


def _result(token: str, stale: StaleLease | None) -> Shape:
    if stale is None:
        return {"lease": token, "done": True}
    return {"lease": token, "done": False, "problem": problems.of_error(stale)}


def _without_value(shape: Shape) -> Shape:
    for name in ("value", "value_base64", "value_json"):
        shape.pop(name, None)
    return shape


# Opening


def _find(name: str) -> AnyQueue:
    store = get_store()
    return store.read(lambda tr: store.queue(name, tr=tr))


_find_at_once = OncePerTurn[tuple[str, str], AnyQueue](lambda url_and_name: _find(url_and_name[1]))


def _for_coroutines(queue: AnyQueue) -> AnyAsyncQueue:
    return AsyncFifoQueue(queue) if isinstance(queue, FifoQueue) else AsyncPriorityQueue(queue)


def _end_of(queue: AnyQueue, end: str, *, takes: bool = True) -> str:
    """Return the end as the verbs name it; raise `WrongKind` for the tail of a FIFO queue."""
    side = ENDS[end]
    if takes and side == "max" and queue.kind == "fifo":
        raise WrongKind("{queue} is a fifo queue: items leave at its head only.", queue=display_name(queue.name))
    return side
