"""The trash: what acts removed and what can still be brought back."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard import format as write
from pqadmin.dashboard import once, toasts
from pqadmin.dashboard.addresses import item_url, queue_url
from pqadmin.dashboard.refusals import explain
from pqadmin.dashboard.views import frame
from pqadmin.server.store import get_store
from queues import TrashPage
from queues.errors import BadCursor, QueueError, QueueNotFound, StoreError
from queues.names import display_name

PAGE = 50


@require_safe
@require(Right.READ)
def trash(request: HttpRequest) -> HttpResponse:
    """Show what can be restored, newest first."""
    after, wrong = request.GET.get("after", "")[:300] or None, ""
    page: TrashPage
    try:
        page = get_store().trash.entries(limit=PAGE, after=after)
    except BadCursor as error:
        after, wrong = None, str(error)
        page = get_store().trash.entries(limit=PAGE)
    context = {
        "section": "trash",
        "entries": [
            (entry, queue_url(entry.queue), once.number(request, f"restore:{entry.id}")) for entry in page.entries
        ],
        "wrong": wrong,
        "in_middle": after is not None,
        "next_url": "" if page.cursor is None else "?" + urlencode({"after": page.cursor}),
        "now": datetime.now(UTC),
    }
    return render(request, "dashboard/trash.html", context)


@require_POST
@require(Right.ACT)
def restore(request: HttpRequest, trash_id: str) -> HttpResponse:
    """Bring an entry back: an item to its old place, a queue with everything in it."""
    store, here = get_store(), reverse("dashboard:trash")
    acts = store.acts(request.user.get_username())
    try:
        with once.once(request, f"restore:{trash_id}") as sending:
            entry = store.trash.get(trash_id)
            if entry.what == "queue":
                queue = acts.restore_queue(trash_id)
                sending.answer = queue_url(queue.name)
                toasts.done(request, _("%(queue)s is back with all its items.") % {"queue": display_name(queue.name)})
                return frame.leave(sending.answer)
            if entry.what == "items":
                count = acts.put_back_items(trash_id)
                sending.answer = here
                toasts.done(request, _("Put %(n)s items back in their old places.") % {"n": write.number(count)})
                return frame.leave(here)
            item = acts.put_back(trash_id)
            sending.answer = here
    except once.AlreadySent as sent:
        return frame.replayed(request, sent, here)
    except once.FormRefused:
        return frame.refuse(request, frame.stale_form(), here)
    except (QueueError, StoreError) as error:
        return frame.refuse(request, explain(error), here)
    if not _holds(entry.queue, item.id):  # renamed since: the item went to the queue, not to the name
        toasts.done(request, _("Put back in its old place."))
        return frame.leave(reverse("dashboard:overview"))
    toasts.done(request, _("Put back in its old place."), label=_("Look at it"), link=item_url(entry.queue, item.id))
    return frame.leave(queue_url(entry.queue))


def _holds(name: str, item_id: str) -> bool:
    """Say whether the queue of this name, not one that only had it, holds the item."""
    try:
        return get_store().queue(name).find(item_id) is not None
    except QueueNotFound:
        return False
