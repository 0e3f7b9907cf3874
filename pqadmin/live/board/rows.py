"""The row of one queue, as last read, with its rates and health; pages and frames show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pqadmin.live.board.health import Outlook, Problem, State
from queues import QueueStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue, as last read, with rates and health. Rates in items per second, to three digits."""

    status: QueueStatus
    #: When the status held that the row was made of; later readings that found the same leave it as it is.
    as_of: datetime
    state: State
    outlook: Outlook
    problem: Problem = Problem.NONE
    #: Further reasons why the queue needs attention, the worst first.
    more: tuple[Problem, ...] = ()
    rate_in: float | None = None
    rate_out: float | None = None
    #: Seconds until nothing is ready, at the present rates; only while draining.
    clears_in: float | None = None
    #: Items per second by which the queue grows; only while growing.
    grows_by: float | None = None
    #: Since when nothing has left, as far as was watched; only while stalled.
    quiet_since: datetime | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return why the queue needs attention, the worst first."""
        return (self.problem, *self.more) if self.problem else ()

    @property
    def ready(self) -> int | None:
        """Return how many items are ready; None if unknown: unreadable, or attached and not counted yet."""
        return depth_of(self.status)


def depth_of(status: QueueStatus) -> int | None:
    """Return how many items are ready; None if unknown: unreadable, or attached and not counted yet."""
    unknown = status.unreadable or (status.attached and status.counted_at is None)
    return None if unknown else status.totals.ready


def attached_row(status: QueueStatus, as_of: datetime) -> Row:
    """Return the row of an attached queue, whose traffic is unknown."""
    return Row(status=status, as_of=as_of, state=State.ATTACHED, outlook=Outlook.ATTACHED)


def unreadable_row(status: QueueStatus, as_of: datetime) -> Row:
    """Return the row of a queue with unreadable records, which needs attention."""
    return Row(
        status=status,
        as_of=as_of,
        state=State.UNREADABLE,
        outlook=Outlook.UNREADABLE,
        problem=Problem.UNREADABLE,
    )


def three_digits(value: float | None) -> float | None:
    """Keep three digits: enough to read, few enough that a steady rate stays the same, on pages and in frames."""
    return None if value is None else float(f"{value:.3g}")
