"""The age of a list that a page shows: which of its rows left or changed since, and how many items came.

A page asks while its queue changes, so an answer is small: one code for each row.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.query import TRASH
from pqadmin.dashboard.items.query import asked as asked_for
from pqadmin.dashboard.items.queue_page_data import PAGE, list_items
from pqadmin.display.items import row_mark
from pqadmin.display.redaction import Redaction, rules_of
from pqadmin.store import get_store
from queues import Item, ReadTransaction
from queues.admin import time_of_ms

#: Rows that are asked about at most, and characters of their ids: those of attached queues are whole keys.
_MOST, _MAX_TEXT = 200, 8_000


@never_cache
@require_safe
@require(Right.READ)
def age(request: HttpRequest, name: str) -> JsonResponse:
    """Tell for each shown item its mark, or where it is now; and how many new ones the same address would show."""
    shown = request.GET.get("shown", "")[:_MAX_TEXT].split()[:_MOST]
    state, change, rules, window, there = _look(request, name, shown)
    return JsonResponse(
        {
            "change": str(change),
            "rows": [_code(there.get(item_id), state, rules) for item_id in shown],
            "new": _arrived(window, set(shown), _moment(request), whole="whole" in request.GET),
            "most": PAGE,
        }
    )


def _look(
    request: HttpRequest, name: str, shown: Sequence[str]
) -> tuple[str, int, Redaction, Sequence[Item], Mapping[str, Item]]:
    """Read the list anew at one version, and those of its old items that are not in it."""
    store = get_store()

    def look(tr: ReadTransaction) -> tuple[str, int, Redaction, Sequence[Item], Mapping[str, Item]]:
        queue = store.queue(name, tr=tr)
        asked, status = asked_for(request.GET, queue), queue.status(tr=tr, preview=1)
        # A search may take long: of its rows is only told whether they are still there.
        known = not asked.searching and asked.state != TRASH
        window = list_items(queue, asked, tr=tr).items if known else ()
        there = {item.id: item for item in window}
        absent = [item_id for item_id in shown if item_id not in there]
        if absent:
            actor = request.user.get_username()
            there |= {each.item.id: each.item for each in store.actions(actor).pick(name, absent, tr=tr).picked}
        return asked.state, status.change, rules_of(status.redact), window, there

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
    return item.died_at or item.leased_at or item.pushed_at or time_of_ms(0)
