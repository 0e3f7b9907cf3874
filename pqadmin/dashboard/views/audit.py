"""The audit: who did what, when, to which queue, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard import format as write
from pqadmin.dashboard.addresses import item_url, queue_url
from pqadmin.dashboard.words import verb_words
from pqadmin.server.store import get_store
from queues import AuditEntry, AuditPage
from queues.errors import BadCursor, BadName, KeyTooLarge, QueueNotFound

PAGE = 50
#: Characters of a before or after that are shown.
_MAX_DETAIL = 200


@require_safe
@require(Right.READ)
def audit(request: HttpRequest) -> HttpResponse:
    """Show acts, newest first, of one queue or one person if asked."""
    queue = request.GET.get("queue", "")[:300].replace("\0", "").strip()
    actor = request.GET.get("actor", "")[:300].replace("\0", "").strip()
    after = request.GET.get("after", "")[:300] or None
    page, wrong = _entries(queue, actor, after)
    if wrong:
        after = None
    kept = {"queue": queue, "actor": actor}
    context = {
        "section": "audit",
        "lines": [_line(entry) for entry in page.entries],
        "queue": queue,
        "actor": actor,
        "wrong": wrong,
        "in_middle": after is not None,
        "first_url": "?" + urlencode({k: v for k, v in kept.items() if v}),
        "next_url": "" if page.cursor is None else "?" + urlencode({**kept, "after": page.cursor}),
    }
    return render(request, "dashboard/audit.html", context)


def _entries(queue: str, actor: str, after: str | None) -> tuple[AuditPage, str]:
    """Read a page; a cursor or name that can not be is said, and answered with what can."""
    try:
        return get_store().audit.entries(queue=queue or None, actor=actor or None, limit=PAGE, after=after), ""
    except BadCursor as error:
        page, wrong = _entries(queue, actor, None)
        return page, wrong or str(error)
    except (QueueNotFound, BadName, KeyTooLarge):  # no queue and nobody has a name that fits in no key
        return AuditPage(entries=(), cursor=None), str(QueueNotFound(queue)) if queue else ""


def _line(entry: AuditEntry) -> dict[str, Any]:
    has_item_page = entry.item is not None and entry.queue is not None and entry.verb in _STAYS
    return {
        "entry": entry,
        "verb": verb_words(entry.verb),
        "reason": write.visible(entry.reason),
        "actor": write.visible(entry.actor),
        "queue_url": queue_url(entry.queue) if entry.queue else "",
        "item_url": item_url(entry.queue or "", entry.item or "") if has_item_page else "",
        "details": _details(entry),
    }


#: Verbs after which the item is in the queue, so that its page is worth a link.
_STAYS = frozenset({"push", "enqueue", "put_back"})


def _details(entry: AuditEntry) -> str:
    before, after = _written(entry.before), _written(entry.after)
    if before and after:
        return _("%(before)s → %(after)s") % {"before": before, "after": after}
    return after or before


def _written(values: Mapping[str, Any] | None) -> str:
    if not values:
        return ""
    parts = (f"{key} {_plain(value)}" for key, value in values.items() if value not in (None, ""))
    return write.shorten(" · ".join(write.visible(part) for part in parts), _MAX_DETAIL)


def _plain(value: Any) -> str:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        return write.priority_short(value) if not isinstance(value, str) else write.shorten(value, 80)
    return write.shorten(json.dumps(value, ensure_ascii=False, default=str), 80)
