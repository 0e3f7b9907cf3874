"""Jobs: acts on many items, running and past; each can be canceled, let go on, and undone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.jobs.words import job_url, tell
from pqadmin.display.addresses import leave
from pqadmin.display.errors import said
from pqadmin.display.words import damage_words
from pqadmin.pages import act_view, once, toasts, visibility
from pqadmin.pages.read_until import until_something
from pqadmin.pages.refusals import explain
from pqadmin.store import get_store, store_now
from queues import Actions, Job, JobPage
from queues.admin import minted_ms, time_of_ms
from queues.errors import BadCursor, JobNotFound, QueueError, StoreError, Unreadable

PAGE = 50
#: Characters of an id that are shown; longer ones are none.
_MAX_ID = 100


def _acts(request: HttpRequest) -> Actions:
    return get_store().actions(request.user.get_username())


@require_safe
@require(Right.READ)
def jobs(request: HttpRequest) -> HttpResponse:
    """Show what is running, and what was, newest first."""
    after, wrong = request.GET.get("after", "")[:300] or None, ""
    acts, now, may = _acts(request), store_now(), visibility.scope(request)
    visible = None if may.everything else partial(visibility.sees_job, may)

    def read(after: str | None) -> JobPage:
        return acts.job_page(limit=PAGE, after=after, visible=visible)

    try:
        page, _looked = until_something(read, after, empty=_is_empty)
    except BadCursor as error:
        after, wrong = None, said(error)
        page, _looked = until_something(read, None, empty=_is_empty)
    every = acts.running_jobs()
    running = [] if after else every
    context = {
        "section": "jobs",
        "all_running": every,
        "running": [tell(job, now) for job in reversed(running) if visibility.sees_job(may, job)],
        "past": [tell(job, now) for job in page.jobs if not job.running],
        "wrong": wrong,
        "unreadable": [_unreadable(job_id) for job_id in page.unreadable],
        "in_middle": after is not None,
        "looked_on": not page.certain and not may.everything,
        "next_url": "" if page.cursor is None else "?" + urlencode({"after": page.cursor}),
        "now": now,
    }
    return render(request, "dashboard/jobs.html", context)


def _is_empty(page: JobPage) -> bool:
    return all(job.running for job in page.jobs) and not page.unreadable


@require_safe
@require(Right.READ)
def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """Show one job: how far it is, what it did, what failed and why."""
    try:
        found = visibility.job(request, job_id)
    except JobNotFound as error:
        return render(request, "dashboard/no_job.html", {"section": "jobs", "why": said(error)}, status=404)
    except Unreadable as error:
        context = {"section": "jobs", "why": damage_words(error.words), "damaged": True}
        return render(request, "dashboard/no_job.html", context, status=409)
    return render(request, "dashboard/job.html", _about(request, found))


def _unreadable(job_id: str) -> dict[str, Any]:
    return {"id": job_id, "began_at": time_of_ms(minted_ms(bytes.fromhex(job_id))), "url": job_url(job_id)}


def _about(request: HttpRequest, found: Job) -> dict[str, Any]:
    now = store_now()
    other = found.of or found.undo
    return {
        "section": "jobs",
        "told": tell(found, now),
        "job": found,
        "all_running": _acts(request).running_jobs(),
        "other": None if other is None else _other(request, other, now),
        "can_act": visibility.may_steer(visibility.scope(request), found),
        "audit_url": f"{reverse('dashboard:audit')}?{urlencode({'queue': found.queue})}",
        "hidden": {once.FIELD: once.number(request, f"job:{found.id}")},
        "now": now,
    }


def _other(request: HttpRequest, job_id: str, now: datetime) -> Any:
    try:
        return tell(visibility.job(request, job_id), now)
    except (JobNotFound, Unreadable):
        return None


@require_POST
@require(Right.ACT)
def cancel(request: HttpRequest, job_id: str) -> HttpResponse:
    """Let a job end after the chunk that is being done."""

    def act() -> str:
        was = _acts(request).job(job_id)
        if not was.running:
            toasts.failed(request, _("It had ended already. Nothing was changed."))
            return job_url(job_id)
        ended = _acts(request).cancel_bulk(job_id)
        if ended.status == "canceled":
            toasts.done(request, _("Canceled. What it did stays done until you undo it."))
        return job_url(job_id)

    return _once(request, job_id, act)


@require_POST
@require(Right.ACT)
def resume(request: HttpRequest, job_id: str) -> HttpResponse:
    """Let a job go on that was canceled or has failed."""

    def act() -> str:
        _acts(request).resume_bulk(job_id)
        toasts.done(request, _("It goes on where it was."))
        return job_url(job_id)

    return _once(request, job_id, act)


@require_POST
@require(Right.ACT)
def undo(request: HttpRequest, job_id: str) -> HttpResponse:
    """Begin to undo all that a job did."""

    def act() -> str:
        undoing = _acts(request).undo(job_id).job
        return job_url(job_id if undoing is None else undoing.id)

    return _once(request, job_id, act)


def _once(request: HttpRequest, job_id: str, act: Callable[[], str]) -> HttpResponse:
    """Do an act on a job once; whatever was refused is said on the job's own page."""
    job_id = job_id[:_MAX_ID]
    here = job_url(job_id)
    try:
        with once.once(request, f"job:{job_id}") as sending:
            visibility.steerable(request, job_id)
            sending.answer = act()
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, here)
    except once.FormRefused:
        return act_view.refuse(request, act_view.stale_form(), here)
    except (QueueError, StoreError) as error:
        return act_view.refuse(request, explain(error), here)
    return leave(sending.answer)
