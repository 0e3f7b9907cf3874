"""What the list of a queue's items shows: its tabs and ends, the items or the trash, what can be done with them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from pqadmin.accounts.rights import Right
from pqadmin.dashboard.items import dead_errors
from pqadmin.dashboard.items.action_definitions import acts_in
from pqadmin.dashboard.items.query import FINISHED, MAX_CURSOR, TRASH
from pqadmin.dashboard.items.queue_page_data import PAGE, Seen
from pqadmin.display import format as write
from pqadmin.display.addresses import queue_url
from pqadmin.display.durations import duration
from pqadmin.display.redaction import rules_of
from pqadmin.display.words import trash_words
from pqadmin.pages import form_idempotency, visibility
from pqadmin.store import get_store
from queues import Item, QueueStatus, RecordPage, TrashEntry
from queues.admin import BULK_ACTIONS, STATES, to_ms
from queues.errors import BadCursor, QueueNotFound, display_name

#: Entries of the trash that are read at most to count those of one queue for its tab.
_TRASH_LOOK = 10
_TABS = {
    "ready": pgettext_lazy("tab", "Ready"),
    "delayed": pgettext_lazy("tab", "Delayed"),
    "leased": pgettext_lazy("tab", "Leased"),
    "dead": pgettext_lazy("tab", "Dead"),
    FINISHED: pgettext_lazy("tab", "Finished"),
    TRASH: pgettext_lazy("tab", "Trash"),
}
_END_WORDS: Mapping[str, tuple[Promise | str, Promise | str]] = {
    "ready": (gettext_lazy("Min first"), gettext_lazy("Max first")),
    "fifo": (gettext_lazy("Head first"), gettext_lazy("Tail first")),
    "delayed": (gettext_lazy("Next due"), gettext_lazy("Last due")),
    "leased": (gettext_lazy("Next to expire"), gettext_lazy("Last to expire")),
    "dead": (gettext_lazy("Earliest first"), gettext_lazy("Latest first")),
    "age": (gettext_lazy("Oldest first"), gettext_lazy("Youngest first")),
}


def item_list(request: HttpRequest, seen: Seen) -> dict[str, Any]:
    """Return what the list's template shows."""
    asked, listed, status = seen.asked, seen.listed, seen.status
    url = queue_url(status.name)
    trash, foreign_cursor = None, listed.foreign_cursor
    if asked.state == TRASH:
        try:
            trash = _trash(status, asked.after)
        except BadCursor:
            trash, foreign_cursor = _trash(status), True
    entries = trash.entries if trash else ()
    may = visibility.scope(request)
    known = visibility.known_to(may) if entries else {}
    window = {"after": asked.after} if asked.after else {}
    cursor = listed.cursor if trash is None else trash.cursor
    return {
        "asked": asked,
        "listed": listed,
        "url": url,
        "tabs": _tabs(seen, trash),
        "ends": _ends(seen),
        "dead_errors": dead_errors.shown(status.name, asked, request.GET.get("errors", "")[:MAX_CURSOR] or None),
        "foreign_cursor": foreign_cursor,
        "in_middle": asked.after is not None and not foreign_cursor,
        "first_url": asked.address(),
        "next_url": "" if cursor is None else asked.address(after=cursor),
        "more_to_search": asked.searching and cursor is not None and len(listed.items) < PAGE,
        "select_url": asked.address(select="page", **window),
        "here_url": asked.address(**window),
        "at": to_ms(seen.now),
        "clear_url": "?" + urlencode({"state": asked.state}),
        "narrow": any(asked.typed.get(name) for name in ("id", "low", "high", "since", "until")),
        "scope": _scope(seen),
        "scope_limits": _scope_limits(seen),
        "elsewhere": _elsewhere(seen),
        "total": _total(seen),
        "acts": [
            {"name": act.verb, "label": act.label, "all_url": _all_url(seen, url, act.verb)}
            for act in (acts_in(asked.state, status) if may.can(Right.ACT, status.name) else ())
        ],
        "all_words": _all_words(seen),
        "export_url": "" if asked.state == FINISHED else f"{url}export/{asked.address()}",
        "keeps": "" if status.keep_finished is None else duration(status.keep_finished),
        "trash_rows": [
            (
                entry,
                _trash_words(visibility.seen_trash(may, entry)),
                form_idempotency.number(request, f"restore:{entry.id}")
                if visibility.may_undo(may, entry, known)
                else "",
            )
            for entry in entries
        ],
    }


def _tabs(seen: Seen, trash: RecordPage[TrashEntry] | None) -> list[dict[str, Any]]:
    """Return one tab for each state, with the depth that scripts keep live, and as it reads."""
    status, asked = seen.status, seen.asked
    kept = {name: value for name, value in asked.pinned.items() if name != "state"} if asked.searching else {}
    tabs = []
    keeps = (FINISHED,) if status.keep_finished or status.finished or asked.state == FINISHED else ()
    for state in ("ready", TRASH) if status.attached else (*STATES, *keeps, TRASH):
        if state == TRASH:
            whole = trash if asked.after is None else None
            depth, shown = None, trash_depth(status, whole)
        elif state == FINISHED:
            depth, shown = None, write.number(status.finished)
        elif status.attached:
            depth, shown = seen.row.ready, write.counted(seen.row.ready)
        else:
            depth = getattr(status.totals, state)
            shown = write.number(depth)
        url = "?" + urlencode({"state": state} | (kept if state in STATES else {}))
        current = state == asked.state
        tabs.append(
            {"state": state, "label": _TABS[state], "url": url, "current": current, "depth": depth, "shown": shown}
        )
    return tabs


def _trash(status: QueueStatus, after: str | None = None, *, limit: int = PAGE) -> RecordPage[TrashEntry]:
    """Return what was taken from this very queue, or changed, not from another one that had its name.

    Pushes are left out: what they brought is here and not in the trash. Raises `BadCursor`.
    """
    page = get_store().trash.entries(queue=status.name, but="push", limit=limit, after=after)
    return replace(page, entries=tuple(entry for entry in page.entries if entry.queue_id == status.id))


def _trash_words(entry: TrashEntry) -> str:
    """Say what was done."""
    words = trash_words(entry)
    return words if entry.to is None else _("%(act)s to %(queue)s") % {"act": words, "queue": display_name(entry.to)}


def trash_depth(status: QueueStatus, trash: RecordPage[TrashEntry] | None = None) -> str:
    """Count what the queue has in the trash as far as a short look goes; empty where that found none and is not all."""
    if trash is None:
        trash = _trash(status, limit=_TRASH_LOOK)
    count = len(trash.entries)
    if trash.cursor is None:
        return write.number(count)
    return f"{write.number(count)}+" if count else ""


def _ends(seen: Seen) -> list[tuple[str, str, bool, str]]:
    """Return (label, address, current, end) of both ends."""
    asked, status = seen.asked, seen.status
    if not asked.of_items:
        return []
    kind = "fifo" if asked.state == "ready" and status.kind == "fifo" else asked.state
    words = _END_WORDS["age" if seen.listed.by_age else kind]
    return [
        (str(label), asked.address(end=end), asked.end == end, end)
        for label, end in zip(words, ("min", "max"), strict=True)
    ]


def _total(seen: Seen) -> int | None:
    """Return how many items a search would look at; None where that is not known."""
    if not seen.asked.of_items or seen.listed.narrowed:
        return None
    return seen.row.ready if seen.status.attached else int(getattr(seen.status.totals, seen.asked.state))


def _scope(seen: Seen) -> str:
    """Say what was searched and what was found."""
    listed = seen.listed
    if not seen.asked.searching:
        return ""
    found = ngettext("%(n)s found", "%(n)s found", listed.found) % {"n": write.number(listed.found)}
    searched, total = write.number(listed.searched), _total(seen)
    if listed.ended:
        words = ngettext("searched %(n)s item, all there is", "searched %(n)s items, all there are", listed.searched)
        if listed.narrowed:
            words = ngettext(
                "searched %(n)s item in these bounds", "searched %(n)s items in these bounds", listed.searched
            )
        words %= {"n": searched}
    elif total is not None:
        words = _("searched %(n)s of %(total)s") % {"n": searched, "total": write.number(max(total, listed.searched))}
    else:
        words = _("searched %(n)s so far") % {"n": searched}
    return f"{words} · {found}"


#: By whether reasons are searched, and whether rules hide anything.
_LIMITS = {
    (False, False): gettext_lazy("Text is looked for in values as stored: not inside of gzip or zlib."),
    (False, True): gettext_lazy(
        "Text is looked for in values as stored: not inside of gzip or zlib, nor in what is redacted."
    ),
    (True, False): gettext_lazy(
        "Text is looked for in reasons, and in values as stored, but not inside of gzip or zlib."
    ),
    (True, True): gettext_lazy(
        "Text is looked for in reasons, and in values as stored, but not in packed or redacted parts."
    ),
}


def _scope_limits(seen: Seen) -> Promise | str:
    """Say in what a search for text does not look, whatever it found."""
    if not seen.asked.query.text:
        return ""
    return _LIMITS[seen.asked.state == "dead", bool(rules_of(seen.status.redact))]


def _elsewhere(seen: Seen) -> Item | None:
    """Return the item of a whole id that is here, but does not fit the rest or has another state."""
    listed, item_id = seen.listed, seen.asked.query.item_id
    if not item_id or listed.items or not listed.ended or seen.asked.after is not None:
        return None
    try:
        queue = get_store().queue(seen.status.name)
        return queue.find(item_id) or queue.find_finished(item_id)
    except QueueNotFound:
        return None


def _all_url(seen: Seen, url: str, act: str) -> str:
    asked = seen.asked
    none = not seen.listed.items and seen.listed.ended
    if none or seen.status.attached or asked.wrong or act not in BULK_ACTIONS[asked.state]:
        return ""  # only chosen items get it
    return f"{url}bulk/?{urlencode({'act': act, **asked.pinned})}"


def _all_words(seen: Seen) -> str:
    """Say which items “all” are."""
    asked, listed = seen.asked, seen.listed
    if asked.searching and not listed.ended:
        return _("All that match")
    if asked.searching:
        return ngettext("The only match", "All %(n)s that match", listed.found) % {"n": write.number(listed.found)}
    total = _total(seen)
    if total is None:
        return _("All of them")
    return ngettext("The only one", "All %(n)s", total) % {"n": write.number(total)}
