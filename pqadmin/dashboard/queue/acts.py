"""Acts on a whole queue: create, pause, resume, rename, delete."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.jobs.on_queue import jobs_here
from pqadmin.dashboard.queue.forms import CreateForm, DeleteForm, PauseForm, RenameForm
from pqadmin.display import format as write
from pqadmin.display.addresses import leave, queue_url
from pqadmin.pages import act_view, once, toasts, visibility
from pqadmin.pages.queue_context import about, status_of
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.store import get_store, store_now
from queues import Actions, QueueStatus
from queues.errors import NotForAttached, QueueError, StoreError, display_name

#: A busy queue may change by this share of its depth between the look and the confirmation, and by this many items.
_TOLERATED_SHARE, _TOLERATED = 10, 10


def _acts(request: HttpRequest) -> Actions:
    return get_store().actions(request.user.get_username())


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
def create(request: HttpRequest) -> HttpResponse:
    """Create a queue."""
    form = CreateForm(request.POST) if request.method == "POST" else None
    context = {
        "section": "queues",
        "form": form,
        "suggested": request.GET.get("name", "")[:200],
        "then_file": "file" in (request.GET.get("then"), request.POST.get("then")),
        "form_number": once.number(request, "create"),
    }
    if form is None:
        return render(request, "dashboard/new_queue.html", context)
    if not form.is_valid():
        return act_view.answer(request, "dashboard/new_queue.html", context, refusal=act_view.invalid(form))
    data = form.cleaned_data
    try:
        visibility.new_name(request, data["name"])
        with once.once(request, "create") as sending:
            queue = _acts(request).create_queue(
                data["name"],
                kind=data["kind"],
                priority_type=data["priority_type"] or "int",
                bands=form.parsed_edges,
                codec=data["codec"] or "bytes",
            )
            sending.answer = queue_url(queue.name) + ("push/many/" if request.POST.get("then") == "file" else "")
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, reverse("dashboard:overview"))
    except once.FormRefused:
        return act_view.answer(request, "dashboard/new_queue.html", context, refusal=act_view.stale_form())
    except (QueueError, StoreError) as error:
        refusal = explain(error)
        # The only priorities of this form are the edges of its bands.
        act_view.blame(form, refusal if refusal.field != "priority" else _at(refusal, "edges"))
        return act_view.answer(request, "dashboard/new_queue.html", context, refusal=refusal)
    toasts.done(request, _("%(queue)s is ready for its first item.") % {"queue": display_name(queue.name)})
    return leave(sending.answer)


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Stop taking from a queue, with a reason and, if wanted, until a moment."""
    queue_id = act_view.made_for(request, "pause")
    status = status_of(name)
    if status.attached and request.method != "POST":
        return act_view.not_offered(request, status, "pause", _("it cannot be paused, as others would go on taking."))
    now = store_now()
    form = PauseForm(request.POST, now=now) if request.method == "POST" else None
    context = _about(request, "pause", status, form=form, now=now)
    if form is None:
        return _show(request, "pause", context)
    if not form.is_valid():
        return act_view.answer(request, "dashboard/pause.html", context, refusal=act_view.invalid(form))

    def act() -> str:
        _acts(request).pause(name, reason=form.cleaned_data["reason"], until=form.until, expect_id=queue_id)
        return queue_url(name)

    refused = act_view.act_once(request, "pause", status, queue_id, act)
    if refused is not None:
        return act_view.answer(request, "dashboard/pause.html", context, refusal=refused)
    until = "" if form.until is None else " " + _("It resumes %(at)s.") % {"at": write.moment_with_utc(form.until)}
    toasts.done(
        request,
        _("Paused: nothing is taken, pushes go on.") + until,
        label=_("Resume"),
        action=f"{queue_url(name)}resume/",
        fields=act_view.form_fields(request, "resume", status),
    )
    return leave(queue_url(name))


@require_POST
@require(Right.ACT)
@act_view.seeing_queue
def resume(request: HttpRequest, name: str) -> HttpResponse:
    """Let items be taken again."""
    queue_id = act_view.made_for(request, "resume")

    def act() -> str:
        _acts(request).resume(name, expect_id=queue_id)
        return queue_url(name)

    status = status_of(name)
    if status.attached:
        return act_view.refuse(request, explain(NotForAttached(name, _("it is never paused."))), queue_url(name))
    refused = act_view.act_once(request, "resume", status, queue_id, act)
    if refused is not None:
        return act_view.refuse(request, refused, queue_url(name))
    toasts.done(request, _("Resumed: items can be taken again."))
    return leave(queue_url(name))


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def rename(request: HttpRequest, name: str) -> HttpResponse:
    """Give a queue another name; its items, its audit and its workers' handles stay."""
    queue_id = act_view.made_for(request, "rename")
    status = status_of(name)
    form = RenameForm(request.POST) if request.method == "POST" else None
    context = _about(request, "rename", status, form=form)
    if form is None:
        return _show(request, "rename", context)
    if not form.is_valid():
        return act_view.answer(request, "dashboard/rename.html", context, refusal=act_view.invalid(form))
    new = form.cleaned_data["name"]

    def act() -> str:
        visibility.new_name(request, new)
        return queue_url(_acts(request).rename_queue(name, new, expect_id=queue_id).name)

    refused = act_view.act_once(request, "rename", status, queue_id, act)
    if refused is not None:
        act_view.blame(form, refused)
        return act_view.answer(request, "dashboard/rename.html", context, refusal=refused)
    toasts.done(
        request,
        _("Renamed from %(old)s.") % {"old": display_name(name)},
        label=_("Name it back"),
        action=f"{queue_url(new)}rename/",
        fields={"name": status.name, **act_view.form_fields(request, "rename", status)},
    )
    return leave(queue_url(new))


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Put a queue into the trash after its name was typed."""
    queue_id = act_view.made_for(request, "delete")
    status = status_of(name)
    if status.attached and request.method != "POST":
        return act_view.not_offered(request, status, "delete", _("detach it instead, its items stay where they are."))
    form = DeleteForm(request.POST) if request.method == "POST" else None
    here = jobs_here(request, status.id)
    context = _about(request, "delete", status, form=form, tolerance=_tolerance(status), here=here)
    if form is None:
        return _show(request, "delete", context)
    if not form.is_valid():
        return act_view.answer(request, "dashboard/delete.html", context, refusal=act_view.invalid(form))
    data = form.cleaned_data
    trash_id = ""

    def act() -> str:
        nonlocal trash_id
        trash_id = _acts(request).delete_queue(
            name,
            confirm=data["confirm"],
            expect_depth=data["depth"],
            tolerance=max(_TOLERATED, data["depth"] // _TOLERATED_SHARE),
            expect_id=queue_id,
            reason=data["reason"],
        )
        return reverse("dashboard:trash")  # whoever sends it twice finds the way back there

    refused = act_view.act_once(request, "delete", status, queue_id, act)
    if refused is not None:
        act_view.blame(form, refused)
        status = status_of(name)  # the number to confirm is the one now
        context = _about(request, "delete", status, form=form, tolerance=_tolerance(status), here=here)
        return act_view.answer(request, "dashboard/delete.html", context, refusal=refused)
    toasts.done(
        request,
        _("Deleted %(queue)s. It is in the trash with all its items.") % {"queue": display_name(name)},
        label=_("Undo"),
        action=reverse("dashboard:restore", args=[trash_id]),
        fields={once.FIELD: once.number(request, f"restore:{trash_id}")},
    )
    return leave(reverse("dashboard:overview"))


def _tolerance(status: QueueStatus) -> int:
    return max(_TOLERATED, status.totals.ready // _TOLERATED_SHARE)


def _about(request: HttpRequest, act: str, status: QueueStatus, **more: Any) -> dict[str, Any]:
    return about(request, status, hidden=act_view.form_fields(request, act, status), **more)


def _show(request: HttpRequest, act: str, context: dict[str, Any]) -> HttpResponse:
    fragment = request.headers.get("HX-Target") == "div#act"
    return render(request, f"dashboard/_{act}.html" if fragment else f"dashboard/{act}.html", context)


def _at(refusal: Refusal, field: str) -> Refusal:
    return Refusal(title=refusal.title, text=refusal.text, advice=refusal.advice, status=refusal.status, field=field)
