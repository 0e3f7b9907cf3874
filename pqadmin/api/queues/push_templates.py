"""Push templates of queues: list, look, keep and forget them."""

from typing import Literal

from django.http import HttpResponse
from ninja import Router
from pydantic import Field, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api.answers import answer, change
from pqadmin.api.authorization import allow, found
from pqadmin.api.bodies import Body
from pqadmin.api.parameters import RowId
from pqadmin.api.problems import Problem
from pqadmin.api.queues import schemas
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.pages import push_templates
from pqadmin.pages.push_form import PushForm
from pqadmin.pages.push_templates import PushTemplate
from pqadmin.pages.queue_context import status_of
from pqadmin.site_audit import Author
from queues import QueueStatus

router = Router(tags=["Queues"])


class NewTemplate(Body):
    """A push form under a name, as it was typed: it need not be fit to push."""

    name: StrictStr = Field(description="A template of this name is replaced.")
    value: StrictStr = Field("", description="The value.")
    encoding: Literal["text", "base64"] = Field("text", description="What the value is typed as.")
    priority: StrictStr = Field("", description="The priority, written as text.")
    when: Literal["", "delay", "due"] = Field("", description="At once, after a delay, or at a moment.")
    delay: StrictStr = Field("", description="The delay, in the unit.")
    unit: Literal["s", "min", "h", "d"] = Field("min", description="The unit of the delay.")
    due: StrictStr = Field("", description="The moment, such as 2026-11-20 08:00.")
    zone: StrictStr = Field("", description="The time zone of the moment; empty is UTC.")


@router.get(
    "/queues/{queue}/templates", operation_id="list_templates", summary="Push templates", response=schemas.PushTemplates
)
@in_thread
def list_templates(request: ApiRequest, queue: str) -> HttpResponse:
    """Return the push templates of a queue, by name. They hold values as typed, so this takes the verb read too."""
    kept = push_templates.of(_status(request, queue).id)
    return answer({"templates": [_shape(each) for each in kept]})


@router.get(
    "/queues/{queue}/templates/{id}",
    operation_id="get_template",
    summary="Look at a template",
    response=schemas.PushTemplateInFull,
)
@in_thread
def get_template(request: ApiRequest, queue: str, id: RowId) -> HttpResponse:
    """Return a push template with its fields."""
    kept = push_templates.get(_status(request, queue).id, str(id))
    if kept is None:
        raise _missing()
    return answer({**_shape(kept), "fields": kept.fields})


@router.post(
    "/queues/{queue}/templates",
    operation_id="keep_template",
    summary="Keep a template",
    response={201: schemas.PushTemplate},
)
@in_thread
def keep_template(request: ApiRequest, queue: str, body: NewTemplate) -> HttpResponse:
    """Keep a push form under a name, for all that push to the queue; what was kept under the name is replaced."""
    status = _to_change(request, queue)
    form = PushForm(body.model_dump(exclude={"name"}), status=status)

    def keep(by: Author) -> tuple[PushTemplate, Shape]:
        form.is_valid()
        return push_templates.keep(status.id, status.name, body.name, form, by=by), {}

    return change(request, keep, _shape, status=201)


@router.delete(
    "/queues/{queue}/templates/{id}",
    operation_id="forget_template",
    summary="Delete a template",
    response=schemas.PushTemplate,
)
@in_thread
def forget_template(request: ApiRequest, queue: str, id: RowId) -> HttpResponse:
    """Delete a push template."""
    status = _to_change(request, queue)

    def forget(by: Author) -> tuple[PushTemplate, Shape]:
        if push_templates.get(status.id, str(id)) is None:
            raise _missing()
        return push_templates.forget(status.id, status.name, str(id), by=by), {}

    return change(request, forget, _shape)


def _status(request: ApiRequest, queue: str) -> QueueStatus:
    """Return a queue if the caller may look at its templates: those that push to it do."""
    allow(request, Verb.PUSH, Right.ACT, queue)
    found(request, queue, Verb.READ, Right.READ)
    return status_of(queue)


def _to_change(request: ApiRequest, queue: str) -> QueueStatus:
    found(request, queue, Verb.CONFIGURE, Right.ACT)
    return status_of(queue)


def _missing() -> Problem:
    return Problem("NotFound", "The queue has no template of this id.")


def _shape(template: PushTemplate) -> Shape:
    return {"id": template.pk, "name": template.name, "by": template.by, "at": time_shape(template.at)}
