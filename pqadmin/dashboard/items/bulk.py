"""Acts on all that fits: what each would meet, counted without changing anything, and its beginning once confirmed."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items import uncovering
from pqadmin.dashboard.items.bulk_form import BulkForm
from pqadmin.dashboard.items.query import fields_of, read
from pqadmin.dashboard.jobs.on_queue import jobs_here
from pqadmin.dashboard.jobs.words import job_url, scope_words, state_word
from pqadmin.display import format as write
from pqadmin.display.addresses import leave, queue_url
from pqadmin.display.values.search_mask import what_searchers_see
from pqadmin.pages import act_view, visibility
from pqadmin.pages.queue_context import about, status_of
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.store import get_store, store_now
from queues import Query, QueueStatus
from queues.admin import BULK_ACTIONS, SURVEY_SCAN, Survey, survey_matches
from queues.errors import DepthChanged, NotForAttached, display_name

#: A busy queue may change by this share of its count between the look and the confirmation, and by this many items.
_TOLERATED_SHARE, _TOLERATED = 10, 10
#: Queues that are suggested as targets.
_TARGETS = 300


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def bulk(request: HttpRequest, name: str) -> HttpResponse:
    """Show what an act on all would meet and, once that is confirmed, begin it."""
    queue_id = act_view.made_for(request, "bulk")
    status = status_of(name)
    if status.attached:
        why = _("its items are moved and deleted by pages, or purged.")
        return act_view.answer(
            request, "dashboard/bulk.html", about(request, status), refusal=explain(NotForAttached(status.name, why))
        )
    query, wrong = read(request.GET, status)
    if wrong:  # it is not begun on other items than were meant
        refusal = Refusal(
            title=_("This cannot be looked for"), text=" ".join(dict.fromkeys(wrong.values())), advice="", status=422
        )
        return act_view.answer(request, "dashboard/bulk.html", about(request, status), refusal=refusal)
    act = request.GET.get("act", "")
    act = act if act in BULK_ACTIONS[query.state] else BULK_ACTIONS[query.state][0]
    if request.method != "POST":
        return render(request, "dashboard/bulk.html", _about(request, status, act, query, _count(name, query), None))
    form = BulkForm(request.POST, act=act, status=status, target=partial(visibility.target, request))
    if not form.is_valid():
        context = _about(request, status, act, query, _count(name, query), form)
        return act_view.answer(request, "dashboard/bulk.html", context, refusal=act_view.invalid(form))
    begun: list[str] = []

    def begin() -> str:
        data = form.cleaned_data
        tolerance = _tolerance(data["count"])
        _recheck(name, query, form, tolerance)
        reason = data["reason"]
        if act == "move":
            to = visibility.target(request, form.arguments["to"])
            reason = uncovering.asked_for(get_store().queue(name), to, data)
        job = (
            get_store()
            .actions(request.user.get_username())
            .begin_bulk(
                act,
                name,
                query=query,
                reason=reason,
                expect_id=queue_id,
                expect_depth=None if query.filters else data["count"],
                tolerance=tolerance,
                total=data["count"] if data["ended"] else None,
                concerned=data["count"] if data["ended"] else None,
                **form.arguments,
            )
        )
        begun.append(job.id)
        return job_url(job.id)

    refused = act_view.act_once(request, "bulk", status, queue_id, begin)
    if refused is not None:
        act_view.blame(form, refused)
        context = _about(request, status_of(name), act, query, _count(name, query), form)
        return act_view.answer(request, "dashboard/bulk.html", context, refusal=refused)
    return leave(job_url(begun[0]))


def _recheck(name: str, query: Query, form: BulkForm, tolerance: int) -> None:
    """Count again, as far as the page did that was confirmed; raise `DepthChanged` when that is another number."""
    if not query.filters:
        return  # the core compares the counters in the transaction that begins it
    seen, searched = form.cleaned_data["count"], form.cleaned_data["searched"] or 0
    now = _count(name, query, scan=SURVEY_SCAN if form.cleaned_data["ended"] else max(1, min(searched, SURVEY_SCAN)))
    if now.differs(seen, tolerance):
        raise DepthChanged(
            _("%(now)s items match now, not the %(seen)s you confirmed: nothing was begun.")
            % {"now": write.number(now.matched), "seen": write.number(seen)},
            now.matched,
        )


def _count(name: str, query: Query, *, scan: int = SURVEY_SCAN) -> Survey:
    queue = get_store().queue(name)
    return survey_matches(queue, query, scan=scan, shown=what_searchers_see(queue.config) if query.text else None)


def _tolerance(count: int) -> int:
    return max(_TOLERATED, count // _TOLERATED_SHARE)


def _about(
    request: HttpRequest, status: QueueStatus, act: str, query: Query, counted: Survey, form: BulkForm | None
) -> dict[str, Any]:
    kept, here = fields_of(query), f"{queue_url(status.name)}bulk/"
    return about(
        request,
        status,
        act=act,
        acts=[(each, f"{here}?{urlencode({'act': each, **kept})}") for each in BULK_ACTIONS[query.state]],
        action=f"{here}?{urlencode({'act': act, **kept})}",
        list_url=f"{queue_url(status.name)}?{urlencode(kept)}#items",
        state=state_word(query.state),
        state_code=query.state,
        scope=scope_words(query),
        counted=counted,
        here=jobs_here(request, status.id),
        tolerance=_tolerance(counted.matched),
        form=form,
        how=(form.data.get("how") if form is not None else "") or ("front" if status.kind == "fifo" else "set"),
        targets=[
            display_name(other)
            for other in (
                visibility.names(request, Right.ACT, but=status.name, limit=_TARGETS) if act == "move" else []
            )
        ],
        hidden=act_view.form_fields(request, "bulk", status),
        now=store_now(),
    )
