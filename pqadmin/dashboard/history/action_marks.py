"""What people did to a queue in a range of time: marks on its charts, and the times in which it was paused."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.history.ranges import Range
from pqadmin.display import format as write
from pqadmin.display.words import verb_words
from pqadmin.pages import visibility
from queues import AuditEntry, Pause, QueueStatus, RecordPage, Store

#: Actions that are marked on the charts, at most, and pages of the audit that are read.
MAX_MARKS, _PAGES = 100, 10
#: Actions on single items would hide these.
_UNMARKED = frozenset(
    {"push", "enqueue", "pop_min", "pop_max", "dequeue", "put_back", "reveal", "lease", "ack", "edit"}
)
_TURNS = ("pause", "resume")
#: By queue and range: up to when it was looked for a pause before the range, and the last one; how many are kept.
_turns: WeakKeyDictionary[Store, dict[tuple[int, str | int], tuple[datetime, AuditEntry | None]]] = WeakKeyDictionary()
_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What people did in a range."""

    #: The newest first.
    marks: Sequence[AuditEntry]
    #: From when to when the queue was paused, the earliest first; None: until now.
    pauses: Sequence[tuple[float, float | None]]


def acts(store: Store, status: QueueStatus, shown: Range, may: Scope) -> Acts:
    """Return the actions on the queue as a whole, as far as `may` sees it, and its pauses."""
    ends = shown.ends + timedelta(seconds=1)
    pages = list(_pages(store, status.name, since=shown.begins, until=ends))
    seen = visibility.seen_entries(may, (entry for page in pages for entry in page.entries))
    marked = [entry for entry in seen if entry.verb not in _UNMARKED or entry.count > 1]
    # Where not all acts of the range were read, what came before them does not say how the rest began.
    earlier = _turn_before(store, status, shown) if pages[-1].cursor is None else None
    before = visibility.seen_entries(may, filter(None, [earlier]))
    turns = [entry for entry in (*seen, *before) if entry.verb in _TURNS]
    return Acts(marks=marked[:MAX_MARKS], pauses=_pauses(reversed(turns), status.pause, shown))


def _turn_before(store: Store, status: QueueStatus, shown: Range) -> AuditEntry | None:
    """Return what paused or resumed the queue last before a range; what was looked through once is so no more.

    None as well where more was done than is read: that is not kept.
    """
    known = _turns.setdefault(store, {})
    key = (status.id, shown.span or shown.since)
    until, turn = known.get(key, (None, None))
    if until is not None and until > shown.begins:
        until = turn = None
    for page in _pages(store, status.name, since=until, until=shown.begins):
        found = next((entry for entry in page.entries if entry.verb in _TURNS), None)
        if found is not None or page.cursor is None:
            turn = found or turn
            break
    else:
        return None
    known.pop(key, None)
    if len(known) >= _KEPT:
        known.pop(next(iter(known)), None)
    known[key] = shown.begins, turn
    return turn


def _pages(store: Store, name: str, *, since: datetime | None, until: datetime) -> Iterator[RecordPage[AuditEntry]]:
    """Yield the audit of a queue in a time, the newest first, as far as a page of charts reads it."""
    after = None
    for _page in range(_PAGES):
        page = store.audit.entries(queue=name, since=since, until=until, limit=MAX_MARKS, after=after)
        yield page
        after = page.cursor
        if after is None:
            return


def _pauses(turns: Iterable[AuditEntry], now: Pause | None, shown: Range) -> list[tuple[float, float | None]]:
    """Return the pauses that touch a range from the actions that began and ended them, the earliest first.

    The queue's own pause is told even where the action that began it was not read.
    """
    found: list[tuple[float, float | None]] = []
    since = until = None
    for entry in turns:
        at = entry.at.timestamp()
        if since is not None:
            found.append((since, at if until is None else min(at, until)))
            since = None
        if entry.verb == "pause":
            since, until = at, _until(entry)
    if since is not None:
        found.append((since, until))
    elif now is not None:
        found.append((now.since.timestamp(), None if now.until is None else now.until.timestamp()))
    return [(begin, end) for begin, end in found if int(begin) <= shown.until and (end is None or end >= shown.since)]


def _until(entry: AuditEntry) -> float | None:
    """Return when a pause was to end by itself; None where it was not."""
    until = (entry.after or {}).get("until")
    try:
        return datetime.fromisoformat(until).timestamp() if until else None
    except (TypeError, ValueError):
        return None


def as_mark(entry: AuditEntry) -> dict[str, Any]:
    """Return an action as pages show it."""
    actor, verb = write.visible(entry.actor), verb_words(entry.verb)
    return {"entry": entry, "actor": actor, "verb": verb, "label": f"{verb} · {actor}"}
