"""Purge: all that waits in a queue goes to the trash, at once and undone as fast, whatever its number.

An attached queue is purged chunk by chunk, as others push among its items: see `views.attached`.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.jobs.on_queue import jobs_here
from pqadmin.dashboard.queue import attached
from pqadmin.dashboard.queue.forms import DeleteForm
from pqadmin.display import format as write
from pqadmin.display.addresses import leave, queue_url
from pqadmin.pages import act_view, toasts
from pqadmin.pages.queue_context import about, status_of
from pqadmin.store import get_store
from queues import Purged, QueueStatus

#: A busy queue may change by this share of its depth between the look and the confirmation, and by this many items.
_TOLERATED_SHARE, _TOLERATED = 10, 10


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def purge(request: HttpRequest, name: str) -> HttpResponse:
    """Take every ready and delayed item into the trash after the queue's name was typed."""
    queue_id = act_view.made_for(request, "purge")
    status = status_of(name)
    if status.attached:
        return attached.purge(request, name)
    form = DeleteForm(request.POST) if request.method == "POST" else None
    if form is None:
        fragment = request.headers.get("HX-Target") == "div#act"
        template = "dashboard/_purge_own.html" if fragment else "dashboard/purge_own.html"
        return render(request, template, _about(request, status, form))
    if not form.is_valid():
        return _again(request, status, form, act_view.invalid(form))
    data = form.cleaned_data
    done: list[Purged] = []

    def act() -> str:
        done.append(
            get_store()
            .actions(request.user.get_username())
            .purge(
                name,
                confirm=data["confirm"],
                expect_depth=data["depth"],
                tolerance=_tolerance(data["depth"]),
                expect_id=queue_id,
                reason=data["reason"],
            )
        )
        return reverse("dashboard:trash")  # whoever sends it twice finds the way back there

    refused = act_view.act_once(request, "purge", status, queue_id, act)
    if refused is not None:
        act_view.blame(form, refused)
        return _again(request, status_of(name), form, refused)  # the number to confirm is the one now
    count = done[0].count
    text = ngettext("Purged %(n)s item. It is in the trash.", "Purged %(n)s items. They are in the trash.", count)
    toasts.undoable(request, text % {"n": write.number(count)}, *done[0].trash_ids)
    return leave(queue_url(name))


def _again(request: HttpRequest, status: QueueStatus, form: DeleteForm, refusal: Any) -> HttpResponse:
    return act_view.answer(request, "dashboard/purge_own.html", _about(request, status, form), refusal=refusal)


def _about(request: HttpRequest, status: QueueStatus, form: DeleteForm | None) -> dict[str, Any]:
    depth = status.totals.ready + status.totals.delayed
    hidden = act_view.form_fields(request, "purge", status)
    here = jobs_here(request, status.id)
    return about(request, status, form=form, hidden=hidden, depth=depth, tolerance=_tolerance(depth), here=here)


def _tolerance(depth: int) -> int:
    return max(_TOLERATED, depth // _TOLERATED_SHARE)
