"""The page of one item: its value in the view that fits, and what is known about it."""

from __future__ import annotations

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard import foreign
from pqadmin.dashboard import format as write
from pqadmin.dashboard.looking import about
from pqadmin.dashboard.values import VIEWS, as_html, show
from pqadmin.dashboard.views import frame
from pqadmin.server.store import get_store
from queues import Item, QueueStatus, ReadTransaction


def look_at(name: str, item_id: str) -> tuple[QueueStatus, Item | None]:
    """Read an item and its queue at one version; raise `QueueNotFound`."""

    def look(tr: ReadTransaction) -> tuple[QueueStatus, Item | None]:
        queue = get_store().queue(name, tr=tr)
        return queue.status(tr=tr, preview=64), queue.find(item_id, tr=tr)

    with get_store().suggesting():
        return get_store().read(look)


@require_safe
@require(Right.READ)
@frame.seeing_queue
def item(request: HttpRequest, name: str, item_id: str) -> HttpResponse:
    """Show an item; one that is gone gets a page that says so."""
    status, found = look_at(name, item_id)
    if found is None:
        return gone(request, status, item_id)
    shown = show(found.value, wanted=request.GET.get("as", ""), everything="all" in request.GET)
    context = about(
        request,
        status,
        item=found,
        shown=shown,
        views=[(view, view == shown.view) for view in VIEWS if view in shown.fits],
        exact_priority=as_html(foreign.priority(found)),
        now=datetime.now(UTC),
    )
    return render(request, "dashboard/item.html", context)


@require_safe
@require(Right.READ)
@frame.seeing_queue
def download(request: HttpRequest, name: str, item_id: str) -> HttpResponse:
    """Hand out the raw value as a file that no browser runs or displays."""
    status, found = look_at(name, item_id)
    if found is None:
        return gone(request, status, item_id)
    response = HttpResponse(found.value, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{found.id[:100]}.bin"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def gone(request: HttpRequest, status: QueueStatus, item_id: str) -> HttpResponse:
    """Say that the item is not in the queue."""
    shown = write.shorten(write.visible(item_id), 60)
    return render(request, "dashboard/gone.html", about(request, status, item_id=shown), status=404)
