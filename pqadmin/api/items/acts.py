"""Acts of people on items: each one in a transaction, audited, and undone by its id."""

from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Body as Sent

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.api import schemas
from pqadmin.api.answers import act
from pqadmin.api.authorization import allow, found
from pqadmin.api.items.bodies import ONE, Acted, Moved, Patched, PoppedBody
from pqadmin.api.items.look import pick
from pqadmin.api.parameters import NO_REASON, IfMatch, OptionalReason, ReasonQuery, seen_tag
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.verbs.open_queue import router
from pqadmin.api.verbs.take import ENDS
from pqadmin.files.shapes import Shape, item_shape
from pqadmin.pages import exposed_values, visibility
from queues import Actions, AnyQueue, Changed, Popped
from queues.admin import item_digest


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
    return act(
        request,
        lambda actions: actions.reveal(queue, id, reason=body.reason, expect_id=there.id),
        item_shape,
        queue=there,
    )


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
        how: dict[str, Any] = {"reason": body.reason, "expect_id": there.id}
        if body.has_value:
            digest = item_digest(pick(there, id).item.raw)
            return actions.edit_item(queue, id, body.bytes_for(there), expect=digest, etag=tag, **how)
        how["expect"] = None if tag is None else {id: tag}
        if body.delay is not None or body.due_at is not None:
            verb = actions.delay if pick(there, id).item.state == "ready" else actions.reschedule
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
    return _changed(
        request,
        there,
        lambda actions: actions.delete_item(queue, id, expect=tag, reason=reason, expect_id=there.id),
    )


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
        how = {"expect": expect, "expect_id": there.id, "reason": body.reason}
        return _changed(request, there, lambda actions: getattr(actions, name)(queue, [id], **how))

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
    return _changed(request, there, lambda actions: move(actions, scope, there, [id], body, expect=expect))


@router.post("/queues/{queue}/act", operation_id="act_on_items", summary="Act on items", response=schemas.Changed)
@in_thread
def act_on_items(request: ApiRequest, queue: str, body: Acted) -> HttpResponse:
    """Act on items by their ids, in one transaction, with one undo."""
    scope, there = allow(request, Verb.MANAGE, Right.ACT, queue), found(request, queue, Verb.MANAGE, Right.ACT)
    which: dict[str, Any] = {"expect": body.expect, "skip_missing": body.skip_missing}
    how: dict[str, Any] = {"reason": body.reason, "expect_id": there.id, **which}
    when: dict[str, Any] = {"delay": body.delay, "due": body.due_at}

    def perform(actions: Actions) -> Changed:
        match body.action:
            case "move":
                moved = Moved(to=body.to or "", priority=body.priority, uncover=body.uncover, reason=body.reason)
                return move(actions, scope, there, body.ids, moved, **which)
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
        lambda actions: actions.pop_many(queue, body.n, end=ENDS[body.end], reason=body.reason, expect_id=there.id),
        lambda taken: {"items": [{**item_shape(one.item), "trash_id": one.trash_id} for one in taken]},
        queue=there,
        keep=body.keep,
    )


def move(actions: Actions, scope: Scope, queue: AnyQueue, ids: list[str], body: Moved, **how: Any) -> Changed:
    """Move items, if the caller may act on the other queue, and nothing hidden becomes visible unasked."""
    target = visibility.target(scope, body.to)
    reason = exposed_values.asked_for(queue, target, body.model_dump())
    return actions.move_items(
        queue.name, ids, body.to, priority=body.priority, reason=reason, expect_id=queue.id, **how
    )


def _changed(request: ApiRequest, queue: AnyQueue, perform: Any, *, keep: float | None = None) -> HttpResponse:
    """Act and answer how many items were changed, and how it is undone."""

    def shape(changed: Changed | Popped) -> Shape:
        count, skipped = (1, 0) if isinstance(changed, Popped) else (changed.count, changed.skipped)
        return {"queue": queue.name, "items": count, "skipped": skipped, "trash_id": changed.trash_id}

    return act(request, perform, shape, queue=queue, keep=keep)
