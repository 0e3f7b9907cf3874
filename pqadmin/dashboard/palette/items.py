"""Items in the palette: one by its id in whatever queue, and what can be done with it or with ticked rows.

The acts are those for which the item's page and the list have buttons; each leads to the form that its button leads to.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.items.action_definitions import ITEM_ACTS, acts_in, buttons
from pqadmin.dashboard.palette.entries import MOST, Entry, Found, Kind, Place
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.store import get_store
from queues import Item, QueueStatus
from queues.errors import QueueNotFound, QueueUnreadable, display_name

#: Queues that one transaction looks for an item in, and the seconds that looking takes at the most.
_CHUNK, _SECONDS = 100, 0.5


def find_item(
    request: HttpRequest, item_id: str, words: Sequence[str], statuses: Mapping[str, QueueStatus], may: Scope
) -> Found:
    """Look for an item of an id, in queues in their order, with its acts; those that match typed words first."""
    found, looked = list[Entry](), 0
    until, names = time.monotonic() + _SECONDS, list(statuses)
    for start in range(0, len(names), _CHUNK):
        chunk = names[start : start + _CHUNK]
        held, unread = _held(chunk, item_id)
        for name, item in held:
            acts = _acts_of(request, may, statuses[name], item, _("this item in %(queue)s"))
            acts, where = _fitting(acts, words), _("in %(queue)s") % {"queue": display_name(name)}
            one = Entry(kind=Kind.ITEM, label=item_id, url=item_url(name, item_id), detail=where)
            found += [*acts, one] if words else [one, *acts]
        looked += len(chunk) - unread
        if time.monotonic() > until:
            break
    note = ""
    if looked < len(names):
        note = _("Looked for this id in %(n)s of %(all)s queues: look on the page of the queue that you mean.")
        note %= {"n": looked, "all": len(names)}
    elif not found:
        note = _("No queue holds an item of this id now. The audit may tell where it went.")
        audit = f"{reverse('dashboard:audit')}?item={item_id}"
        found = [Entry(kind=Kind.PAGE, label=_("Audit"), detail=_("of this item"), url=audit)]
    return Found(entries=found[:MOST], note=note)


def acts_here(
    request: HttpRequest, words: Sequence[str], place: Place, status: QueueStatus, may: Scope
) -> Sequence[Entry]:
    """Return the acts on the rows that are ticked, or on the item of the open page."""
    if place.selected:
        return _fitting(_acts_on_ticked(place, status, may), words)
    if not place.item:
        return ()
    held, _unread = _held([status.name], place.item)
    acts = [act for _name, item in held for act in _acts_of(request, may, status, item, _("this item"))]
    return _fitting(acts, words)


def _acts_on_ticked(place: Place, status: QueueStatus, may: Scope) -> list[Entry]:
    if not may.can(Right.ACT, status.name):
        return []
    ticked = ngettext("%(n)s selected item", "%(n)s selected items", place.selected)
    return [
        Entry(
            kind=Kind.ACT,
            label=str(act.label),
            detail=ticked % {"n": write.number(place.selected)},
            url=f"{queue_url(status.name)}act/?act={act.verb}",
            grave=act.grave,
            press=act.verb,
        )
        for act in acts_in(place.state, status)
    ]


def _acts_of(request: HttpRequest, may: Scope, status: QueueStatus, item: Item, named: str) -> list[Entry]:
    if item.finished_at is not None or not may.can(Right.ACT, status.name):
        return []
    detail = named.replace("%(queue)s", display_name(status.name))
    return [
        Entry(
            kind=Kind.ACT,
            label=button.label,
            detail=detail,
            url=button.url,
            grave=button.verb in ITEM_ACTS and ITEM_ACTS[button.verb].grave,
        )
        for button in buttons(status, item, request.user.get_username())
    ]


def _fitting(acts: Sequence[Entry], words: Sequence[str]) -> list[Entry]:
    """Return the acts in which all typed words are found, what takes much away last."""
    fit = [act for act in acts if all(word in _searched(act) for word in words)]
    return sorted(fit, key=lambda act: act.grave)


def _searched(act: Entry) -> str:
    """Return what typed words are looked for in: “re-prioritize” is typed without its hyphen too."""
    return f"{act.label} {act.label.replace('-', '')} {act.detail}".casefold()


def _held(names: Sequence[str], item_id: str) -> tuple[list[tuple[str, Item]], int]:
    """Return the queues that hold the item, at one version, and how many cannot be read."""

    def look(tr: Any) -> tuple[list[tuple[str, Item]], int]:
        held, unread = list[tuple[str, Item]](), 0
        for name in names:
            with suppress(QueueNotFound):
                try:
                    queue = store.queue(name, tr=tr)
                    item = queue.find(item_id, tr=tr) or queue.find_finished(item_id, tr=tr)
                except QueueUnreadable:
                    unread += 1
                    continue
                if item is not None:
                    held.append((name, item))
        return held, unread

    store = get_store()
    return store.read(look)
