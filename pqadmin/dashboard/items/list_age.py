"""The age of a list that a page shows: which of its rows left or changed since, and how many items came.

A page asks while its queue changes, so an answer is small: one code for each row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.list import trash_depth
from pqadmin.dashboard.items.query import FINISHED, TRASH, Asked
from pqadmin.dashboard.items.query import asked as asked_for
from pqadmin.dashboard.items.queue_page_data import PAGE, list_items
from pqadmin.display import format as write
from pqadmin.display.items import row_mark
from pqadmin.display.redaction import Redaction, rules_of
from pqadmin.display.values import what_searchers_see
from pqadmin.pages.queue_context import PREVIEW_BYTES
from pqadmin.store import get_store
from queues import Item, Queue, QueueStatus, ReadTransaction
from queues.admin import time_of_ms
from queues.errors import BadCursor

#: Items that a look for the new ones of a search meets at most: pages ask every two seconds.
_SCAN = 1_000
#: Rows that are asked about at most, and characters of their ids: those of attached queues are whole keys.
_MOST, _MAX_TEXT = 200, 8_000


@never_cache
@require_safe
@require(Right.READ)
def age(request: HttpRequest, name: str) -> JsonResponse:
    """Tell for each shown item its mark, or where it is now; and how many new ones the same address would show."""
    shown = request.GET.get("shown", "")[:_MAX_TEXT].split()[:_MOST]
    state, status, there, new, counted = _look(request, name, shown)
    rules = rules_of(status.redact)
    return JsonResponse(
        {
            "change": str(status.change),
            "dead": str(status.totals.dead),
            "tabs": _tabs(status) if "tabs" in request.GET else {},
            "rows": [_code(there.get(item_id), state, rules) for item_id in shown],
            "new": new,
            "counted": counted,
            "most": PAGE,
        }
    )


def _tabs(status: QueueStatus) -> dict[str, str]:
    """Return the counts of tabs that no frame has; pages ask for them seldom, as the trash is looked through."""
    return {FINISHED: write.number(status.finished), TRASH: trash_depth(status)}


def _look(
    request: HttpRequest, name: str, shown: Sequence[str]
) -> tuple[str, QueueStatus, Mapping[str, Item], int, bool]:
    """Read the list anew at one version, and those of its old items that are not in it."""
    store, since, whole = get_store(), _moment(request), "whole" in request.GET

    def look(tr: ReadTransaction) -> tuple[str, QueueStatus, Mapping[str, Item], int, bool]:
        queue = store.queue(name, tr=tr)
        asked, status = asked_for(request.GET, queue), queue.status(tr=tr, preview=1)
        window: Sequence[Item] = ()
        if asked.searching:
            new, counted = _matching(queue, asked, set(shown), since, whole=whole, tr=tr)
        else:
            window = list_items(queue, asked, tr=tr).items
            new, counted = _arrived(window, set(shown), since, whole=whole), True
        there = {item.id: item for item in window}
        absent = [item_id for item_id in shown if item_id not in there]
        if absent:
            actor = request.user.get_username()
            there |= {each.item.id: each.item for each in store.actions(actor).pick(name, absent, tr=tr).picked}
        return asked.state, status, there, new, counted

    return store.read(look)


def _code(item: Item | None, state: str, rules: Redaction) -> str:
    """Return the mark of an item that is still there; “-” and its state for one that left."""
    if item is None:
        return "-"
    return row_mark(item, rules) if item.state == state else f"-{item.state}"


def _moment(request: HttpRequest) -> datetime:
    """Return when the list was read."""
    text = request.GET.get("at", "")
    return time_of_ms(int(text) if text.isdecimal() and len(text) < 15 else 0)


def _matching(
    queue: Queue, asked: Asked, shown: set[str], since: datetime, *, whole: bool, tr: ReadTransaction
) -> tuple[int, bool]:
    """Count the new items of a search as far as a short look goes, and say whether these are all.

    The search is done anew where that is short. Otherwise ready items are looked at that are so since the list was
    read: the index of ages leads to them, at any depth.
    """
    hidden = what_searchers_see(queue.config)
    search = partial(queue.search, end=asked.end, limit=PAGE, scan=_SCAN, preview=PREVIEW_BYTES, shown=hidden, tr=tr)
    try:
        found = search(asked.query, after=asked.after)
    except BadCursor:  # the list shows its beginning then
        found = search(asked.query)
    if found.ended or len(found.items) == PAGE:
        return _arrived(found.items, shown, since, whole=whole), True
    if asked.state != "ready" or queue.attached:
        return _arrived(found.items, shown, since, whole=False), False
    since = max(since + timedelta(milliseconds=1), asked.query.since or since)
    found = search(replace(asked.query, since=since))
    return sum(item.id not in shown for item in found.items), found.ended or len(found.items) == PAGE


def _arrived(window: Sequence[Item], shown: set[str], since: datetime, *, whole: bool) -> int:
    """Count new items: before an old one, entered since, or any where the list was `whole`.

    The rest only moved up from the next page.
    """
    last = max((place for place, item in enumerate(window) if item.id in shown), default=-1)
    return sum(
        item.id not in shown and (place < last or whole or _entered(item) > since) for place, item in enumerate(window)
    )


def _entered(item: Item) -> datetime:
    """Return since when an item has its state, as far as known."""
    return item.died_at or item.leased_at or item.since or time_of_ms(0)
