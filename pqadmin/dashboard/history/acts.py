"""What people did to a queue in a range of time: marks on its charts, and the times in which it was paused."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.history.ranges import Range
from pqadmin.display import format as write
from pqadmin.display.words import verb_words
from pqadmin.pages import visibility
from queues import AuditEntry, QueueStatus, Store

#: Actions that are marked on the charts, at most, and pages of the audit that are read.
MAX_MARKS, _PAGES = 100, 10
#: Actions on single items would hide these.
_UNMARKED = frozenset(
    {"push", "enqueue", "pop_min", "pop_max", "dequeue", "put_back", "reveal", "lease", "ack", "edit"}
)
_TURNS = ("pause", "resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What people did in a range."""

    #: The newest first.
    marks: Sequence[AuditEntry]
    #: From when to when the queue was paused, the earliest first; None: until now.
    pauses: Sequence[tuple[float, float | None]]


def acts(store: Store, status: QueueStatus, shown: Range, may: Scope) -> Acts:
    """Return the actions on the queue as a whole, as far as `may` sees it, and its pauses."""
    marked: list[AuditEntry] = []
    turns: list[AuditEntry] = []
    after = None
    for _page in range(_PAGES):
        page = store.audit.entries(queue=status.name, limit=MAX_MARKS, after=after)
        for entry in visibility.seen_entries(may, page.entries):
            at = entry.at.timestamp()
            if entry.verb in _TURNS:
                turns.append(entry)
            if shown.since <= int(at) <= shown.until and (entry.verb not in _UNMARKED or entry.count > 1):
                marked.append(entry)
        after = page.cursor
        turned_before = any(entry.at.timestamp() < shown.since for entry in turns)
        ended = not page.entries or page.entries[-1].at.timestamp() < shown.since
        if after is None or (turned_before and ended):
            break
    return Acts(marks=marked[:MAX_MARKS], pauses=_pauses(reversed(turns), shown))


def _pauses(turns: Iterable[AuditEntry], shown: Range) -> list[tuple[float, float | None]]:
    """Return the pauses that touch a range from the actions that began and ended them, the earliest first."""
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
