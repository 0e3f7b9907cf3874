"""What pages and frames are made from: one queue, as last read, with what follows from watching it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pqadmin.live.board.health import Outlook, Problem, State
from queues import QueueStatus


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
    #: When the status held that the row was made of; later readings that found the same leave it as it is.
    as_of: datetime
    #: Further reasons why the queue needs a look, the worst first.
    more: tuple[Problem, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return why the queue needs a look, the worst first."""
        return (self.problem, *self.more) if self.problem else ()

    @property
    def ready(self) -> int | None:
        """Return how many items are ready; None where nobody knows: unreadable, or attached and not counted yet."""
        return depth_of(self.status)


def depth_of(status: QueueStatus) -> int | None:
    """Return how many items are ready; None where nobody knows: unreadable, or attached and not counted yet."""
    unknown = status.unreadable or (status.attached and status.counted_at is None)
    return None if unknown else status.totals.ready


def attached_row(status: QueueStatus, as_of: datetime) -> Row:
    """Return the row of an attached queue: others' traffic is not seen, so nothing follows from watching it."""
    return _unwatched(status, as_of, State.ATTACHED, Outlook.ATTACHED, Problem.NONE)


def unreadable_row(status: QueueStatus, as_of: datetime) -> Row:
    """Return the row of a queue whose records cannot be read: nothing follows from it but that somebody must look."""
    return _unwatched(status, as_of, State.UNREADABLE, Outlook.UNREADABLE, Problem.UNREADABLE)


def _unwatched(status: QueueStatus, as_of: datetime, state: State, outlook: Outlook, problem: Problem) -> Row:
    return Row(
        status=status,
        rate_in=None,
        rate_out=None,
        state=state,
        outlook=outlook,
        problem=problem,
        clears_in=None,
        grows_by=None,
        quiet_since=None,
        as_of=as_of,
    )


def three_digits(value: float | None) -> float | None:
    """Keep three digits: enough to read, few enough that a steady rate stays the same, on pages and in frames."""
    return None if value is None else float(f"{value:.3g}")
