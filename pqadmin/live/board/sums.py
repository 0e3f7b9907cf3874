"""Sums over the rows of a scope and over its groups. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from pqadmin.display import format as write
from pqadmin.live.board.health import LEVELS
from pqadmin.live.board.rates import three_digits
from pqadmin.live.board.rows import Row
from queues.admin import to_ms

#: Share of the queues in a sum that may have an unknown rate: a new queue has none for a second.
_UNRATED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The attached queues in a sum, with depths as of their counts."""

    queues: int = 0
    ready: int = 0
    #: When the oldest of these counts began; None when nothing was counted yet.
    counted_at: datetime | None = None
    #: Queues that were not counted yet, so that their items are in no sum.
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Queues together: the tiles above the table, or the heading of a group."""

    queues: int
    #: Attached queues included, as far as they were counted.
    ready: int
    delayed: int
    leased: int
    dead: int
    #: None until the rates of almost all queues are known.
    rate_in: float | None
    rate_out: float | None
    #: Since when the oldest claimable item of all queues is ready, and where it lies; nothing of a paused one is.
    oldest: datetime | None
    oldest_queue: str | None
    #: When something falls due next, in any queue.
    next_due: datetime | None
    next_expiry: datetime | None
    #: How many queues have each level, the worst first.
    levels: Mapping[str, int]
    #: The oldest reading among the queues that were added up; of a group, when it was added up.
    as_of: datetime
    #: Queues that exist and were not read yet.
    unread: int
    attached: Attached
    #: Of a group, the row that needs attention most.
    worst_row: Row | None = None

    @property
    def worst(self) -> tuple[str, int]:
        """The worst level of all, and how many queues have it. All is well where there is none."""
        return next(((level, n) for level, n in self.levels.items() if n), (LEVELS[-1], 0))


def total_of(rows: Sequence[Row], *, queues: int, as_of: datetime) -> Summary:
    """Add up rows; `queues` is how many there are, read or not, `as_of` the oldest reading."""
    statuses = [row.status for row in rows]
    totals = [status.totals for status in statuses]
    own = [row for row in rows if not (row.status.attached or row.status.unreadable)]
    rated = [row for row in own if row.rate_in is not None]
    known = rated and len(own) - len(rated) <= _UNRATED * len(own)
    found = Counter([row.level for row in rows])
    open_to_takes = [
        row.status for row in rows if row.status.pause is None or not row.status.pause.holds(to_ms(row.as_of))
    ]
    oldest = min(((status.oldest, status.name) for status in open_to_takes if status.oldest is not None), default=None)
    return Summary(
        queues=queues,
        ready=sum([row.ready or 0 for row in rows]),
        delayed=sum([total.delayed for total in totals]),
        leased=sum([total.leased for total in totals]),
        dead=sum([total.dead for total in totals]),
        rate_in=three_digits(sum([row.rate_in or 0.0 for row in rated])) if known else None,
        rate_out=three_digits(sum([row.rate_out or 0.0 for row in rated])) if known else None,
        oldest=None if oldest is None else oldest[0],
        oldest_queue=None if oldest is None else oldest[1],
        next_due=min((status.next_due for status in statuses if status.next_due is not None), default=None),
        next_expiry=min((status.next_expiry for status in statuses if status.next_expiry is not None), default=None),
        levels={level: found[level] for level in LEVELS},
        as_of=as_of,
        unread=max(0, queues - len(rows)),
        attached=attached_of(rows),
    )


def groups_of(rows: Sequence[Row], *, now: datetime) -> dict[str, Summary]:
    """Add up each group of rows, by its label."""
    members: dict[str, list[Row]] = {}
    for row in rows:
        members.setdefault(label_of(row.status.name), []).append(row)
    return {
        label: replace(
            total_of(them, queues=len(them), as_of=now),
            worst_row=min(them, key=lambda row: (row.rank, row.status.name)),
        )
        for label, them in members.items()
    }


@lru_cache(maxsize=32_768)
def label_of(name: str) -> str:
    """Return the group that a queue belongs to: its name, as shown, up to the last colon that leaves something."""
    return write.split_name(name)[0]


def attached_of(rows: Iterable[Row]) -> Attached:
    """Add up the attached queues among rows."""
    among = [row.status for row in rows if row.status.attached]
    counted = [status for status in among if status.counted_at is not None]
    return Attached(
        queues=len(among),
        ready=sum(status.totals.ready for status in counted),
        counted_at=min((status.counted_at for status in counted if status.counted_at is not None), default=None),
        uncounted=len(among) - len(counted),
    )
