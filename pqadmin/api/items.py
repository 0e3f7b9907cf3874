"""Particular items: list, look, reveal, and the acts of people on them, audited and undoable."""

from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Body as Sent
from ninja import Query
from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.api import schemas
from pqadmin.api.answers import act, answer, tagged
from pqadmin.api.authorization import allow, found
from pqadmin.api.bodies import Body
from pqadmin.api.parameters import (
    NO_REASON,
    Cursor,
    IfMatch,
    KeepField,
    Limit,
    OptionalReason,
    ReasonField,
    ReasonQuery,
    seen_tag,
)
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import MOST, Moment, PriorityField, ValueFields, looked_shape, seen_shape
from pqadmin.api.verbs.open_queue import router
from pqadmin.api.verbs.take import ENDS
from pqadmin.display.redaction import Redaction, rules_of
from pqadmin.display.values import what_searchers_see
from pqadmin.files.shapes import Shape, item_shape, time_shape
from pqadmin.pages import exposed_values, visibility
from pqadmin.pages.item_search import search_queue
from pqadmin.store import get_store
from queues import Actions, AnyQueue, Changed, Item, Popped
from queues import Query as ItemQuery
from queues.admin import MAX_VALUE_SIZE, Picked, item_digest, parse_priority

State = Literal["ready", "delayed", "leased", "dead"]
#: Bytes of each value of a list by default.
PREVIEW = 1_000


class Matching(Body):
    """Which items of a state are meant: those that fit in every respect that is named."""

    state: State = Field("ready")
    match: StrictStr = Field("", description="A part of the value, or of why an item is dead.")
    field: StrictStr = Field("", description="A path such as `customer.id`: `match` is looked for in this field.")
    exact: StrictBool = Field(False, description="The field is `match`; otherwise it contains it.")
    id: StrictStr = Field("", description="An id, or a part of one.")
    error: StrictStr = Field("", description="The group of the errors of dead items.")
    low: PriorityField | None = Field(None, description="The smallest priority, of ready items.")
    high: PriorityField | None = Field(None, description="The largest priority, of ready items.")
    since: Moment | None = Field(None, description="Pushed, or ready, then or later.")
    until: Moment | None = Field(None, description="Pushed, or ready, then or earlier.")

    @property
    def query(self) -> ItemQuery:
        """The query of the core."""
        return ItemQuery(
            state=self.state,
            text=self.match,
            field=self.field,
            exact=self.exact,
            item_id=self.id,
            error=self.error,
            low=self.low,
            high=self.high,
            since=self.since,
            until=self.until,
        )


class Moved(Body):
    """Where items move to."""

    to: StrictStr = Field(description="The name of the other queue.")
    priority: PriorityField | None = Field(
        None, description="The priority that they get there; null: they keep theirs."
    )
    uncover: StrictBool = Field(False, description="Accept that values become visible there that are hidden here.")
    reason: ReasonField


class Patched(ValueFields):
    """One change of an item: its value, its priority or place, or when it is ready."""

    priority: PriorityField | None = None
    shift: PriorityField | None = Field(None, description="A number that is added to the priority.")
    place: Literal["front", "back"] | None = Field(None, description="Bring a ready item to the front or the back.")
    delay: float | None = Field(None, ge=0, description="Seconds until it is ready; a ready item is delayed.")
    due_at: Moment | None = Field(None, description="When it becomes ready; a ready item is delayed.")
    reason: ReasonField

    @model_validator(mode="after")
    def _one_change(self) -> "Patched":
        if len(self.model_fields_set - {"reason"}) != 1:
            raise ValueError("name one change: a value, priority, shift, place, delay or due_at")
        if getattr(self, (self.model_fields_set - {"reason"}).pop()) is None and not self.has_json:
            raise ValueError("the change is null")
        return self


#: The fields that an action takes of those that some actions take.
_TAKES = {
    "move": {"to", "priority", "uncover"},
    "reprioritize": {"priority", "shift", "place"},
    "reschedule": {"delay", "due_at"},
    "delay": {"delay", "due_at"},
    "delete": {"keep"},
}
_OF_SOME = set[str]().union(*_TAKES.values())


def refuse_of_others(body: Body, action: str) -> None:
    """Raise ValueError if a body has a field that its action does not take."""
    for name in sorted(body.model_fields_set & _OF_SOME - _TAKES.get(action, set())):
        if getattr(body, name) not in (None, False):
            raise ValueError(f"{name} is of another action than {action}")


class PoppedBody(Body):
    """What is taken into the trash."""

    end: Literal["min", "max", "head", "tail"] = Field("min", description="The end; in a FIFO queue `min` is the head.")
    n: StrictInt = Field(1, ge=1, le=MOST, description="How many items at most.")
    keep: KeepField = None
    reason: ReasonField


#: The first item.
ONE = PoppedBody.model_validate({})


class Acted(Body):
    """An act on up to 1,000 items, all of them or none."""

    action: Literal["delete", "move", "reprioritize", "promote", "reschedule", "delay", "retry", "release"]
    ids: list[StrictStr] = Field(min_length=1, max_length=MOST)
    expect: dict[StrictStr, StrictStr] | None = Field(None, description="ETags by id: if one has changed, 412.")
    skip_missing: StrictBool = Field(False, description="Leave out items that are gone, changed or in another state.")
    to: StrictStr | None = Field(None, description="Of a move: the name of the other queue.")
    priority: PriorityField | None = None
    shift: PriorityField | None = None
    place: Literal["front", "back"] | None = None
    delay: float | None = Field(None, ge=0)
    due_at: Moment | None = None
    uncover: StrictBool = False
    keep: KeepField = None
    reason: ReasonField

    @model_validator(mode="after")
    def _of_its_action(self) -> "Acted":
        refuse_of_others(self, self.action)
        if self.action == "move" and self.to is None:
            raise ValueError("to is needed: the name of the other queue")
        return self


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
    picked = pick(queue, id)
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


@router.post(
    "/queues/{queue}/items/{id}/reveal", operation_id="reveal_item", summary="Reveal a value", response=schemas.Item
)
@in_thread
def reveal_item(
    request: ApiRequest,
    queue: str,
    id: str,
    body: OptionalReason = NO_REASON,
) -> HttpResponse:
    """Return an item with its whole value, hidden parts too; the audit records that it was read.

    Takes the verbs `read` and `manage`.
    """
    allow(request, Verb.READ, Right.READ, queue)
    there = found(request, queue, Verb.MANAGE, Right.ACT)
    return act(request, lambda actions: actions.reveal(queue, id, reason=body.reason), item_shape, queue=there)


@router.patch(
    "/queues/{queue}/items/{id}", operation_id="change_item", summary="Change an item", response=schemas.Changed
)
@in_thread
def change_item(
    request: ApiRequest,
    queue: str,
    id: str,
    body: Patched,
    if_match: IfMatch = None,
) -> HttpResponse:
    """Give an item another value, priority, place or time. Undone by its `trash_id`."""
    there = found(request, queue, Verb.MANAGE, Right.ACT)
    tag = seen_tag(if_match)

    def perform(actions: Actions) -> Changed:
        if body.has_value:
            picked = pick(queue, id)
            digest = item_digest(picked.item.raw)
            return actions.edit_item(queue, id, body.bytes_for(there), expect=digest, etag=tag, reason=body.reason)
        how: dict[str, Any] = {"reason": body.reason, "expect": None if tag is None else {id: tag}}
        if body.delay is not None or body.due_at is not None:
            verb = actions.delay if pick(queue, id).item.state == "ready" else actions.reschedule
            return verb(queue, [id], delay=body.delay, due=body.due_at, **how)
        return actions.reprioritize(queue, [id], priority=body.priority, shift=body.shift, place=body.place, **how)

    return _changed(request, there, perform)


@router.delete(
    "/queues/{queue}/items/{id}", operation_id="delete_item", summary="Delete an item", response=schemas.Changed
)
@in_thread
def delete_item(
    request: ApiRequest,
    queue: str,
    id: str,
    reason: ReasonQuery = "",
    if_match: IfMatch = None,
) -> HttpResponse:
    """Move an item of any state into the trash."""
    there, tag = found(request, queue, Verb.MANAGE, Right.ACT), seen_tag(if_match)
    return _changed(request, there, lambda actions: actions.delete_item(queue, id, expect=tag, reason=reason))


def _simple(verb: str, summary: str, words: str) -> None:
    """Register an act on one item that takes nothing but a reason."""

    def view(
        request: ApiRequest,
        queue: str,
        id: str,
        body: OptionalReason = NO_REASON,
        if_match: IfMatch = None,
    ) -> HttpResponse:
        there, tag = found(request, queue, Verb.MANAGE, Right.ACT), seen_tag(if_match)
        expect = None if tag is None else {id: tag}
        name = {"retry": "retry_dead"}.get(verb, verb)
        return _changed(
            request, there, lambda actions: getattr(actions, name)(queue, [id], expect=expect, reason=body.reason)
        )

    view.__doc__ = words
    router.post(
        f"/queues/{{queue}}/items/{{id}}/{verb}",
        operation_id=f"{verb}_item",
        summary=summary,
        response=schemas.Changed,
    )(in_thread(view))


_simple("promote", "Promote a delayed item", "Make a delayed item ready now, due or not.")
_simple("retry", "Retry a dead item", "Return a dead item to its place, with no attempts counted.")
_simple("release", "Release a leased item", "Take a leased item back: its worker cannot acknowledge it any more.")


@router.post(
    "/queues/{queue}/items/{id}/move", operation_id="move_item", summary="Move an item", response=schemas.Changed
)
@in_thread
def move_item(
    request: ApiRequest,
    queue: str,
    id: str,
    body: Moved,
    if_match: IfMatch = None,
) -> HttpResponse:
    """Move an item to another queue: at every moment it is in exactly one of the two."""
    scope, there = allow(request, Verb.MANAGE, Right.ACT, queue), found(request, queue, Verb.MANAGE, Right.ACT)
    tag = seen_tag(if_match)
    expect = None if tag is None else {id: tag}
    return _changed(request, there, lambda actions: move(actions, scope, queue, [id], body, expect=expect))


@router.post("/queues/{queue}/act", operation_id="act_on_items", summary="Act on items", response=schemas.Changed)
@in_thread
def act_on_items(request: ApiRequest, queue: str, body: Acted) -> HttpResponse:
    """Act on items by their ids, in one transaction, with one undo."""
    scope, there = allow(request, Verb.MANAGE, Right.ACT, queue), found(request, queue, Verb.MANAGE, Right.ACT)
    how: dict[str, Any] = {"reason": body.reason, "expect": body.expect, "skip_missing": body.skip_missing}
    when: dict[str, Any] = {"delay": body.delay, "due": body.due_at}

    def perform(actions: Actions) -> Changed:
        match body.action:
            case "move":
                moved = Moved(to=body.to or "", priority=body.priority, uncover=body.uncover, reason=body.reason)
                return move(actions, scope, queue, body.ids, moved, expect=body.expect, skip_missing=body.skip_missing)
            case "reprioritize":
                return actions.reprioritize(
                    queue, body.ids, priority=body.priority, shift=body.shift, place=body.place, **how
                )
            case "reschedule":
                return actions.reschedule(queue, body.ids, **when, **how)
            case "delay":
                return actions.delay(queue, body.ids, **when, **how)
            case "delete":
                return actions.delete_items(queue, body.ids, **how)
            case "promote":
                return actions.promote(queue, body.ids, **how)
            case "retry":
                return actions.retry_dead(queue, body.ids, **how)
            case "release":
                return actions.release(queue, body.ids, **how)

    return _changed(request, there, perform, keep=body.keep)


@router.post(
    "/queues/{queue}/act/pop",
    operation_id="pop_into_trash",
    summary="Pop into the trash",
    response=schemas.TakenKept,
)
@in_thread
def pop_into_trash(request: ApiRequest, queue: str, body: Annotated[PoppedBody, Sent()] = ONE) -> HttpResponse:
    """Take items from one end as a person does: in the audit, and undone by the `trash_id` of each."""
    there = found(request, queue, Verb.TAKE, Right.ACT)
    return act(
        request,
        lambda actions: actions.pop_many(queue, body.n, end=ENDS[body.end], reason=body.reason),
        lambda taken: {"items": [{**item_shape(one.item), "trash_id": one.trash_id} for one in taken]},
        queue=there,
        keep=body.keep,
    )


def pick(queue: str, item_id: str) -> Picked:
    """Return an item of any state with its tag; raise `ItemNotFound`."""
    selection = get_store().actions("").pick(queue, [item_id])
    if not selection.picked:
        raise Problem("ItemNotFound", "The item is not in the queue: it was taken, or was never there.")
    return selection.picked[0]


def move(actions: Actions, scope: Scope, queue: str, ids: list[str], body: Moved, **how: Any) -> Changed:
    """Move items, if the caller may act on the other queue, and nothing hidden becomes visible unasked."""
    target = visibility.target(scope, body.to)
    reason = exposed_values.asked_for(get_store().queue(queue), target, body.model_dump())
    return actions.move_items(queue, ids, body.to, priority=body.priority, reason=reason, **how)


def _changed(request: ApiRequest, queue: AnyQueue, perform: Any, *, keep: float | None = None) -> HttpResponse:
    """Act and answer how many items were changed, and how it is undone."""

    def shape(changed: Changed | Popped) -> Shape:
        count, skipped = (1, 0) if isinstance(changed, Popped) else (changed.count, changed.skipped)
        return {"queue": queue.name, "items": count, "skipped": skipped, "trash_id": changed.trash_id}

    return act(request, perform, shape, queue=queue, keep=keep)
