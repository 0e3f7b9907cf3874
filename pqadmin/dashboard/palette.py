"""The palette: queues, items by id, pages and acts by a few typed letters. Only what the person may see and do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from pqadmin.accounts.rights import Right
from pqadmin.accounts.roles import can
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard import reach
from pqadmin.dashboard.addresses import item_url, queue_url
from pqadmin.live.monitor import get_monitor
from pqadmin.live.rows import Row
from pqadmin.server.store import get_store
from queues import Store
from queues.errors import QueueNotFound, QueueUnreadable
from queues.names import display_name

#: Entries of one answer, and queues among them, so that pages and acts are not crowded out.
MOST, MOST_QUEUES = 12, 8
#: Queues for each of which acts are offered.
_MOST_ACTED = 3
#: Paths of the acts that take much away.
_GRAVE = {"purge/", "delete/", "detach/"}
MAX_LENGTH = 300
#: Queues that one transaction looks for an item in, and the seconds that looking takes at the most.
_CHUNK, _SECONDS = 100, 0.5

_ID = re.compile(r"[0-9a-f]{40}")


class Kind(StrEnum):
    """What an entry leads to; also the name of its icon's shape."""

    QUEUE = "queue"
    ITEM = "item"
    PAGE = "page"
    ACT = "act"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the palette."""

    kind: Kind
    label: str
    url: str
    detail: str = ""
    #: An act that takes much away.
    grave: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a text finds, best first; `note` says what was not looked through."""

    entries: Sequence[Entry]
    note: str = ""


def find(request: HttpRequest, text: str, here: str) -> Found:
    """Find what a typed text means; `here` is the name of the queue whose page is open, or empty."""
    monitor = get_monitor()
    monitor.refresh()
    may = reach.scope(request)
    rows = {row.status.name: row for row in monitor.overview(may).rows}
    words = text.casefold().split()
    if _ID.fullmatch(text.strip().casefold()):
        return _items(text.strip().casefold(), may.of_those([here, *rows] if here in rows else [*rows]))
    labels = {name: display_name(name).casefold() for name in rows}
    queues = _queues(words, labels)
    acts = list(_acts(words, may, rows, labels, here))
    entries = [  # Enter takes the first: never what takes much away while the words fit something else
        *(_queue(rows[name]) for name in queues[:MOST_QUEUES]),
        *(act for act in acts if not act.grave),
        *_pages(request, words),
        *(act for act in acts if act.grave),
    ]
    if not words:  # first what is most likely wanted: acts on this queue, then pages, then queues
        entries.sort(key=lambda entry: (Kind.ACT, Kind.PAGE, Kind.QUEUE).index(entry.kind))
    return Found(entries=entries[:MOST])


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
    status = row.status
    return Entry(kind=Kind.QUEUE, label=display_name(status.name), url=queue_url(status.name))


def _items(item_id: str, names: Sequence[str]) -> Found:
    store, found, looked = get_store(), list[Entry](), 0
    until = time.monotonic() + _SECONDS
    names = list(dict.fromkeys(names))
    for start in range(0, len(names), _CHUNK):
        chunk = names[start : start + _CHUNK]
        holders, unread = _holders(store, chunk, item_id)
        found += [_item(name, item_id) for name in holders]
        looked += len(chunk) - unread
        if time.monotonic() > until:
            break
    note = ""
    if looked < len(names):
        note = _("Looked for this id in %(n)s of %(all)s queues: look on the page of the queue that you mean.")
        note %= {"n": looked, "all": len(names)}
    elif not found:
        note = _("No queue holds an item of this id now. What became of it may stand in the audit.")
        audit = f"{reverse('dashboard:audit')}?item={item_id}"
        found = [Entry(kind=Kind.PAGE, label=_("Audit"), detail=_("of this item"), url=audit)]
    return Found(entries=found[:MOST], note=note)


def _holders(store: Store, names: Sequence[str], item_id: str) -> tuple[list[str], int]:
    """Return which of these queues hold the item, at one moment, and how many can not be read; those gone do not."""

    def look(tr: Any) -> tuple[list[str], int]:
        holders, unread = list[str](), 0
        for name in names:
            try:
                if store.queue(name, tr=tr).find(item_id, tr=tr) is not None:
                    holders.append(name)
            except QueueNotFound:
                continue
            except QueueUnreadable:
                unread += 1
        return holders, unread

    return store.read(look)


def _item(name: str, item_id: str) -> Entry:
    return Entry(
        kind=Kind.ITEM,
        label=item_id,
        url=item_url(name, item_id),
        detail=_("in %(queue)s") % {"queue": display_name(name)},
    )


def _pages(request: HttpRequest, words: Sequence[str]) -> Iterator[Entry]:
    scored = []
    for number, (label, view, right) in enumerate(_all_pages()):
        if right is not None and not can(request.user, right):
            continue
        score = _score(words, label.casefold())
        if score is not None:
            scored.append((score if words else (0, 0), number, Entry(kind=Kind.PAGE, label=label, url=reverse(view))))
    for _rank, _number, entry in sorted(scored, key=lambda each: each[:2]):
        yield entry


def _all_pages() -> Sequence[tuple[str, str, Right | None]]:
    return (
        (_("Queues"), "dashboard:overview", Right.READ),
        (_("Jobs"), "dashboard:jobs", Right.READ),
        (_("Audit"), "dashboard:audit", Right.READ),
        (_("Trash"), "dashboard:trash", Right.READ),
        (_("Boards"), "wall:boards", Right.READ),
        (_("New queue"), "dashboard:new-queue", Right.ACT),
        (_("New board"), "wall:make", Right.ADMIN),
        (_("Attach a queue"), "dashboard:attach", Right.ADMIN),
        (_("People"), "people:people", Right.ADMIN),
        (_("New person"), "people:new", Right.ADMIN),
        (_("What you may do"), "people:me", None),
        (_("Change password"), "accounts:password", None),
        (_("Keys"), "dashboard:keys", None),
        (_("Styleguide"), "dashboard:styleguide", Right.ADMIN),
    )


def _acts(
    words: Sequence[str], may: Scope, rows: Mapping[str, Row], labels: Mapping[str, str], here: str
) -> Iterator[Entry]:
    """Offer acts whose words were typed, on this queue and on those that the other words name."""
    # Most acts leave the same words for queues; to look through all queues for each act would take many times as long.
    found: dict[tuple[str, ...], list[str]] = {(): [here] if here in rows else []}
    for label, path, right, fits in _all_acts():
        folded = label.casefold()
        mine = [word for word in words if word in folded]
        rest = tuple(word for word in words if word not in folded)
        if words and not mine:
            continue
        if rest not in found:
            found[rest] = _queues(rest, labels)
        for name in islice((name for name in found[rest] if may.can(right, name) and fits(rows[name])), _MOST_ACTED):
            yield Entry(
                kind=Kind.ACT,
                label=label,
                detail=display_name(name),
                url=f"{queue_url(name)}{path}",
                grave=path in _GRAVE,
            )


def _all_acts() -> Sequence[tuple[str, str, Right, Callable[[Row], bool]]]:
    def always(row: Row) -> bool:
        return True

    def ours(row: Row) -> bool:
        return not row.status.attached

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
        (_("Pause"), "pause/", Right.ACT, lambda row: ours(row) and row.status.pause is None),
        (_("Change the pause"), "pause/", Right.ACT, lambda row: ours(row) and row.status.pause is not None),
        # Its button is the first on the queue's page while that is paused; no link may do what it does.
        (_("Resume"), "", Right.ACT, lambda row: ours(row) and row.status.pause is not None),
        (_("Settings"), "settings/", Right.ACT, always),
        (_("History"), "history/", Right.READ, ours),
        (_("Export"), "export/", Right.READ, always),
        (_("Rename"), "rename/", Right.ACT, always),
        (_("Purge"), "purge/", Right.ACT, always),
        (_("Delete the queue"), "delete/", Right.ACT, ours),
        (_("Detach"), "detach/", Right.ACT, lambda row: row.status.attached),
    )
