"""Queues by name: list, create, look, change, rename, delete, restore, attach and detach."""

import hashlib
import json
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Query, Router
from pydantic import Field, StrictBool, StrictInt, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right, RightMissing
from pqadmin.api.answers import act, address, answer, meant_id, refuse_another, tagged
from pqadmin.api.authorization import allow
from pqadmin.api.bodies import Body, invalid
from pqadmin.api.parameters import (
    NO_REASON,
    IfMatch,
    KeepQuery,
    OptionalReason,
    ReasonField,
    ReasonQuery,
    seen_tag,
)
from pqadmin.api.problems import Problem
from pqadmin.api.queues import schemas
from pqadmin.api.request import ApiRequest
from pqadmin.api.schemas import Undone as UndoneAnswer
from pqadmin.api.threads import in_thread
from pqadmin.api.values import PriorityField, looked_shape, undone_shape
from pqadmin.display.prefixes import BadPrefixText, parse_prefix
from pqadmin.display.redaction import rules_of
from pqadmin.files.shapes import Shape, queue_shape, status_shape, time_shape
from pqadmin.pages import exposed_values, visibility
from pqadmin.pages.queue_context import PREVIEW_BYTES, row_of
from pqadmin.store import get_store, store_now
from queues import Actions, Queue, QueueStatus, ReadTransaction, Undone
from queues.admin import Config, plain_settings, settings_of

router = Router(tags=["Queues"])

_Kind = Annotated[Literal["priority", "fifo"], Field("priority", description="By priority, or first in, first out.")]
_Type = Annotated[Literal["int", "float", "str"], Field("int", description="The type of priorities.")]
_Codec = Annotated[Literal["bytes", "text", "json", "msgpack"], Field("bytes", description="What values are.")]


class NewQueue(Body):
    """A queue to create."""

    name: StrictStr
    kind: _Kind
    priority_type: _Type
    codec: _Codec
    bands: list[PriorityField] | None = Field(None, max_length=15, description="The edges of the priority mix.")


class Attached(Body):
    """A subspace that other programs write."""

    prefix: StrictStr = Field(description='A tuple such as ("app", 1), hexadecimal digits, or escaped bytes.')
    kind: _Kind
    priority_type: _Type
    codec: _Codec
    reason: ReasonField


class ChangedSettings(Body):
    """Settings of a queue that change; those that are not named stay."""

    note: StrictStr = Field("", description="What operators should know.")
    runbook: StrictStr = Field("", description="Address of instructions for incidents.")
    redact: list[StrictStr] = Field([], description="Keys with hidden values. Only an admin lifts a rule.")
    preview: list[StrictStr] = Field([], description="Fields of values that lists of queues show.")
    max_attempts: StrictInt | None = Field(None, description="Attempts after which an item is dead; null: never.")
    closed: StrictBool = Field(False, description="Pushing is refused.")
    max_depth: StrictInt | None = Field(None, description="The most items, ready and delayed; null: no limit.")
    max_value: StrictInt | None = Field(None, description="Bytes of the largest value; null: the limit of all queues.")
    keep_finished: float | None = Field(None, description="Seconds for which finished items are kept; null: not.")
    target_depth: StrictInt | None = Field(None, description="Ready items; 0: off, null: inherited.")
    target_oldest: float | None = Field(None, description="Seconds that the oldest item may wait.")
    target_wait: float | None = Field(None, description="Seconds that 95 of 100 taken items may have waited.")
    target_dead: StrictInt | None = Field(None, description="Dead items.")
    target_no_consumer: float | None = Field(None, description="Seconds for which none may be taken.")
    target_growing: float | None = Field(None, description="Seconds for which the queue may grow.")
    reason: ReasonField


class NewName(Body):
    """The name that a queue shall have."""

    name: StrictStr


@router.get("/queues", operation_id="list_queues", summary="List queues", response=schemas.Queues)
@in_thread
def list_queues(
    request: ApiRequest,
    prefix: Annotated[str, Query(description="Only queues with names that begin with this.")] = "",
    after: Annotated[str, Query(description="Only queues behind this name: the `next` of the answer before.")] = "",
    limit: Annotated[int, Query(ge=1, le=500, description="How many at most.")] = 100,
    ends: Annotated[bool, Query(description="With the first items of both ends, their values cut.")] = False,
) -> HttpResponse:
    """Return the queues that the caller may see, by name, with depths, ends, verdicts and rates."""
    scope, store, now = allow(request, Verb.READ, Right.READ), get_store(), store_now()
    directory = store.directory()
    names = [name for name in scope.of_those(directory) if name.startswith(prefix) and name > after]
    snapshot = store.snapshot([directory[name] for name in names[:limit]], preview=PREVIEW_BYTES, tolerant=True)
    statuses = sorted(snapshot.queues.values(), key=lambda status: status.name)
    return answer(
        {
            "queues": [_shape(status, ends=ends) for status in statuses if scope.sees(status.name)],
            "next": names[limit - 1] if len(names) > limit else None,
            "at": now.isoformat(timespec="milliseconds"),
        }
    )


@router.post("/queues", operation_id="create_queue", summary="Create a queue", response={201: schemas.QueueMade})
@in_thread
def create_queue(request: ApiRequest, body: NewQueue) -> HttpResponse:
    """Create a queue. Kind, type and codec never change."""
    scope = allow(request, Verb.CONFIGURE, Right.ACT)
    visibility.new_name(scope, body.name)
    options: Any = body.model_dump(exclude={"name"})
    return act(
        request,
        lambda actions: actions.create_queue(body.name, **options),
        queue_shape,
        status=201,
        where=lambda made: address("queues", str(made["queue"])),
    )


@router.get("/queues/{queue}", operation_id="get_queue", summary="Look at a queue", response=schemas.QueueInFull)
@in_thread
def get_queue(request: ApiRequest, queue: str) -> HttpResponse:
    """Return a queue with its settings; the ETag is that of the settings."""
    allow(request, Verb.READ, Right.READ, queue)
    store = get_store()

    def look(tr: ReadTransaction) -> tuple[QueueStatus, Config]:
        there = refuse_another(request, store.queue(queue, tr=tr))
        return there.status(tr=tr, preview=PREVIEW_BYTES), there.config

    with store.suggesting():
        status, config = store.read(look)
    settings = plain_settings(settings_of(config))
    return answer({**_shape(status), "settings": settings}, headers=tagged(_tag(config)))


@router.patch("/queues/{queue}", operation_id="configure_queue", summary="Change settings", response=schemas.Settings)
@in_thread
def configure_queue(request: ApiRequest, queue: str, body: ChangedSettings, if_match: IfMatch = None) -> HttpResponse:
    """Change settings of a queue, and return all of them."""
    scope = allow(request, Verb.CONFIGURE, Right.ACT, queue)
    changes: Any = body.model_dump(include=body.model_fields_set - {"reason"})
    if not changes:
        raise invalid([{"in": "body", "field": "", "message": "name a setting to change"}])

    there = refuse_another(request, get_store().queue(queue))

    def perform(actions: Actions) -> Queue:
        config = there.config
        tag, expect = seen_tag(if_match), None
        if tag is not None:
            if tag != _tag(config):
                raise Problem("SettingsChanged", "The settings were changed since you saw them: nothing was changed.")
            expect = settings_of(config)
        if "redact" in changes:
            expect = {"redact": config.redact, **(expect or {})}
            lifted = exposed_values.lifted(config.redact, changes["redact"])
            if lifted and not scope.role.has(Right.ADMIN):
                raise RightMissing(Right.ADMIN, scope.role, queue)
        return actions.configure(queue, expect=expect, expect_id=config.id, reason=body.reason, **changes)

    return act(request, perform, lambda now: {"settings": plain_settings(settings_of(now.config))}, queue=there)


@router.delete("/queues/{queue}", operation_id="delete_queue", summary="Delete a queue", response=schemas.Trashed)
@in_thread
def delete_queue(
    request: ApiRequest,
    queue: str,
    confirm: Annotated[str, Query(description="The name of the queue again.")],
    expected: Annotated[
        int | None,
        Query(ge=0, description="The ready items that were seen: a tenth, or 10, more or fewer are accepted."),
    ] = None,
    reason: ReasonQuery = "",
    keep: KeepQuery = None,
) -> HttpResponse:
    """Move a queue with all its items into the trash."""
    allow(request, Verb.CONFIGURE, Right.ACT, queue)
    return act(
        request,
        lambda actions: actions.delete_queue(
            queue,
            confirm=confirm,
            expect_depth=expected,
            tolerance=visibility.tolerated(expected or 0),
            expect_id=meant_id(request),
            reason=reason,
        ),
        lambda trash_id: {"trash_id": trash_id},
        keep=keep,
    )


@router.post("/queues/{queue}/rename", operation_id="rename_queue", summary="Rename", response=schemas.QueueMade)
@in_thread
def rename_queue(request: ApiRequest, queue: str, body: NewName) -> HttpResponse:
    """Give a queue another name; its items and open handles stay."""
    visibility.new_name(allow(request, Verb.CONFIGURE, Right.ACT, queue), body.name)
    return act(
        request,
        lambda actions: actions.rename_queue(queue, body.name, expect_id=meant_id(request)),
        queue_shape,
    )


@router.post("/queues/{queue}/restore", operation_id="restore_queue", summary="Restore a queue", response=UndoneAnswer)
@in_thread
def restore_queue(request: ApiRequest, queue: str, body: OptionalReason = NO_REASON) -> HttpResponse:
    """Bring back the queue of this name that was deleted last, with all its items."""
    scope = allow(request, Verb.CONFIGURE, Right.ACT, queue)

    def perform(actions: Actions) -> Undone:
        deleted = actions.trash.entries(queue=queue, act="delete_queue", limit=10).entries
        entry = next((each for each in deleted if each.queue == queue and not each.restored), None)
        if entry is None:
            raise Problem("TrashNotFound", "No deleted queue of this name is in the trash.")
        return actions.undo(visibility.undoable(scope, entry.id).id, reason=body.reason)

    return act(request, perform, undone_shape)


@router.post("/queues/{queue}/attach", operation_id="attach_queue", summary="Attach", response={201: schemas.QueueMade})
@in_thread
def attach_queue(request: ApiRequest, queue: str, body: Attached) -> HttpResponse:
    """Attach a subspace that other programs write, as a queue of this name; for admins."""
    scope = allow(request, Verb.CONFIGURE, Right.ADMIN)
    if not scope.role.has(Right.ADMIN):  # a prefix may lie anywhere, also where queues of other names are
        raise RightMissing(Right.ADMIN, scope.role)
    visibility.new_name(scope, queue)
    options: Any = body.model_dump(exclude={"prefix"})
    try:
        options["prefix"] = parse_prefix(body.prefix)
    except BadPrefixText as error:
        raise Problem("BadPrefix", str(error)) from None
    return act(request, lambda actions: actions.attach(queue, **options), queue_shape, status=201)


@router.post("/queues/{queue}/detach", operation_id="detach_queue", summary="Detach", response=schemas.Done)
@in_thread
def detach_queue(request: ApiRequest, queue: str, body: OptionalReason = NO_REASON) -> HttpResponse:
    """Forget an attached queue; its items stay where they are."""
    allow(request, Verb.CONFIGURE, Right.ACT, queue)
    return act(
        request,
        lambda actions: actions.detach(queue, expect_id=meant_id(request), reason=body.reason),
        lambda _: {"queue": queue},
    )


def _shape(status: QueueStatus, *, ends: bool = False) -> Shape:
    now = store_now()
    row, rules = row_of(status, now), rules_of(status.redact)
    shown = (status.min, status.max) if ends else (None, None)
    low, high = (None if item is None else looked_shape(item, rules) for item in shown)
    return {
        "id": status.id,
        "change": status.change,
        **status_shape(status, row.verdict, now, rate_in=row.rate_in, rate_out=row.rate_out),
        "next_due": time_shape(status.next_due),
        "next_expiry": time_shape(status.next_expiry),
        "note": status.note,
        "runbook": status.runbook,
        "drift": status.drift,
        "staging": status.staging,
        "min": low,
        "max": high,
    }


def _tag(config: Config) -> str:
    """Return the tag of a queue's settings."""
    told = json.dumps([config.id, plain_settings(settings_of(config))], default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
