"""Search for items in all queues that the reader may see: by text, by a field, by an id; in bounded steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.items.query import MAX_CURSOR, read_text, too_long
from pqadmin.dashboard.jobs.words import scope_words
from pqadmin.display import format as write
from pqadmin.display import highlight, items
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.display.words import item_state_word
from pqadmin.live.board.rows import Row
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import visibility
from pqadmin.pages.item_search import Search
from pqadmin.store import store_now
from queues import Item, Query
from queues.admin import MAX_SEARCH_TEXT, STATES, name_pattern, parse_item_id
from queues.errors import display_name

#: Hits of one page, and seconds after which an answer goes out with a way on.
PAGE, SECONDS = 50, 0.4
_LIMITS = gettext_lazy("Text is looked for in values as stored: not inside of gzip or zlib, nor in what is redacted.")
#: Characters of a hit's line.
_WIDTH = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An item that was found, as the page shows it."""

    queue: str
    item: Item
    line: str

    @property
    def url(self) -> str:
        """The page of the item."""
        return item_url(self.queue, self.item.id)

    @property
    def queue_name(self) -> str:
        """The queue's name, with hidden characters visible."""
        return display_name(self.queue)

    @property
    def queue_url(self) -> str:
        """The page of the queue."""
        return queue_url(self.queue)

    @property
    def state(self) -> str:
        """The state of the item in words."""
        return item_state_word(self.item.state)


def hits(look: Search) -> list[Hit]:
    """Return what was found, as the page shows it."""
    text, found = look.query.text, []
    for queue, item in look.hits:
        rules = rules_of(queue.config.redact)
        line = highlight.hit(item, text, rules, width=_WIDTH) or items.preview(item, rules, _WIDTH)
        found.append(Hit(queue=queue.name, item=item, line=line))
    return found


@never_cache
@require_safe
@require(Right.READ)
def search(request: HttpRequest) -> HttpResponse:
    """Show the items of all queues that fit a text, a field or an id."""
    asked = {name: request.GET.get(name, "").replace("\0", "")[:most] for name, most in _LONGEST.items()}
    text, may = asked["q"].strip(), visibility.scope(request)
    if asked["state"] not in STATES:
        asked["state"] = ""
    context: dict[str, Any] = {"section": "search", "asked": asked, "states": _state_words(), "looked": bool(text)}
    if len(request.GET.get("q", "")) > MAX_SEARCH_TEXT:
        context |= {"wrong": too_long(), "looked": False}
    elif text:
        context |= _found(request, asked, read_query(text), may)
    return render(request, "dashboard/search.html", context)


#: Characters of what is read.
_LONGEST = {"q": MAX_SEARCH_TEXT, "queue": 300, "state": 10, "at": 300, "in": 10, "after": MAX_CURSOR}


def read_query(text: str) -> Query:
    """Read what is typed: a whole id, a field, or text."""
    return Query(item_id=text) if parse_item_id(text) is not None else read_text(text)


def in_all_queues(query: Query, may: Scope, *, states: Sequence[str] = STATES, pattern: str = "") -> Search:
    """Return a search of the queues that a reader may see with names that contain, or fit, a pattern."""
    monitor = get_monitor()
    monitor.refresh()
    seen = monitor.overview(may)
    rows: Sequence[Row] = seen.rows
    if pattern:
        glob = pattern if set(pattern) & set("*?") else f"*{pattern}*"
        fits = name_pattern((glob,)).fullmatch
        rows = [row for row in rows if fits(row.status.name)]
    known = {row.status.name: row.status for row in sorted(rows, key=lambda row: row.status.name)}

    def holds(name: str, state: str) -> bool:
        status = known[name]
        return state == "ready" if status.attached else bool(getattr(status.totals, state))

    return Search(
        query=query,
        names=[*known],
        states=states,
        finished=states == STATES and parse_item_id(query.item_id) is not None,
        holds=holds,
        lenient=True,
        not_yet=seen.summary.unread,
    )


def _found(request: HttpRequest, asked: Mapping[str, str], query: Query, may: Scope) -> dict[str, Any]:
    states = (asked["state"],) if asked["state"] else STATES
    look = in_all_queues(query, may, states=states, pattern=asked["queue"].strip())
    look.run(asked["at"], asked["in"], asked["after"], limit=PAGE, seconds=SECONDS)
    before = {name: _count(request.GET.get(name, "")) for name in ("searched", "found")}
    searched, found = before["searched"] + look.searched, before["found"] + len(look.hits)
    kept = {name: asked[name] for name in ("q", "queue", "state") if asked[name]}
    onward: dict[str, Any] = {}
    if look.onward is not None:
        onward = dict(zip(("at", "in", "after"), look.onward, strict=True)) | {"searched": searched, "found": found}
    told = replace(query, state=asked["state"] or "dead")  # reasons are searched where dead items are
    words = ngettext("searched %(n)s item", "searched %(n)s items", searched) % {"n": write.number(searched)}
    of = {"done": write.number(look.begun), "all": write.number(len(look.names))}
    words += " " + ngettext("in %(done)s of %(all)s queue", "in %(done)s of %(all)s queues", len(look.names)) % of
    words += " · " + ngettext("%(n)s found", "%(n)s found", found) % {"n": write.number(found)}
    return {
        "hits": hits(look),
        "now": store_now(),
        "url": reverse("dashboard:search"),
        "next_url": "" if not onward else "?" + urlencode(kept | onward),
        "more_to_search": bool(onward),
        "total": len(look.names),
        "listed": {"searched": look.done, "ended": not onward},
        "scope": " · ".join((*scope_words(told), words)),
        "scope_limits": _LIMITS if query.text else "",
        "unread": [display_name(name) for name in look.unread],
        "not_yet": look.not_yet,
    }


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _state_words() -> list[tuple[str, str]]:
    return [("", _("all states")), *((state, item_state_word(state)) for state in STATES)]
