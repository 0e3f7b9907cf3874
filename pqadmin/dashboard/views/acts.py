"""Acts on items: pop, delete, put back. Each answers with a redirect, so that a reload sends nothing again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard import once, toasts
from pqadmin.dashboard.addresses import item_url, queue_url
from pqadmin.dashboard.forms import ReasonForm
from pqadmin.dashboard.looking import about, status_of
from pqadmin.dashboard.refusals import explain
from pqadmin.dashboard.values import show
from pqadmin.dashboard.views import frame
from pqadmin.dashboard.views.item import gone, look_at
from pqadmin.server.store import get_store
from queues import Item, Popped, QueueStatus
from queues.errors import HeadChanged, QueueError, QueueNotFound, StoreError


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@frame.seeing_queue
def pop(request: HttpRequest, name: str) -> HttpResponse:
    """Show the item at one end and, once that very item is confirmed, take it."""
    status = status_of(name)
    fifo = status.kind == "fifo"
    asked = request.POST.get("end") if request.method == "POST" else request.GET.get("end")
    end = "max" if asked == "max" and not fifo else "min"
    if request.method != "POST":
        return _confirm_pop(request, status, end)
    form = ReasonForm(request.POST)
    form.is_valid()
    reason, expect = form.cleaned_data.get("reason", ""), form.cleaned_data.get("expect", "")
    try:
        with once.once(request, f"pop:{status.id}") as sending:
            popped = (
                get_store().acts(request.user.get_username()).pop(name, end=end, reason=reason, expect=expect or "-")
            )
            if popped is None:
                raise HeadChanged(_("The queue has nothing ready any more: nothing was taken."), None)
            sending.answer = f"{queue_url(name)}?{urlencode({'taken': popped.trash_id})}"
    except once.AlreadySent as sent:
        return frame.replayed(request, sent, queue_url(name))
    except once.FormRefused:
        return _confirm_pop(request, status, end, refusal=frame.stale_form(), reason=reason)
    except (QueueError, StoreError) as error:
        if isinstance(error, QueueNotFound):
            raise
        return _confirm_pop(request, status_of(name), end, refusal=explain(error), reason=reason)
    return frame.leave(sending.answer)


def _confirm_pop(request: HttpRequest, status: QueueStatus, end: str, **more: Any) -> HttpResponse:
    queue = get_store().queue(status.name)
    page = queue.items(end=end, limit=1)
    item = page.items[0] if page.items else None
    context = about(
        request,
        status,
        end=end,
        item=item,
        shown=None if item is None else show(item.value),
        form_number=once.number(request, f"pop:{status.id}"),
        **more,
    )
    template = "dashboard/_pop.html" if request.headers.get("HX-Target") == "div#act" else "dashboard/pop.html"
    refusal = more.get("refusal")
    if refusal is not None:
        return frame.answer(request, "dashboard/pop.html", context, refusal=refusal)
    return render(request, template, context)


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@frame.seeing_queue
def delete_item(request: HttpRequest, name: str, item_id: str) -> HttpResponse:
    """Show one item and, once it is confirmed, take it into the trash wherever it stands."""
    queue_id = frame.made_for(request, "delete-item")
    status, item = look_at(name, item_id)
    form = ReasonForm(request.POST) if request.method == "POST" else None
    if form is None:
        return gone(request, status, item_id) if item is None else _confirm_delete(request, status, item, form)
    form.is_valid()
    popped: list[Popped] = []

    def act() -> str:
        reason = form.cleaned_data.get("reason", "")
        acts = get_store().acts(request.user.get_username())
        popped.append(acts.delete_item(name, item_id, reason=reason, expect_id=queue_id))
        return queue_url(name)

    refused = frame.act_once(request, "delete-item", status, queue_id, act)
    if refused is not None:
        if item is None:
            return frame.refuse(request, refused, queue_url(name))
        return _confirm_delete(request, status, item, form, refusal=refused)
    trash_id = popped[0].trash_id
    toasts.done(
        request,
        _("Deleted the item. It is in the trash."),
        label=_("Undo"),
        action=f"{queue_url(name)}put-back/",
        fields={"trash_id": trash_id, once.FIELD: once.number(request, f"put-back:{trash_id}")},
    )
    return frame.leave(queue_url(name))


def _confirm_delete(
    request: HttpRequest, status: QueueStatus, item: Item, form: ReasonForm | None, **more: Any
) -> HttpResponse:
    context = about(
        request,
        status,
        item=item,
        item_url=item_url(status.name, item.id),
        shown=show(item.value),
        form=form,
        hidden=frame.form_fields(request, "delete-item", status),
        **more,
    )
    if "refusal" in more:
        return frame.answer(request, "dashboard/delete_item.html", context, refusal=more["refusal"])
    return render(request, "dashboard/delete_item.html", context)


@require_POST
@require(Right.ACT)
@frame.seeing_queue
def put_back(request: HttpRequest, name: str) -> HttpResponse:
    """Put a taken item back under its same key."""
    trash_id = request.POST.get("trash_id", "")[:100]
    try:
        with once.once(request, f"put-back:{trash_id}") as sending:
            item = get_store().acts(request.user.get_username()).put_back(trash_id, queue_name=name)
            sending.answer = queue_url(name)
    except once.FormRefused:
        return frame.refuse(request, frame.stale_form(), queue_url(name))
    except (QueueError, StoreError) as error:
        return frame.refuse(request, explain(error), queue_url(name))
    toasts.done(
        request,
        _("Put back in its old place."),
        label=_("Look at it"),
        link=item_url(name, item.id),
    )
    return frame.leave(queue_url(name))
