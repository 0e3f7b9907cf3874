"""Settling of leases in the API: acknowledged, released or extended, each with its result."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from django.http import HttpResponse
from pydantic import Field, StrictBool, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import problems, schemas, threads, values
from pqadmin.api.answers import answer, key_of, once
from pqadmin.api.bodies import Body
from pqadmin.api.request import ApiRequest
from pqadmin.api.verbs.open_queue import Returned, open_queue, router
from pqadmin.api.verbs.take import LEASE_SECONDS
from pqadmin.files.shapes import Shape, item_shape, time_shape
from queues import AnyAsyncQueue, Transaction
from queues.admin import parse_lease
from queues.errors import StaleLease

T = TypeVar("T")
Leases = Annotated[list[StrictStr], Field(min_length=1, max_length=values.MOST, description="Tokens of leases.")]


class Settled(Body):
    """Leases of items that are done."""

    leases: Leases
    must_hold: StrictBool = Field(
        False, description="A lease of an item that is nowhere in the queue any more is refused too."
    )


class Released(Body):
    """Leases of items that are given back."""

    leases: Leases
    delay: float | None = Field(None, ge=0, description="Seconds until the items are ready again.")
    reason: StrictStr = Field("", description="Kept with this attempt of each item.")
    traceback: StrictStr = Field("", description="Kept with this attempt of each item; of a long one its ends.")
    count_attempt: StrictBool = Field(True, description="Without it this lease counts as no attempt.")


class Extended(Body):
    """Leases that shall end later."""

    leases: Leases
    seconds: float = Field(LEASE_SECONDS, gt=0, description="Seconds from now.")


@router.post("/queues/{queue}/ack", operation_id="ack", summary="Acknowledge leases", response=schemas.Results)
async def ack(request: ApiRequest, queue: str, body: Settled) -> HttpResponse:
    """Remove leased items that are done, in one transaction; acknowledging again changes nothing.

    Each result says whether it is done; a lease that is over has the problem `StaleLease`. One that expired counts
    while nothing else has happened to its item, and an item that is nowhere in the queue counts as done.
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
    there = opened.sync
    return await threads.run(
        partial(once, request, key, there, lambda tr: (200, shape(there.ack_many(body.leases, tr=tr))))
    )


@router.post("/queues/{queue}/release", operation_id="release", summary="Release leases", response=schemas.Results)
async def release(request: ApiRequest, queue: str, body: Released, returned: Returned = None) -> HttpResponse:
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
async def extend(request: ApiRequest, queue: str, body: Extended, returned: Returned = None) -> HttpResponse:
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


_OVER = "This lease is over: it ended before it was acknowledged, so the item may be worked on again."


async def _settled(
    request: ApiRequest,
    queue: AnyAsyncQueue,
    leases: Sequence[str],
    settle: Callable[[str], Awaitable[T]],
    settle_within: Callable[[str, Transaction], T],
    shape: Callable[[T], Shape] = lambda done: {},
) -> HttpResponse:
    """Settle leases one by one, together in a batch; or in one transaction under the key."""
    for token in leases:  # all of them before any is settled
        parse_lease(token)
    key = key_of(request)
    if key is None:
        found = await asyncio.gather(*map(settle, leases), return_exceptions=True)
        return answer(_results(leases, [_of_lease(each) for each in found], shape))

    def execute(tr: Transaction) -> tuple[int, Shape]:
        outcomes: list[T | StaleLease] = []
        for token in leases:
            try:
                outcomes.append(settle_within(token, tr))
            except StaleLease as stale:  # raised before anything is written for it
                outcomes.append(stale)
        return 200, _results(leases, outcomes, shape)

    return await threads.run(partial(once, request, key, queue.sync, execute))


def _of_lease(outcome: T | BaseException) -> T | StaleLease:
    """Return the outcome of one lease; raise what is no matter of the lease."""
    if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
        raise outcome
    return outcome


def _results(leases: Sequence[str], found: Sequence[T | StaleLease], shape: Callable[[T], Shape]) -> Shape:
    return {
        "results": [
            _result(token, outcome) if isinstance(outcome, StaleLease) else {**_result(token, None), **shape(outcome)}
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
