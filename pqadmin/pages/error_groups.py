"""Dead items by the errors that they died of: groups of a bounded stretch of them, the newest first."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pqadmin.store import get_store
from queues import Query
from queues.admin import error_group

#: Items that one answer looks at, and seconds that it takes for that, at most.
LOOKED, SECONDS = 10_000, 0.25
#: Items of one read.
_READ = 500


@dataclass(slots=True, kw_only=True)
class Group:
    """Items that died of one error."""

    error: str
    count: int = 0
    first: datetime
    last: datetime
    #: The id of the newest of them.
    sample: str


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


def dead_errors(queue: str, after: str | None = None, *, most: int = LOOKED) -> DeadErrors:
    """Group dead items behind a place, each read a transaction of its own; raise `QueueNotFound` and `BadCursor`."""
    found: dict[str, Group] = {}
    reading, until, looked, before = get_store().queue(queue), time.monotonic() + SECONDS, 0, 0
    while True:
        step = reading.search(Query(state="dead"), end="max", after=after, limit=_READ, scan=_READ, preview=0)
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
        if after is None or looked >= most or time.monotonic() >= until:
            break
    groups = sorted(found.values(), key=lambda group: -group.count)
    return DeadErrors(groups=groups, before=before, looked=looked, cursor=after)
