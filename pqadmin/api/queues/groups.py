"""Groups of queues, by the beginnings of their names: pause them, resume them."""

from collections.abc import Callable, Collection
from typing import Annotated

from django.http import HttpResponse
from ninja import Router
from pydantic import Field, StrictInt, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api.answers import answer, caller_in, first_answer, keep_answer, pack, request_key, unpack
from pqadmin.api.authorization import allow
from pqadmin.api.bodies import Body
from pqadmin.api.parameters import ReasonField
from pqadmin.api.problems import Problem
from pqadmin.api.queues import schemas
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import Moment
from pqadmin.files.shapes import Shape
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import queue_groups
from pqadmin.store import get_store
from queues import Actions, QueueStatus
from queues.errors import AlreadyDone, TooLarge

router = Router(tags=["Queues"])

GroupField = Annotated[StrictStr, Field(description="The beginning of the names, up to a colon; empty: without one.")]
QueueIdsField = Annotated[
    list[StrictInt] | None,
    Field(max_length=queue_groups.MOST, description="The ids of the queues that were seen: the rest are left alone."),
]


class PausedGroup(Body):
    """A group to pause: why, and until when."""

    group: GroupField
    reason: StrictStr = Field(description="Why; consumers are told it.")
    until: Moment | None = Field(None, description="When its queues resume by themselves.")
    queue_ids: QueueIdsField = None


class ResumedGroup(Body):
    """A group to resume."""

    group: GroupField
    queue_ids: QueueIdsField = None
    reason: ReasonField


@router.post("/groups/pause", operation_id="pause_group", summary="Pause a group", response=schemas.QueuesOfGroup)
@in_thread
def pause_group(request: ApiRequest, body: PausedGroup) -> HttpResponse:
    """Stop taking from all queues of a group that the caller may act on, in one transaction: at most 500.

    Attached queues, and those that are paused already, stay as they are. `orders:` is the group of `orders:eu`, and
    `orders:eu:` that of `orders:eu:late`.
    """

    def pause(actions: Actions, status: QueueStatus) -> None:
        actions.pause(status.name, reason=body.reason, until=body.until, expect_id=status.id)

    return _change(request, body.group, body.queue_ids, pause, of_paused=False)


@router.post("/groups/resume", operation_id="resume_group", summary="Resume a group", response=schemas.QueuesOfGroup)
@in_thread
def resume_group(request: ApiRequest, body: ResumedGroup) -> HttpResponse:
    """Let items be taken again from all paused queues of a group that the caller may act on."""

    def resume(actions: Actions, status: QueueStatus) -> None:
        actions.resume(status.name, reason=body.reason, expect_id=status.id)

    return _change(request, body.group, body.queue_ids, resume, of_paused=True)


def _change(
    request: ApiRequest,
    label: str,
    asked: Collection[int] | None,
    each: Callable[[Actions, QueueStatus], None],
    *,
    of_paused: bool,
) -> HttpResponse:
    scope, store = allow(request, Verb.CONFIGURE, Right.ACT), get_store()
    made: Shape = {"group": label}
    key = request_key(request, lambda _: pack(200, made))
    if (first := first_answer(key)) is not None:
        return first
    group = queue_groups.read(scope, label, store.directory(), of_paused=of_paused, asked=asked)
    if not group.members:
        raise Problem("NotFound", "There is no queue of this group that you may act on.")
    if group.members > queue_groups.MOST:
        raise TooLarge("A group of at most {most} queues is changed at once.", most=queue_groups.MOST)
    made["queues"] = [status.name for status in group.queues]
    actor = caller_in(request).name
    try:
        queue_groups.change(group.queues, lambda tr: store.actions(actor, via="api", tr=tr, key=key), each)
    except AlreadyDone as done:
        return unpack(done.answer, repeated=True)
    if not group.queues and (first := keep_answer(key, None)) is not None:
        return first
    get_monitor().outdated()
    return answer(made)
