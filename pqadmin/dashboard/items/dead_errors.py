"""Dead items by the errors that they died of: groups of a bounded stretch of them, the newest first."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from pqadmin.dashboard.items.query import Asked, fields_of
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.store import get_store
from queues import Query
from queues.admin import error_group
from queues.errors import BadCursor

#: Items that one answer looks at, and seconds that it takes for that, at most.
LOOKED, SECONDS = 10_000, 0.25
#: Items of one read; groups that are named.
_READ, SHOWN = 500, 20


@dataclass(slots=True, kw_only=True)
class Group:
    """Items that died of one error."""

    error: str
    count: int = 0
    first: datetime
    last: datetime
    #: The id of the newest of them.
    sample: str

    def links(self, queue: str) -> dict[str, str]:
        """Return where its items are listed, retried and deleted, and where the sample is."""
        url, fields = queue_url(queue), fields_of(Query(state="dead", error=self.error))
        return {
            "items": f"?{urlencode(fields)}#items",
            "sample": item_url(queue, self.sample),
            **{act: f"{url}bulk/?{urlencode({'act': act, **fields})}" for act in ("retry", "delete")},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadErrors:
    """What one look at dead items found."""

    #: The largest first.
    groups: Sequence[Group]
    #: Items that earlier looks and this one looked at.
    before: int
    looked: int
    #: Where the next look begins; None: everything was looked at.
    cursor: str | None


def dead_errors(
    queue: str, after: str | None = None, *, most: int = LOOKED, clock: Callable[[], float] = time.monotonic
) -> DeadErrors:
    """Group dead items behind a place, each read a transaction of its own; raise `QueueNotFound`."""
    found: dict[str, Group] = {}
    reading, until, looked, before = get_store().queue(queue), clock() + SECONDS, 0, 0
    while True:
        try:
            step = reading.search(Query(state="dead"), end="max", after=after, limit=_READ, scan=_READ, preview=0)
        except BadCursor:
            if after is None:
                raise
            after = None
            continue
        before = before if looked else step.searched_so_far - step.searched
        looked, after = looked + step.searched, step.cursor
        for item in step.items:
            assert item.died_at is not None
            error = error_group(item.reason)
            group = found.get(error)
            if group is None:
                found[error] = group = Group(error=error, first=item.died_at, last=item.died_at, sample=item.id)
            group.count += 1
            group.first, group.last = min(group.first, item.died_at), max(group.last, item.died_at)
        if after is None or looked >= most or clock() >= until:
            break
    groups = sorted(found.values(), key=lambda group: -group.count)
    return DeadErrors(groups=groups, before=before, looked=looked, cursor=after)


def shown(queue: str, asked: Asked, after: str | None) -> dict[str, Any] | None:
    """Return what the list of dead items shows of their errors; None where it is not the whole list."""
    if asked.state != "dead" or asked.searching or asked.after is not None:
        return None
    found = dead_errors(queue, after)
    if not found.groups:
        return None
    return {
        "rows": [(group, group.links(queue)) for group in found.groups[:SHOWN]],
        "more": len(found.groups) - SHOWN if len(found.groups) > SHOWN else 0,
        "begin": found.before + 1,
        "end": found.before + found.looked,
        "next_url": "" if found.cursor is None else asked.address(errors=found.cursor),
    }
