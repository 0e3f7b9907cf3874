"""Acts at the ends: pop, and put back what was popped. Each answers with a redirect: a reload sends nothing again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.act import leasing_fields
from pqadmin.dashboard.items.act_forms import ReasonForm
from pqadmin.dashboard.items.act_words import holds
from pqadmin.display.addresses import item_url, leave, queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import show
from pqadmin.pages import act_view, once, toasts, visibility
from pqadmin.pages.queue_context import about, status_of
from pqadmin.pages.refusals import explain
from pqadmin.store import get_store
from queues import QueueStatus
from queues.errors import HeadChanged, QueueError, QueueNotFound, StoreError, TrashNotFound, display_name


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
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
                get_store().actions(request.user.get_username()).pop(name, end=end, reason=reason, expect=expect or "-")
            )
            if popped is None:
                raise HeadChanged(_("The queue has nothing ready any more: nothing was taken."), None)
            sending.answer = f"{queue_url(name)}?{urlencode({'taken': popped.trash_id})}"
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, queue_url(name))
    except once.FormRefused:
        return _confirm_pop(request, status, end, refusal=act_view.stale_form(), reason=reason)
    except (QueueError, StoreError) as error:
        if isinstance(error, QueueNotFound):
            raise
        return _confirm_pop(request, status_of(name), end, refusal=explain(error), reason=reason)
    return leave(sending.answer)


def _confirm_pop(request: HttpRequest, status: QueueStatus, end: str, **more: Any) -> HttpResponse:
    queue = get_store().queue(status.name)
    page = queue.items(end=end, limit=1)
    item = page.items[0] if page.items else None
    rules = rules_of(status.redact)
    context = about(
        request,
        status,
        end=end,
        item=item,
        shown=None if item is None else show(item.raw, codec=item.codec, rules=rules),
        form_number=once.number(request, f"pop:{status.id}"),
        leasing=None if item is None or status.attached else leasing_fields(request, status, item.id, end),
        holds=holds(),
        **more,
    )
    template = "dashboard/_pop.html" if request.headers.get("HX-Target") == "div#act" else "dashboard/pop.html"
    refusal = more.get("refusal")
    if refusal is not None:
        return act_view.answer(request, "dashboard/pop.html", context, refusal=refusal)
    return render(request, template, context)


@require_POST
@require(Right.ACT)
@act_view.seeing_queue
def put_back(request: HttpRequest, name: str) -> HttpResponse:
    """Put a taken item back under its same key."""
    trash_id = request.POST.get("trash_id", "")[:100]
    try:
        with once.once(request, f"put-back:{trash_id}") as sending:
            entry = visibility.undoable(request, trash_id)
            if entry.queue_id != get_store().queue(name).id:
                text = _("This item was taken from %(queue)s: put it back there.")
                raise TrashNotFound(text % {"queue": display_name(entry.queue)})
            undone = get_store().actions(request.user.get_username()).undo(trash_id)
            sending.answer = queue_url(name)
    except once.FormRefused:
        return act_view.refuse(request, act_view.stale_form(), queue_url(name))
    except (QueueError, StoreError) as error:
        return act_view.refuse(request, explain(error), queue_url(name))
    toasts.done(
        request,
        _("Put back in its old place."),
        label=_("Look at it"),
        link=queue_url(undone.queue) if undone.item is None else item_url(undone.queue, undone.item.id),
    )
    return leave(queue_url(name))
