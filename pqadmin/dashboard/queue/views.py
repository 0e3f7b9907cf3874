"""The page of one queue: both ends, the mix, and its items by state, from wherever the address says."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.history.views import last_hour
from pqadmin.dashboard.items.list import item_list
from pqadmin.dashboard.items.queue_page_data import see
from pqadmin.dashboard.jobs.words import jobs_here
from pqadmin.dashboard.overview import favorites
from pqadmin.dashboard.queue.verdict_steps import steps
from pqadmin.dashboard.targets.views import standing
from pqadmin.display.addresses import queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import show
from pqadmin.live.consumers_panel import panel
from pqadmin.live.words import flag_words, trend_words
from pqadmin.pages import form_idempotency
from pqadmin.pages.action_view import hidden_fields
from pqadmin.pages.push_form import PushForm
from pqadmin.pages.queue_context import about, mix
from pqadmin.store import get_store
from queues import QueueStatus, TrashEntry
from queues.errors import QueueError, QueueNotFound


@require_safe
@require(Right.READ)
def queue(request: HttpRequest, name: str) -> HttpResponse:
    """Show a queue; a fragment's request gets the list of items alone."""
    try:
        return _queue(request, name)
    except QueueNotFound:
        if name == "new":
            return redirect("dashboard:new-queue")
        raise


def _queue(request: HttpRequest, name: str) -> HttpResponse:
    seen = see(name, request.GET)
    status = seen.status
    listing = about(request, status, seen=seen, row=seen.row, now=seen.now, **item_list(request, seen))
    if request.headers.get("HX-Target") == "section#items":
        return render(request, "dashboard/_items.html", listing)
    context = {
        **listing,
        "starred": status.id in favorites.of(request.user).stars,
        "flags": flag_words(seen.row),
        "trend": trend_words(seen.row),
        "steps": steps(seen.row, seen.now, seen.failed),
        "consumers": panel(status),
        "mix": [] if status.kind == "fifo" else mix(status.bands),
        "taken": _taken(request, status),
        "here": jobs_here(request, status.id),
        "last_hour": last_hour(status, seen.row, seen.now),
        "hidden": hidden_fields(request, "push", status),
        "push_form": PushForm(status=status, rows=5, auto_id="push-%s"),
        "resume_fields": hidden_fields(request, "resume", status),
        **standing(status, get_store().targets.rules()),
    }
    return render(request, "dashboard/queue.html", context)


@require_safe
@require(Right.READ)
def queue_jobs(request: HttpRequest, name: str) -> HttpResponse:
    """Show a queue's running bulk jobs, for its page that is open; lead any other reader to that page."""
    if "HX-Request" not in request.headers:
        return redirect(queue_url(name))
    queue = get_store().queue(name)
    context = {"url": queue_url(queue.name), "here": jobs_here(request, queue.id)}
    return render(request, "dashboard/_queue_jobs.html", context)


def _taken(request: HttpRequest, status: QueueStatus) -> dict[str, Any] | None:
    """Return the item that the person has just taken, as long as it is not back."""
    trash_id = request.GET.get("taken", "")[:100]
    if not trash_id:
        return None
    try:
        entry: TrashEntry = get_store().trash.get(trash_id)
    except QueueError:
        return None
    if entry.item is None or entry.restored or entry.queue_id != status.id:
        return None
    number = form_idempotency.number(request, f"put-back:{trash_id}")
    shown = show(entry.item.raw, codec=entry.item.codec, rules=rules_of(status.redact))
    return {"entry": entry, "item": entry.item, "shown": shown, "form_number": number}
