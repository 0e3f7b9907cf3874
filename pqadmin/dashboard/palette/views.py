"""The palette: queues, items by id, pages and acts by a few typed letters; only what the person may see and do.

The palette and the sheet of keys are dialogs of every page, and pages of their own without JavaScript.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.rights import Right
from pqadmin.accounts.roles import can, require
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.palette.entries import MOST, Entry, Found, Kind, Place
from pqadmin.dashboard.palette.items import acts_here, find_item
from pqadmin.dashboard.search.views import Hit, hits, in_all_queues, read_query
from pqadmin.display import format as write
from pqadmin.display.addresses import queue_url
from pqadmin.live.board.rows import Row
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import visibility
from queues.errors import display_name

#: Queues among the entries of one answer, so that pages and acts are not crowded out; and those with acts.
MOST_QUEUES, MOST_ACTED = 8, 8
#: Items with values that hold what is typed, and the seconds that looking for them takes at most.
_MOST_HITS, _HIT_SECONDS = 5, 0.3
#: Paths of the acts that take much away.
_GRAVE = {"purge/", "delete/", "detach/"}
#: And of those that few queues need: to resume, and to retry dead items.
_RETRY = "bulk/?state=dead&act=retry"
_RARE = {"", _RETRY}
#: Characters of what is typed and of a queue's name, and of an item's id: that of an attached queue's item is its key.
MAX_LENGTH, MAX_ID = 300, 20_100

_ID = re.compile(r"[0-9a-f]{40}")


@require_safe
@require(Right.READ)
def palette(request: HttpRequest) -> HttpResponse:
    """Show what the typed text finds; a fragment's request gets the entries alone."""
    text = _asked(request, "q", MAX_LENGTH)
    fragment = request.headers.get("HX-Target", "") == "div#palette-found"
    selected = _asked(request, "selected", 7)
    place = Place(
        queue=_asked(request, "here", MAX_LENGTH),
        item=_asked(request, "item", MAX_ID),
        state=_asked(request, "state", MAX_LENGTH),
        # A page of its own has no list with ticked rows.
        selected=int(selected) if fragment and selected.isascii() and selected.isdigit() else 0,
        scripted=fragment,
    )
    context = {"section": "palette", "text": text, "place": place, "found": find(request, text, place)}
    return render(request, "dashboard/_palette_found.html" if fragment else "dashboard/palette.html", context)


def _asked(request: HttpRequest, name: str, most: int) -> str:
    return request.GET.get(name, "").replace("\0", "")[:most]


@require_safe
@require(Right.READ)
def keys(request: HttpRequest) -> HttpResponse:
    """Show what each key does; the dialog of a page gets the sheet alone."""
    alone = request.headers.get("HX-Target", "") == "dialog#keys"
    return render(request, "dashboard/_keys_dialog.html" if alone else "dashboard/keys.html", {"section": "keys"})


def find(request: HttpRequest, text: str, place: Place) -> Found:
    """Find what a typed text means on a page on which something is open."""
    monitor = get_monitor()
    monitor.refresh()
    may, here = visibility.scope(request), place.queue
    rows = {row.status.name: row for row in monitor.overview(may).rows}
    words = text.casefold().split()
    if len(ids := [word for word in words if _ID.fullmatch(word)]) == 1:
        names = dict.fromkeys(may.of_those([here, *rows] if here in rows else [*rows]))
        rest = [word for word in words if word not in ids]
        return find_item(request, ids[0], rest, {name: rows[name].status for name in names}, may)
    labels = {name: display_name(name).casefold() for name in rows}
    fitting = _queues(words, labels)
    queues = [_queue(rows[name]) for name in fitting[:MOST_QUEUES]]
    mine = acts_here(request, words, place, rows[here].status, may) if here in rows else ()
    acts = [*mine, *_acts(words, may, rows, labels, here)]
    pages = [*_pages(request, words), *(_themes(words) if place.scripted else ())]
    if not words:  # first what is most likely wanted: acts on what is open, then pages, then queues
        entries = [*acts, *pages, *queues]
    else:  # Enter takes the first: never what takes much away while the words fit something else
        entries = [
            *queues,
            *(act for act in acts if not act.grave),
            *pages,
            *(act for act in acts if act.grave),
        ]
    note = ""
    if words:
        entries, scope = entries[: MOST - 1 - _MOST_HITS], _("in all queues")
        if ":" in text or "~" in text or not entries:
            look = in_all_queues(read_query(text.strip()), may)
            look.run("", "", "", limit=_MOST_HITS, seconds=_HIT_SECONDS)
            entries += map(_hit, hits(look))
            if look.onward is not None and len(look.hits) < _MOST_HITS:
                scope = _("in all queues: %(n)s of %(all)s were looked through here")
                scope %= {"n": write.number(look.done), "all": write.number(len(look.names))}
        url = f"{reverse('dashboard:search')}?{urlencode({'q': text})}"
        label = _("Search items for “%(text)s”") % {"text": write.shorten(write.visible(text), 60)}
        entries.append(Entry(kind=Kind.PAGE, label=label, detail=scope, url=url))
    if words and len(fitting) > MOST_QUEUES:
        note = _("%(n)s queues fit, the best %(shown)s are here: type more of the name.")
        note %= {"n": write.number(len(fitting)), "shown": MOST_QUEUES}
    return Found(entries=entries[:MOST], note=note)


def _hit(hit: Hit) -> Entry:
    where = _("in %(queue)s") % {"queue": hit.queue_name}
    return Entry(kind=Kind.ITEM, label=hit.line, url=hit.url, detail=where)


def _queues(words: Sequence[str], labels: Mapping[str, str]) -> list[str]:
    scored = [(score, name) for name, folded in labels.items() if (score := _score(words, folded)) is not None]
    return [name for _score_, name in sorted(scored)]


def _score(words: Sequence[str], folded: str) -> tuple[int, int] | None:
    """Return how well a label without its cases fits, smaller is better; None when a word is not in it."""
    total = 0
    for word in words:
        at = folded.find(word)
        if at < 0:
            return None
        total += 0 if at == 0 else 1 if not folded[at - 1].isalnum() else 2
    return total, len(folded)


def _queue(row: Row) -> Entry:
    name = row.status.name
    return Entry(kind=Kind.QUEUE, label=display_name(name), url=queue_url(name), level=row.level)


def _pages(request: HttpRequest, words: Sequence[str]) -> list[Entry]:
    scored = []
    for number, (label, view, right) in enumerate(_all_pages()):
        score = _score(words, label.casefold())
        if score is not None and (right is None or can(request.user, right)):
            scored.append((score if words else (0, 0), number, Entry(kind=Kind.PAGE, label=label, url=reverse(view))))
    return [entry for _score_, _number, entry in sorted(scored, key=lambda each: each[:2])]


def _themes(words: Sequence[str]) -> list[Entry]:
    """Return the themes that the words name; each presses its button of the menu."""
    named = (("", _("System theme")), ("light", _("Light theme")), ("dark", _("Dark theme")))
    return [
        Entry(kind=Kind.ACT, label=label, url="#me", press=f"theme={theme}")
        for theme, label in named
        if words and _score(words, label.casefold()) is not None
    ]


def _all_pages() -> Sequence[tuple[str, str, Right | None]]:
    return (
        (_("Queues"), "dashboard:overview", Right.READ),
        (_("Search items"), "dashboard:search", Right.READ),
        (_("Bulk jobs"), "dashboard:jobs", Right.READ),
        (_("Audit"), "dashboard:audit", Right.READ),
        (_("Trash"), "dashboard:trash", Right.READ),
        (_("Charts of all queues"), "dashboard:charts", Right.READ),
        (_("Targets"), "dashboard:targets", Right.READ),
        (_("Targets of a pattern"), "dashboard:new-targets", Right.ACT),
        (_("Boards"), "wall:boards", Right.READ),
        (_("Tokens"), "people:tokens", Right.READ),
        (_("New token"), "people:new-token", Right.READ),
        (_("New queue"), "dashboard:new-queue", Right.ACT),
        (_("New board"), "wall:make", Right.ADMIN),
        (_("Attach a queue"), "dashboard:attach", Right.ADMIN),
        (_("People"), "people:people", Right.ADMIN),
        (_("New person"), "people:new", Right.ADMIN),
        (_("What you may do"), "people:me", None),
        (_("Change password"), "accounts:password", None),
        (_("Keys"), "dashboard:keys", None),
    )


def _acts(
    words: Sequence[str], may: Scope, rows: Mapping[str, Row], labels: Mapping[str, str], here: str
) -> Iterator[Entry]:
    """Offer acts that match typed words, on this queue and on those that the other words name."""
    # Most acts leave the same words for queues; to look through all queues for each act would take many times as long.
    found: dict[tuple[str, ...], list[str]] = {(): [here] if here in rows else []}
    for label, path, right, fits in _all_acts():
        folded = label.casefold()
        mine = [word for word in words if _begins(word, folded)]
        rest = tuple(word for word in words if word not in mine)
        if words and not mine:
            continue
        if rest not in found:
            found[rest] = _queues(rest, labels)
        asked = [found[rest]]
        # An act that few queues need is offered for those where the queue that is open does not need it.
        if not rest and path in _RARE and (words or here not in rows):
            asked.append(list(rows))
        fitting = (
            list(islice((name for name in named if may.can(right, name) and fits(rows[name])), MOST_ACTED))
            for named in asked
        )
        for name in next(filter(None, fitting), ()):
            yield Entry(
                kind=Kind.ACT,
                label=label,
                detail=display_name(name),
                url=f"{queue_url(name)}{path}",
                grave=path in _GRAVE,
            )


def _begins(word: str, label: str) -> bool:
    """Return whether a word of a label begins so; letters of other scripts are not set apart by spaces."""
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}", label) is not None


def _all_acts() -> Sequence[tuple[str, str, Right, Callable[[Row], bool]]]:
    def always(row: Row) -> bool:
        return True

    def ours(row: Row) -> bool:
        return not row.status.attached

    def paused(row: Row) -> bool:
        return ours(row) and row.status.pause is not None

    def dead(row: Row) -> bool:
        return ours(row) and row.status.totals.dead > 0

    def fifo(row: Row) -> bool:
        return row.status.kind == "fifo"

    def ends(row: Row) -> bool:
        return not fifo(row)

    return (
        (_("Push"), "push/", Right.ACT, ends),
        (_("Enqueue"), "push/", Right.ACT, fifo),
        (_("Push several"), "push/many/", Right.ACT, always),
        (_("Pop min"), "pop/?end=min", Right.ACT, ends),
        (_("Pop max"), "pop/?end=max", Right.ACT, ends),
        (_("Dequeue"), "pop/?end=min", Right.ACT, fifo),
        (_("Pause"), "pause/", Right.ACT, lambda row: ours(row) and not paused(row)),
        (_("Change the pause"), "pause/", Right.ACT, paused),
        # Its button is the first on the queue's page while that is paused; no link may do what it does.
        (_("Resume"), "", Right.ACT, paused),
        (_("Retry dead items"), _RETRY, Right.ACT, dead),
        (_("Settings"), "settings/", Right.ACT, always),
        (_("History"), "history/", Right.READ, ours),
        (_("Export"), "export/", Right.READ, always),
        (_("Rename"), "rename/", Right.ACT, always),
        (_("Purge"), "purge/", Right.ACT, always),
        (_("Delete the queue"), "delete/", Right.ACT, ours),
        (_("Detach"), "detach/", Right.ACT, lambda row: row.status.attached),
    )
