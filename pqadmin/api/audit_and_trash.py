"""The records of what was done: the audit, the trash, and undo."""

from functools import partial
from typing import Annotated

from django.http import HttpResponse
from ninja import Body as Sent
from ninja import Query, Router
from pydantic import Field, StrictBool

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.api import schemas
from pqadmin.api.answers import act, answer, caller_in
from pqadmin.api.authorization import allow
from pqadmin.api.parameters import Cursor, Limit, Reasoned
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import Moment, undone_shape
from pqadmin.files.audit_export import audit_shape
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.pages import visibility
from pqadmin.store import get_store
from queues import Actions, TrashEntry, Undone
from queues.errors import TrashNotFound

router = Router(tags=["Records"])


class Undo(Reasoned):
    """How something is undone."""

    partial: StrictBool = Field(False, description="Leave alone what was taken or changed since, and undo the rest.")


#: Nothing is left alone.
ALL_OF_IT = Undo.model_validate({})


@router.get("/audit", operation_id="audit", summary="Audit", response=schemas.AuditPage)
@in_thread
def audit(
    request: ApiRequest,
    queue: Annotated[str | None, Query(description="A queue that exists, through all its names.")] = None,
    named: Annotated[str | None, Query(description="Acts on a queue that had this name then.")] = None,
    actor: Annotated[str | None, Query(description="A person, or `token:` and the name of a token.")] = None,
    item: Annotated[str | None, Query(description="The id of an item.")] = None,
    verb: Annotated[str | None, Query(description="Such as push, delete or configure.")] = None,
    since: Annotated[Moment | None, Query(description="Then or later.")] = None,
    until: Annotated[Moment | None, Query(description="Before then.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """Return acts, the newest first. A page may hold fewer than `limit`, and a `next`: that many were looked at.

    Acts on people and tokens are seen by admins; a token sees them with the verb `administer` too.
    """
    scope = allow(request, Verb.READ, Right.READ, queue)
    page = get_store().audit.entries(
        queue=queue,
        named=named,
        actor=actor,
        item=item,
        verb=verb,
        since=since,
        until=until,
        limit=limit,
        after=cursor,
        seen=partial(visibility.seen_entry, scope, administers=Verb.ADMINISTER in caller_in(request).verbs),
    )
    return answer({"entries": [audit_shape(entry) for entry in page.entries], "next": page.cursor})


@router.get("/trash", operation_id="trash", summary="Trash", response=schemas.TrashPage)
@in_thread
def trash(
    request: ApiRequest,
    queue: Annotated[str | None, Query(description="The queue of this name, or that had it then.")] = None,
    by: Annotated[str | None, Query(description="What this person or token removed or changed.")] = None,
    action: Annotated[str | None, Query(description="Such as delete, pop, purge or delete_queue.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """Return what can be undone, the newest first."""
    scope = allow(request, Verb.READ, Right.READ)
    page = get_store().trash.entries(
        queue=queue,
        by=by,
        act=action,
        limit=limit,
        after=cursor,
        visible=None if scope.everything else scope.sees,
    )
    return answer({"entries": [_trash_shape(scope, entry) for entry in page.entries], "next": page.cursor})


@router.post("/undo/{id}", operation_id="undo", summary="Undo", response=schemas.Undone)
@in_thread
def undo(
    request: ApiRequest,
    id: str,
    body: Annotated[Undo, Sent()] = ALL_OF_IT,
) -> HttpResponse:
    """Undo what an entry of the trash or a bulk job did: items and queues are what and where they were.

    Of a bulk job, undoing is a job of its own.
    """
    scope = allow(request, Verb.MANAGE, Right.READ)

    def perform(actions: Actions) -> Undone:
        try:
            entry = visibility.undoable(scope, id)
            allow(request, Verb.CONFIGURE if entry.what == "queue" else Verb.MANAGE, Right.ACT, entry.queue)
        except TrashNotFound as missing:
            try:
                job = visibility.steerable(scope, id)
            except LookupError:
                raise missing from None
            allow(request, Verb.MANAGE, Right.ACT, job.queue)
        return actions.undo(id, partial=body.partial, reason=body.reason)

    return act(request, perform, undone_shape)


def _trash_shape(scope: Scope, entry: TrashEntry) -> Shape:
    entry = visibility.seen_trash(scope, entry)
    return {
        "id": entry.id,
        "what": entry.what,
        "queue": entry.queue or None,
        "item": None if entry.item is None else entry.item.id,
        "items": entry.count,
        "by": entry.by,
        "action": entry.act or None,
        "to": entry.to,
        "at": time_shape(entry.at),
        "deadline": time_shape(entry.deadline),
        "restored": entry.restored,
        "damage": entry.damage or None,
    }
