"""The row of one queue, as last read, with its rates and health; pages and frames show it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pqadmin.live.board.health import (
    DEFAULT_RULES,
    PROBLEMS,
    Outlook,
    Problem,
    Rules,
    State,
    Verdict,
    as_recorded,
    judge,
    stalled_since,
    three_digits,
)
from queues import QueueStatus
from queues.admin import Health, to_ms

#: The worst reason first; a queue without any comes last.
_RANKS = {problem: rank for rank, problem in enumerate((*PROBLEMS, Problem.NONE))}


@dataclass(frozen=True, slots=True)
class Row:
    """One queue, as last read, with its health (a `Verdict`) and rates: items per second, to three digits."""

    status: QueueStatus
    #: When the status held that the row was made of; later readings that found the same leave it as it is.
    as_of: datetime
    state: State
    outlook: Outlook
    problem: Problem = Problem.NONE
    #: Further reasons why the queue needs attention, the worst first.
    more: tuple[Problem, ...] = ()
    #: Seconds until nothing is ready, at the present rates; only while draining.
    clears_in: float | None = None
    #: Items per second by which the queue grows; only while growing.
    grows_by: float | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    #: Since when nothing has left, as far as was watched; only while stalled.
    quiet_since: datetime | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return why the queue needs attention, the worst first."""
        return (self.problem, *self.more) if self.problem else ()

    @property
    def rank(self) -> int:
        """Return the place of the row's verdict among all verdicts: the worst is 0."""
        return _RANKS[self.problem]

    @property
    def ready(self) -> int | None:
        """Return how many items are ready; None if unknown: unreadable, or attached and not counted yet."""
        return depth_of(self.status)


def depth_of(status: QueueStatus) -> int | None:
    """Return how many items are ready; None if unknown: unreadable, or attached and not counted yet."""
    unknown = status.unreadable or (status.attached and status.counted_at is None)
    return None if unknown else status.totals.ready


def row_of(
    status: QueueStatus,
    as_of: datetime,
    rules: Rules = DEFAULT_RULES,
    *,
    at: datetime | None = None,
    rates: tuple[float, float] | None = None,
    quiet_for: float = 0.0,
    growing_for: float = 0.0,
    health: Health | None = None,
) -> Row:
    """Return the row of a status that was read at `as_of`, judged at `at` by what was watched since.

    The `health` that a recorder keeps decides; without one, the rates that this process has seen.
    The traffic of an attached queue is unknown, and nothing is known of an unreadable one, which needs attention.
    """
    if status.unreadable:
        return Row(status, as_of, *Verdict(State.UNREADABLE, Outlook.UNREADABLE, Problem.UNREADABLE))
    if status.attached:
        return Row(status, as_of, *Verdict(State.ATTACHED, Outlook.ATTACHED))
    at = at or as_of
    rate_in, rate_out = rates or (None, None)
    paused = status.pause is not None and status.pause.holds(to_ms(at))
    if health is None:
        verdict = judge(
            ready=status.totals.ready,
            paused=paused,
            drift=status.drift,
            rate_in=rate_in,
            rate_out=rate_out,
            quiet_for=quiet_for,
            growing_for=growing_for,
            dead=status.totals.dead,
            oldest_for=None if status.oldest is None else (at - status.oldest).total_seconds(),
            rules=rules,
        )
    else:
        verdict = as_recorded(
            health.verdict, ready=status.totals.ready, paused=paused, moving=bool(rate_in or rate_out)
        )
        quiet_since = stalled_since(health.verdict)
        quiet_for = 0.0 if quiet_since is None else at.timestamp() - quiet_since
    stalled = verdict.outlook is Outlook.STALLED
    return Row(
        status,
        as_of,
        *verdict,
        rate_in=three_digits(rate_in),
        rate_out=three_digits(rate_out),
        quiet_since=at - timedelta(seconds=quiet_for) if stalled else None,
    )
