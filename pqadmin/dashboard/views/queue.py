"""The page of one queue: both ends, the mix, and items from wherever the address says."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard import once
from pqadmin.dashboard.looking import Place, Seen, about, mix, see, status_of
from pqadmin.dashboard.values import show
from pqadmin.dashboard.views import frame
from pqadmin.dashboard.words import outlook_words, state_words
from pqadmin.server.store import get_store
from queues import QueueStatus, TrashEntry
from queues.errors import BadPriority, QueueError, QueueNotFound
from queues.priority import Priority, parse_priority

_ENDS = {"min": "min", "max": "max", "head": "min", "tail": "max"}


@require_safe
@require(Right.READ)
def queue(request: HttpRequest, name: str) -> HttpResponse:
    """Show a queue; a fragment's request gets the list of items alone."""
    try:
        return _queue(request, name)
    except QueueNotFound as missing:
        if name == "new":
            return redirect("dashboard:new-queue")
        return frame.queue_missing(request, missing)


def _queue(request: HttpRequest, name: str) -> HttpResponse:
    end = _ENDS.get(request.GET.get("end", ""), "min")
    after = request.GET.get("after", "")[:4_000] or None
    typed = request.GET.get("from", "")[:2_000]
    start, wrong = _start(name, typed) if typed else (None, "")
    seen = see(name, Place(end=end, after=after, priority=start))
    status = seen.status
    fifo = status.kind == "fifo"
    context = about(
        request,
        status,
        seen=seen,
        row=seen.row,
        now=seen.now,
        end=end,
        typed_from=typed,
        wrong_from=wrong,
        in_middle=bool(after) or bool(typed),
        next_url=_more(seen, end),
        words=state_words(seen.row, seen.now),
        outlook=outlook_words(seen.row),
        mix=[] if fifo else mix(status.bands),
        taken=_taken(request, status),
        form_number=once.number(request, f"push:{status.id}"),
        push_form=None,
        resume_fields=frame.form_fields(request, "resume", status),
    )
    fragment = request.headers.get("HX-Target") == "section#items"
    return render(request, "dashboard/_items.html" if fragment else "dashboard/queue.html", context)


def _start(name: str, typed: str) -> tuple[Priority | None, str]:
    """Read the priority to begin at, by the queue's type; else say what is wrong with it."""
    status = status_of(name)
    if status.kind == "fifo":
        return None, _("A FIFO queue has no priorities; the list begins at its end.")
    try:
        return parse_priority(typed, status.priority_type), ""
    except BadPriority as error:
        return None, str(error)


def _more(seen: Seen, end: str) -> str:
    if seen.page.cursor is None:
        return ""
    return "?" + urlencode({"end": end, "after": seen.page.cursor}) + "#items"


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
    number = once.number(request, f"put-back:{trash_id}")
    return {"entry": entry, "item": entry.item, "shown": show(entry.item.value), "form_number": number}
