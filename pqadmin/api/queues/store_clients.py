"""What clients of a store ask beside its verbs: the store, what a queue is, and whether queues have items to take."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated

from django.http import HttpResponse
from ninja import Query, Router

from pqadmin.accounts.caller import Caller, Verb
from pqadmin.accounts.rights import Right, RightMissing
from pqadmin.api import limits, long_polls, threads
from pqadmin.api.answers import answer, caller_in
from pqadmin.api.authorization import allow, found
from pqadmin.api.bodies import invalid
from pqadmin.api.queues import schemas
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import looked_shape
from pqadmin.api.verbs.open_queue import as_taken_by, find_queue, may_take_now
from pqadmin.api.verbs.take import WaitFor
from pqadmin.commands import queue_diff
from pqadmin.display.redaction import rules_of
from pqadmin.files.shapes import pause_shape, queue_shape, time_shape
from pqadmin.store import get_store, store_now
from queues import AnyQueue
from queues.admin import plain_settings, settings_of, wait_in_loop
from queues.errors import QueueNotFound

router = Router(tags=["Queues"])

#: Queues of one request.
MOST = 100


@router.get("/store", operation_id="store", summary="The store and the caller", response=schemas.StoreOfCaller)
@in_thread
def store(request: ApiRequest) -> HttpResponse:
    """Return the id and the time of the store, and what the caller is and may do."""
    caller, opened = caller_in(request), get_store()
    if not caller.scope.anywhere(Right.READ):
        raise RightMissing(Right.READ, caller.scope.role)
    now = opened.now().isoformat(timespec="milliseconds")
    scope = caller.scope
    return answer(
        {
            "id": opened.id,
            "at": now,
            "caller": caller.name,
            "verbs": sorted(caller.verbs),
            "role": scope.role.value,
            "grants": [{"queues": glob, "role": role.value} for glob, role in scope.grants],
            "within": list(scope.within),
        }
    )


@router.get(
    "/queues/{queue}/description",
    operation_id="describe_queue",
    summary="What a queue is",
    response=schemas.QueueDescription,
)
@in_thread
def describe_queue(
    request: ApiRequest,
    queue: str,
    id: Annotated[int | None, Query(description="Of the queue of this id, if it was renamed.")] = None,
) -> HttpResponse:
    """Return what a program needs to know of a queue before it uses it; for tokens of any verb.

    Its settings are told to those that may read.
    """
    caller, opened = caller_in(request), get_store()
    name = queue if id is None else _name_now(caller, queue, id)
    caller.see(name)
    there = opened.queue(name)
    if id not in (None, there.id):
        raise QueueNotFound(there.name, name_taken=True)
    reads = Verb.READ in caller.verbs and caller.scope.can(Right.READ, there.name)
    return answer(
        {
            **queue_shape(there),
            "bands": list(there.config.edges),
            "pause": pause_shape(there.pause_state, opened.now()),
            "settings": plain_settings(settings_of(there.config)) if reads else None,
        }
    )


def _name_now(caller: Caller, name: str, queue_id: int) -> str:
    """Return the name of the queue of an id if the caller may see it, else the name that it had."""
    found = next((known for known, its_id in get_store().directory().items() if its_id == queue_id), name)
    return found if caller.scope.sees(found) else name


@router.get("/queues/{queue}/look", operation_id="look_at_queue", summary="Follow a queue", response=schemas.QueueLook)
@in_thread
def look_at_queue(
    request: ApiRequest,
    queue: str,
    change: Annotated[int | None, Query(description="The `change` of the look before.")] = None,
) -> HttpResponse:
    """Return the counters of a queue, the items near both ends and the first of each state, at one version.

    Two looks tell what happened between them. Of a queue that was not changed since `change` no items are read.
    """
    there = found(request, queue, Verb.READ, Right.READ)
    seen, rules = queue_diff.look(get_store(), there, change=change), rules_of(there.config.redact)
    if seen is None:
        nothing = dict.fromkeys(("traffic", "items", "whole", "pause"))
        return answer({"queue": queue, "at": time_shape(store_now()), "change": change, **nothing})
    return answer(
        {
            "queue": queue,
            "at": time_shape(seen.at),
            "change": seen.change,
            "traffic": seen.traffic,
            "items": [looked_shape(item, rules) for item in seen.items.values()],
            "whole": seen.whole,
            "pause": pause_shape(seen.pause, seen.at),
        }
    )


@router.get("/outlook", operation_id="outlook", summary="Wait for items", response=schemas.Outlooks)
async def outlook(
    request: ApiRequest,
    queue: Annotated[list[str], Query(max_length=MOST, description="The names of the queues.")],
    id: Annotated[
        list[int], Query(max_length=MOST, description="Their ids, in this order: queues that were renamed are found.")
    ] = [],  # noqa: B006 # never changed
    wait: WaitFor = 0,
) -> HttpResponse:
    """Return how many items of some queues can be taken now: none is taken, and none from a paused queue.

    With `wait` the answer comes as soon as there is one. Queues that are not there are left out.
    """
    allow(request, Verb.TAKE, Right.ACT)
    if id and len(id) != len(queue):
        raise invalid([{"in": "query", "field": "id", "message": "each queue has one, or none has"}])
    ids: list[int | None] = [*id] or [None] * len(queue)
    asked = dict.fromkeys(zip(queue, ids, strict=True))
    opened = {one: each for one in asked if (each := await _find(request, *one)) is not None}
    ready = await _ready(opened.values())
    if wait and opened and not any(ready):
        with limits.waiting(caller_in(request)):
            async with long_polls.while_there(request.receive):
                await long_polls.until_stopped(_first(request, opened, wait), None)
        ready = await _ready(opened.values())
    shapes = [
        {"queue": name, "id": each.id, "ready": n} for ((name, _), each), n in zip(opened.items(), ready, strict=True)
    ]
    return answer({"queues": shapes})


async def _find(request: ApiRequest, name: str, queue_id: int | None) -> AnyQueue | None:
    caller = caller_in(request)
    try:
        caller.require(Verb.TAKE, Right.ACT, name, only_reads=True)
        with suppress(QueueNotFound):
            there = await find_queue(name)
            if queue_id in (None, there.id):
                return as_taken_by(request, there)
        if queue_id is None:
            return None
        name = await threads.run(partial(_name_now, caller, name, queue_id))
        caller.require(Verb.TAKE, Right.ACT, name, only_reads=True)
        there = await find_queue(name)
    except QueueNotFound:
        return None
    return as_taken_by(request, there) if there.id == queue_id else None


async def _ready(queues: Iterable[AnyQueue]) -> list[int]:
    return await threads.run(lambda: [_look(queue) for queue in queues])


def _look(queue: AnyQueue) -> int:
    try:
        return queue.outlook().ready
    except QueueNotFound:  # deleted meanwhile
        return 0


async def _first(request: ApiRequest, queues: Mapping[tuple[str, int | None], AnyQueue], wait: float) -> None:
    """Return when an item of one of the queues can be taken, at most after the wait."""

    def look(name: str, queue: AnyQueue) -> Callable[[float], Awaitable[int]]:
        async def once(seconds: float) -> int:
            await may_take_now(request, queue, name)
            return await threads.run(partial(_look, queue))

        return once

    looks = [
        asyncio.ensure_future(wait_in_loop(queue.opened, look(name, queue), 0, wait))
        for (name, _), queue in queues.items()
    ]
    try:
        await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        for done in looks:
            if done.done():
                done.result()
    finally:
        for each in looks:
            each.cancel()
        await asyncio.gather(*looks, return_exceptions=True)
