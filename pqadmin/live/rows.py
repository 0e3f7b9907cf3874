"""What pages and frames are made from: rows, their sum, and the whole board at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pqadmin.live.outlook import Outlook, Problem, State
from queues.status import QueueStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue, as last read, with what follows from watching it. Rates in items per second, to three digits."""

    status: QueueStatus
    rate_in: float | None
    rate_out: float | None
    state: State
    outlook: Outlook
    problem: Problem
    #: Seconds until nothing is ready, at the present rates; only while draining.
    clears_in: float | None
    #: Items per second by which the queue grows; only while growing.
    grows_by: float | None
    #: Since when nothing has left, as far as was watched; only while stalled.
    quiet_since: datetime | None
    #: When the status was known to hold.
    as_of: datetime

    @property
    def ready(self) -> int | None:
        """Return how many items are ready; None for an attached queue that was not counted yet."""
        return depth_of(self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The attached queues in a sum, whose depths are as of their counts."""

    queues: int = 0
    ready: int = 0
    #: When the oldest of these counts began; None when nothing was counted yet.
    counted_at: datetime | None = None
    #: Queues that were not counted yet, so that their items are in no sum.
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All queues together: the tiles above the table."""

    queues: int
    #: Attached queues included, as far as they were counted.
    ready: int
    delayed: int
    leased: int
    dead: int
    #: None until a rate is known for any queue.
    rate_in: float | None
    rate_out: float | None
    #: When the oldest ready item of all queues was pushed, and where it lies.
    oldest: datetime | None
    oldest_queue: str | None
    #: When something falls due next, in any queue.
    next_due: datetime | None
    next_expiry: datetime | None
    #: How many queues need a look, by reason.
    problems: Mapping[str, int]
    #: The oldest reading among the queues that were added up.
    as_of: datetime
    #: Queues that exist and were not read yet.
    unread: int
    attached: Attached

    @property
    def problem_count(self) -> int:
        """Return how many queues need a look."""
        return sum(self.problems.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Every queue as last known, sorted by name; never changes once made."""

    snapshot_version: int
    at: datetime
    rows: Sequence[Row]
    summary: Summary


def total_of(rows: Sequence[Row], *, queues: int, now: datetime) -> Summary:
    """Add up rows; `queues` is how many there are, read or not."""
    known = [row for row in rows if row.rate_in is not None]
    oldest = min((row for row in rows if row.status.oldest is not None), key=_oldest, default=None)
    problems: dict[str, int] = {}
    for row in rows:
        if row.problem:
            problems[str(row.problem)] = problems.get(str(row.problem), 0) + 1
    return Summary(
        queues=queues,
        ready=sum(row.ready or 0 for row in rows),
        delayed=sum(row.status.totals.delayed for row in rows),
        leased=sum(row.status.totals.leased for row in rows),
        dead=sum(row.status.totals.dead for row in rows),
        rate_in=three_digits(sum(row.rate_in or 0.0 for row in known)) if known else None,
        rate_out=three_digits(sum(row.rate_out or 0.0 for row in known)) if known else None,
        oldest=oldest.status.oldest if oldest else None,
        oldest_queue=oldest.status.name if oldest else None,
        next_due=min((row.status.next_due for row in rows if row.status.next_due is not None), default=None),
        next_expiry=min((row.status.next_expiry for row in rows if row.status.next_expiry is not None), default=None),
        problems=problems,
        as_of=min((row.as_of for row in rows), default=now),
        unread=max(0, queues - len(rows)),
        attached=attached_of(rows),
    )


def attached_of(rows: Sequence[Row]) -> Attached:
    """Add up the attached queues among rows."""
    among = [row.status for row in rows if row.status.attached]
    counted = [status for status in among if status.counted_at is not None]
    return Attached(
        queues=len(among),
        ready=sum(status.totals.ready for status in counted),
        counted_at=min((status.counted_at for status in counted if status.counted_at is not None), default=None),
        uncounted=len(among) - len(counted),
    )


def depth_of(status: QueueStatus) -> int | None:
    """Return how many items are ready; None for an attached queue that was not counted yet."""
    return None if status.attached and status.counted_at is None else status.totals.ready


def attached_row(status: QueueStatus, as_of: datetime) -> Row:
    """Return the row of an attached queue: others' traffic is not seen, so nothing follows from watching it."""
    return Row(
        status=status,
        rate_in=None,
        rate_out=None,
        state=State.ATTACHED,
        outlook=Outlook.ATTACHED,
        problem=Problem.NONE,
        clears_in=None,
        grows_by=None,
        quiet_since=None,
        as_of=as_of,
    )


def three_digits(value: float | None) -> float | None:
    """Keep three digits: enough to read, few enough that a steady rate stays the same, on pages and in frames."""
    return None if value is None else float(f"{value:.3g}")


def _oldest(row: Row) -> datetime:
    assert row.status.oldest is not None
    return row.status.oldest
