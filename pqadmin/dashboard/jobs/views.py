"""Jobs: acts on many items, running and past; each can be canceled, let go on, and undone."""

from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.jobs.words import job_url, tell
from pqadmin.display.errors import said
from pqadmin.display.words import damage_words
from pqadmin.pages import form_idempotency, toasts, visibility
from pqadmin.pages.action_view import ActionView
from pqadmin.pages.filtered_lists import until_something
from pqadmin.store import get_store, store_now
from queues import Actions, Undone
from queues.admin import minted_ms, time_of_ms
from queues.errors import JobNotFound, Unreadable

PAGE = 50
#: Characters of an id that are shown; longer ones are none.
_MAX_ID = 100


def _acts(request: HttpRequest) -> Actions:
    return get_store().actions(request.user.get_username())


@require_safe
@require(Right.READ)
def jobs(request: HttpRequest) -> HttpResponse:
    """Show what is running, and what was, newest first."""
    acts, now, may = _acts(request), store_now(), visibility.scope(request)
    visible = None if may.everything else partial(visibility.sees_job, may)
    page, paging = until_something(
        request,
        lambda after: acts.job_page(limit=PAGE, after=after, visible=visible),
        shown=lambda job: not job.running,
    )
    running = acts.running_jobs()
    shown = [] if paging["in_middle"] else [job for job in reversed(running) if visibility.sees_job(may, job)]
    context = {
        **paging,
        "section": "jobs",
        "all_running": running,
        "running": [tell(job, now) for job in shown],
        "past": [tell(job, now) for job in page.entries if not job.running],
        "unreadable": [
            {"id": job_id, "began_at": time_of_ms(minted_ms(bytes.fromhex(job_id)))} for job_id in page.unreadable
        ],
        "looked_on": not page.certain and not may.everything,
        "now": now,
    }
    return render(request, "dashboard/jobs.html", context)


@require_safe
@require(Right.READ)
def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """Show one job: how far it is, what it did, what failed and why."""
    try:
        found = visibility.job(visibility.scope(request), job_id)
    except JobNotFound as error:
        return render(request, "dashboard/no_job.html", {"section": "jobs", "why": said(error)}, status=404)
    except Unreadable as error:
        context = {"section": "jobs", "why": damage_words(error.words), "damaged": True}
        return render(request, "dashboard/no_job.html", context, status=409)
    now, other = store_now(), found.of or found.undo
    context = {
        "section": "jobs",
        "told": tell(found, now),
        "job": found,
        "all_running": _acts(request).running_jobs(),
        "other": None,
        "can_act": visibility.may_steer(visibility.scope(request), found),
        "audit_url": f"{reverse('dashboard:audit')}?{urlencode({'queue': found.queue})}",
        "numbers": {
            verb: {form_idempotency.FIELD: form_idempotency.number(request, f"{verb}-job:{found.id}")}
            for verb in ("cancel", "resume", "undo")
        },
        "now": now,
    }
    if other is not None:
        with suppress(JobNotFound, Unreadable):
            context["other"] = tell(visibility.job(visibility.scope(request), other), now)
    return render(request, "dashboard/job.html", context)


class JobActionView(ActionView):
    """An action on a bulk job; a refusal is shown on the job's own page."""

    http_method_names = ["post"]

    @property
    def subject(self) -> str:
        """The job."""
        return str(self.kwargs["job_id"])[:_MAX_ID]

    @property
    def home(self) -> str:
        """The job's page."""
        return job_url(self.subject)

    def perform(self, form: Any) -> str:
        """Change the job, if the user may act on its queues."""
        visibility.steerable(visibility.scope(self.request), self.subject)
        return self.steer()

    def steer(self) -> str:
        """Change the job and return where the answer leads."""
        raise NotImplementedError


class CancelView(JobActionView):
    """Ends a job after its present chunk."""

    action = "cancel-job"

    def steer(self) -> str:
        """Cancel the job."""
        if not self.actions.job(self.subject).running:
            toasts.failed(self.request, _("It had ended already. Nothing was changed."))
        elif self.actions.cancel_bulk(self.subject).status == "canceled":
            toasts.done(self.request, _("Canceled. What it did stays done until you undo it."))
        return self.home


class ResumeView(JobActionView):
    """Lets a job go on that was canceled or has failed."""

    action = "resume-job"

    def steer(self) -> str:
        """Resume the job."""
        self.actions.resume_bulk(self.subject)
        toasts.done(self.request, _("It goes on where it was."))
        return self.home


class UndoView(JobActionView):
    """Begins to undo all that a job did."""

    action = "undo-job"

    def steer(self) -> str:
        """Begin the job that undoes this one."""
        return self.answer_of(self.actions.undo(self.subject))

    def answer_of(self, result: Undone) -> str:
        """Return the page of the new job."""
        return self.home if result.job is None else job_url(result.job.id)
