"""Operating queues: pause, resume, purge, consumers, history, health and targets."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Query, Router
from pydantic import Field, StrictInt, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right, RightMissing
from pqadmin.accounts.scope import Scope
from pqadmin.api.answers import act, answer
from pqadmin.api.authorization import allow, found
from pqadmin.api.bodies import Body
from pqadmin.api.parameters import NO_REASON, KeepField, OptionalReason, ReasonField, ReasonQuery
from pqadmin.api.queues import schemas
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import Moment
from pqadmin.files.shapes import Shape, consumer_shape, targets_shape, time_shape, verdict_shape
from pqadmin.pages import visibility
from pqadmin.pages.queue_context import row_of, status_of
from pqadmin.store import get_store, store_now
from queues import Actions, Purged
from queues.admin import (
    ALL_QUEUES,
    LIMIT_NAMES,
    HistoryPoint,
    TargetRules,
    average_rates,
    check_glob,
    name_pattern,
    time_of_ms,
)

router = Router(tags=["Queues"])

#: Seconds after which the purge of an attached queue stops and says how far it came.
PURGE_SECONDS = 20
#: Seconds of each resolution of a history, and those of which it tells.
_KEPT = {"s": 600, "m": 48 * 3600, "h": 90 * 86_400}


class Paused(Body):
    """Why taking stops, and until when."""

    reason: StrictStr = Field(description="Why; consumers are told it.")
    until: Moment | None = Field(None, description="When it resumes by itself.")


class PurgedBody(Body):
    """What is purged, as it was confirmed."""

    confirm: StrictStr = Field(description="The name of the queue again.")
    expected: StrictInt | None = Field(
        None,
        ge=0,
        description="The ready and delayed items that were seen: a tenth, or 10, more or fewer are accepted.",
    )
    keep: KeepField = None
    reason: ReasonField


class TargetLimits(Body):
    """Limits of the queues that a pattern matches; one that is not named is inherited, 0 is off."""

    depth: StrictInt | None = Field(None, description="Ready items.")
    oldest: float | None = Field(None, description="Seconds that the oldest item may wait.")
    wait: float | None = Field(None, description="Seconds that 95 of 100 taken items may have waited.")
    dead: StrictInt | None = Field(None, description="Dead items.")
    no_consumer: float | None = Field(None, description="Seconds for which none may be taken.")
    growing: float | None = Field(None, description="Seconds for which a queue may grow.")
    expect: dict[StrictStr, float] | None = Field(
        None, description="The limits that were seen, none of a new pattern: if it has other ones now, nothing is done."
    )
    reason: ReasonField


@router.post("/queues/{queue}/pause", operation_id="pause_queue", summary="Pause taking", response=schemas.Done)
@in_thread
def pause_queue(request: ApiRequest, queue: str, body: Paused) -> HttpResponse:
    """Stop taking from a queue; pushing goes on."""
    there = found(request, queue, Verb.CONFIGURE, Right.ACT)
    return act(
        request,
        lambda actions: actions.pause(queue, reason=body.reason, until=body.until, expect_id=there.id),
        lambda _: {"queue": queue},
        queue=there,
    )


@router.post("/queues/{queue}/resume", operation_id="resume_queue", summary="Resume taking", response=schemas.Done)
@in_thread
def resume_queue(request: ApiRequest, queue: str, body: OptionalReason = NO_REASON) -> HttpResponse:
    """Let items be taken again."""
    there = found(request, queue, Verb.CONFIGURE, Right.ACT)
    return act(
        request,
        lambda actions: actions.resume(queue, reason=body.reason, expect_id=there.id),
        lambda _: {"queue": queue},
        queue=there,
    )


@router.post("/queues/{queue}/purge", operation_id="purge_queue", summary="Purge", response=schemas.Purged)
@in_thread
def purge_queue(request: ApiRequest, queue: str, body: PurgedBody) -> HttpResponse:
    """Move every ready and delayed item into the trash.

    An attached queue is purged in chunks, for at most 20 seconds: `finished` says whether all of it was.
    """
    there = found(request, queue, Verb.MANAGE, Right.ACT)
    how: dict[str, Any] = {
        "confirm": body.confirm,
        "expect_depth": body.expected,
        "tolerance": visibility.tolerated(body.expected or 0),
        "expect_id": there.id,
        "reason": body.reason,
    }

    def perform(actions: Actions) -> Purged:
        if not there.attached:
            return actions.purge(queue, **how)
        until = time.monotonic() + PURGE_SECONDS
        purged = actions.purge_attached(queue, **how, progress=lambda _: time.monotonic() <= until)
        if purged.failure is not None and not purged.count:
            raise purged.failure
        return purged

    def shape(purged: Any) -> Shape:
        if isinstance(purged, Purged):
            return {
                "queue": queue,
                "items": purged.count,
                "skipped": purged.skipped,
                "trash_ids": list(purged.trash_ids),
                "finished": purged.finished and purged.failure is None,
            }
        trash_id, chunk = purged  # the first chunk of an attached queue, under which a key is kept
        size = len(chunk.items)
        ids = [trash_id] if trash_id else []
        return {"queue": queue, "items": size, "skipped": chunk.skipped, "trash_ids": ids, "finished": False}

    return act(request, perform, shape, queue=there, keep=body.keep)


@router.get("/queues/{queue}/consumers", operation_id="consumers", summary="Consumers", response=schemas.Consumers)
@in_thread
def consumers(request: ApiRequest, queue: str) -> HttpResponse:
    """Return the processes that take from a queue, as their heartbeats tell; null where they are unknown."""
    seen = found(request, queue, Verb.READ, Right.READ).consumers()
    return answer(
        {
            "queue": queue,
            "consumers": [consumer_shape(each) for each in seen.live] if seen.known else None,
            "last_consumer": None if seen.ended is None else consumer_shape(seen.ended),
        }
    )


@router.get("/queues/{queue}/health", operation_id="health", summary="Verdict", response=schemas.HealthOf)
@in_thread
def health(request: ApiRequest, queue: str) -> HttpResponse:
    """Return the verdict on a queue: its level, reasons, trend and rates."""
    found(request, queue, Verb.READ, Right.READ)
    status, now = status_of(queue), store_now()
    row = row_of(status, now)
    averages = average_rates(status, get_store().targets.rules().targets(status.name, status.limits), now)
    return answer(
        {
            "queue": row.status.name,
            "verdict": verdict_shape(row.verdict),
            "rate_in": row.rate_in,
            "rate_out": row.rate_out,
            "averages": None if averages is None else {"pushed": averages[0], "taken": averages[1]},
            "at": time_shape(now),
        }
    )


Resolution = Annotated[
    Literal["s", "m", "h"],
    Query(description="Points of a second (10 minutes are kept), a minute (2 days) or an hour (90 days)."),
]
Since = Annotated[Moment | None, Query(description="By default as long ago as points are kept.")]
Until = Annotated[Moment | None, Query(description="By default now.")]


@router.get("/queues/{queue}/history", operation_id="history", summary="History", response=schemas.History)
@in_thread
def history(
    request: ApiRequest, queue: str, resolution: Resolution = "m", since: Since = None, until: Until = None
) -> HttpResponse:
    """Return what a queue held and did. Points are changes: until the next one the queue was as at the first."""
    there = found(request, queue, Verb.READ, Right.READ)
    return answer({"queue": there.name, **_history_of(there.id, resolution, since, until)})


@router.get("/history", operation_id="history_of_all", summary="History of all queues", response=schemas.Sums)
@in_thread
def history_of_all(
    request: ApiRequest, resolution: Resolution = "m", since: Since = None, until: Until = None
) -> HttpResponse:
    """Return the sums over all queues, with points as those of one. Takes the right to read every queue."""
    scope = allow(request, Verb.READ, Right.READ)
    if not scope.everything:
        raise RightMissing(Right.READ, scope.role)
    return answer(_history_of(ALL_QUEUES, resolution, since, until))


def _history_of(queue_id: int, resolution: str, since: datetime | None, until: datetime | None) -> Shape:
    now = store_now()
    begin = int(now.timestamp()) - _KEPT[resolution] if since is None else int(since.timestamp())
    stretch = get_store().history.of(queue_id, resolution, since=begin, until=int((until or now).timestamp()))
    return {
        "resolution": resolution,
        "before": None if stretch.before is None else _point(stretch.before),
        "points": [_point(point) for point in stretch.points],
        "damaged": [_time(at) for at in stretch.damaged],
    }


@router.get(
    "/queues/{queue}/targets",
    operation_id="queue_targets",
    summary="Targets of a queue",
    response=schemas.QueueTargets,
    by_alias=True,
)
@in_thread
def queue_targets(request: ApiRequest, queue: str) -> HttpResponse:
    """Return each limit of a queue, where it comes from, and the share of the last day in breach of it."""
    found(request, queue, Verb.READ, Right.READ)
    store = get_store()
    with store.suggesting():
        status, rules = store.read(lambda tr: (store.queue(queue, tr=tr).status(tr=tr), store.targets.rules(tr=tr)))
    return answer(targets_shape(status, rules, store.now()))


@router.get("/targets", operation_id="list_targets", summary="Targets by pattern", response=schemas.Targets)
@in_thread
def list_targets(request: ApiRequest) -> HttpResponse:
    """Return the defaults, and the patterns that match a queue which the caller may see."""
    scope, store = allow(request, Verb.READ, Right.READ), get_store()
    rules = store.targets.rules()
    defaults = TargetRules(defaults=rules.defaults).resolve("")
    names = () if scope.everything else scope.of_those(store.directory())
    return answer(
        {
            "defaults": {limit: target.limit for limit, target in defaults.items()},
            "patterns": [
                {"pattern": glob, "targets": limits.given}
                for glob, limits in rules.patterns.items()
                if scope.everything or any(map(name_pattern((glob,)).fullmatch, names))
            ],
            "unreadable": [
                {"pattern": glob, "reason": str(why)} for glob, why in (rules.unreadable if scope.everything else ())
            ],
        }
    )


@router.put("/targets/{pattern}", operation_id="set_targets", summary="Set targets", response=schemas.PatternTargets)
@in_thread
def set_targets(request: ApiRequest, pattern: str, body: TargetLimits) -> HttpResponse:
    """Set the limits of a pattern, all of them: what is not named is inherited. Takes the right on every queue."""
    _on_all(allow(request, Verb.CONFIGURE, Right.ACT))
    limits: Any = {name: value for name in LIMIT_NAMES if (value := getattr(body, name)) is not None}

    return act(
        request,
        lambda actions: actions.set_targets(pattern, expect=body.expect, reason=body.reason, **limits),
        lambda glob: {"pattern": glob, "targets": limits},
    )


@router.delete(
    "/targets/{pattern}", operation_id="remove_targets", summary="Remove targets", response=schemas.PatternTargets
)
@in_thread
def remove_targets(request: ApiRequest, pattern: str, reason: ReasonQuery = "") -> HttpResponse:
    """Remove a pattern with its limits. Takes the right on every queue."""
    _on_all(allow(request, Verb.CONFIGURE, Right.ACT))
    glob, nothing = check_glob(pattern), dict[str, float]()
    return act(
        request,
        lambda actions: actions.remove_targets(glob, reason=reason),
        lambda _: {"pattern": glob, "targets": nothing},
    )


def _on_all(scope: Scope) -> None:
    """Raise `RightMissing` for a caller without the right on some queues: a pattern may match any."""
    if not scope.role.has(Right.ACT):
        raise RightMissing(Right.ACT, scope.role)


def _point(point: HistoryPoint) -> Mapping[str, Any]:
    oldest_at = None if point.oldest_at is None else _time(point.oldest_at)
    return {**asdict(point), "at": _time(point.at), "oldest_at": oldest_at}


def _time(seconds: int) -> str | None:
    at: datetime = time_of_ms(seconds * 1000)
    return time_shape(at)
