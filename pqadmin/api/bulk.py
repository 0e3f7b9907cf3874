"""Acts on all items that match: what they would meet, the jobs that do them, and their progress."""

from functools import partial
from typing import Annotated, Literal

from django.http import HttpResponse
from ninja import Query, Router
from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import schemas
from pqadmin.api.answers import act, address, answer
from pqadmin.api.authorization import allow, found
from pqadmin.api.bodies import Body
from pqadmin.api.items.bodies import check_action
from pqadmin.api.items.matching import Matching
from pqadmin.api.parameters import NO_REASON, Cursor, Limit, OptionalReason, ReasonField, ReasonQuery
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import PriorityField, looked_shape
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import what_searchers_see
from pqadmin.files.shapes import job_shape
from pqadmin.pages import exposed_values, visibility
from pqadmin.store import get_store
from queues import Actions, Job, Queue
from queues import Query as ItemQuery
from queues.admin import Survey, survey_matches

router = Router(tags=["Jobs"])


def _all_ready() -> Matching:
    return Matching.model_validate({})


class Begun(Body):
    """An act on all items that match."""

    action: Literal["delete", "move", "reprioritize", "promote", "retry", "release"]
    query: Matching = Field(default_factory=_all_ready, description="Which items; by default all ready ones.")
    to: StrictStr | None = Field(None, description="Of a move: the name of the other queue.")
    priority: PriorityField | None = None
    shift: PriorityField | None = None
    place: Literal["front", "back"] | None = None
    rate: float | None = Field(None, ge=1, le=1_000_000, description="Items a second, at most.")
    expected: StrictInt | None = Field(
        None, ge=0, description="The items that were seen to match: a tenth, or 10, more or fewer are accepted."
    )
    uncover: StrictBool = Field(False, description="Accept that values become visible there that are hidden here.")
    reason: ReasonField

    @model_validator(mode="after")
    def _of_its_action(self) -> "Begun":
        check_action(self, self.action)
        return self


@router.post(
    "/queues/{queue}/bulk/preview", operation_id="preview_bulk", summary="Count what matches", response=schemas.Survey
)
@in_thread
def preview_bulk(request: ApiRequest, queue: str, body: Matching) -> HttpResponse:
    """Count the items that match, by looking through at most 100,000, and return the first ones."""
    there = found(request, queue, Verb.READ, Right.READ)
    survey, rules = _survey(there, body.query), rules_of(there.config.redact)
    return answer(
        {
            "queue": there.name,
            "matched": survey.matched,
            "searched": survey.searched,
            "depth": survey.depth,
            "ended": survey.ended,
            "sample": [looked_shape(item, rules) for item in survey.sample],
        }
    )


@router.post("/queues/{queue}/bulk", operation_id="begin_bulk", summary="Begin a bulk job", response={202: schemas.Job})
@in_thread
def begin_bulk(request: ApiRequest, queue: str, body: Begun) -> HttpResponse:
    """Begin a job that acts on all items that match now. It runs in the background; `Location` tells its progress."""
    there, scope = found(request, queue, Verb.MANAGE, Right.ACT), allow(request, Verb.MANAGE, Right.ACT, queue)

    def perform(actions: Actions) -> Job:
        query, reason = body.query.query, body.reason
        tolerance = visibility.tolerated(body.expected or 0)
        if query.filters and body.expected is not None:
            now = _survey(there, query)
            if now.differs(body.expected, tolerance):
                words = f"{now.matched:,} items match now, not the {body.expected:,} you confirmed: nothing was begun."
                raise Problem("DepthChanged", words, {"depth": now.matched})
        if body.action == "move":
            target = visibility.target(scope, body.to or "")
            reason = exposed_values.asked_for(there, target, {"reason": reason, "uncover": body.uncover})
        return actions.begin_bulk(
            body.action,
            queue,
            query=query,
            to=body.to,
            priority=body.priority,
            shift=body.shift,
            place=body.place,
            rate=body.rate,
            expect_depth=None if query.filters else body.expected,
            tolerance=tolerance,
            expect_id=there.id,
            reason=reason,
        )

    return act(request, perform, job_shape, queue=there, status=202, where=lambda job: address("jobs", str(job["job"])))


@router.get("/jobs", operation_id="list_jobs", summary="List jobs", response=schemas.Jobs)
@in_thread
def list_jobs(
    request: ApiRequest,
    running: Annotated[bool, Query(description="All that have not ended, the oldest first, on one page.")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """Return bulk jobs, the newest first."""
    scope, acts = allow(request, Verb.READ, Right.READ), get_store().actions("")
    if running:
        jobs = [job_shape(job) for job in acts.running_jobs() if scope.everything or visibility.sees_job(scope, job)]
        return answer({"jobs": jobs, "next": None})
    visible = None if scope.everything else partial(visibility.sees_job, scope)
    page = acts.job_page(limit=limit, after=cursor, visible=visible)
    return answer({"jobs": [job_shape(job) for job in page.entries], "next": page.cursor})


@router.get("/jobs/{id}", operation_id="get_job", summary="Look at a job", response=schemas.Job)
@in_thread
def get_job(request: ApiRequest, id: str) -> HttpResponse:
    """Return a job with its progress: `items` of `total` are done."""
    return answer(job_shape(visibility.job(allow(request, Verb.READ, Right.READ), id)))


@router.delete("/jobs/{id}", operation_id="cancel_job", summary="Cancel a job", response=schemas.Job)
@in_thread
def cancel_job(request: ApiRequest, id: str, reason: ReasonQuery = "") -> HttpResponse:
    """End a job after its present chunk. What it did stays done until it is undone; an ended job stays as it is."""
    _steer(request, id)
    return act(request, lambda actions: actions.cancel_bulk(id, reason=reason), job_shape)


@router.post("/jobs/{id}/resume", operation_id="resume_job", summary="Resume a job", response=schemas.Job)
@in_thread
def resume_job(
    request: ApiRequest,
    id: str,
    body: OptionalReason = NO_REASON,
) -> HttpResponse:
    """Let a job go on that was canceled or has failed."""
    _steer(request, id)
    return act(request, lambda actions: actions.resume_bulk(id, reason=body.reason), job_shape)


def _steer(request: ApiRequest, job_id: str) -> None:
    """Raise what keeps the caller from changing a job."""
    job = visibility.steerable(allow(request, Verb.MANAGE, Right.READ), job_id)
    allow(request, Verb.MANAGE, Right.ACT, job.queue)


def _survey(queue: Queue, query: ItemQuery) -> Survey:
    return survey_matches(queue, query, shown=what_searchers_see(queue.config) if query.text else None)
