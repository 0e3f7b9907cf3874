"""Verdict on a queue: its level, the reasons with their numbers, and its trend.

Values, not texts: pages, commands and the API put them into words. Numbers are rounded, and keep what was told while
the true one is close to it, so that a text changes only when there is something new to say.
"""

from enum import IntEnum, StrEnum

from msgspec import Struct
from msgspec.structs import replace


class Level(IntEnum):
    """How urgent a queue is; a larger one needs attention sooner."""

    OK = 0
    #: Nothing can be said, for the reason that is told: it is never shown as ok.
    UNKNOWN = 1
    WARNING = 2
    CRITICAL = 3


class Code(StrEnum):
    """Why a queue has its level, the most telling first."""

    #: The records cannot be read.
    UNREADABLE = "unreadable"
    #: Nothing was recorded for a while, or never: no process does the upkeep.
    STALE = "stale"
    #: No consumer has taken, and none is known.
    NO_CONSUMER = "no-consumer"
    #: There are consumers, and none took.
    NONE_TAKEN = "none-taken"
    #: Consumers take, and finish nothing.
    NOTHING_DONE = "nothing-done"
    GROWING = "growing"
    #: Much of what is taken comes back.
    RETRIES = "retries"
    #: Beyond a target.
    OLD = "old"
    DEEP = "deep"
    WAITS = "waits"
    DEAD = "dead"
    #: Counters and items were seen to disagree.
    DRIFT = "drift"
    PAUSED = "paused"
    #: Other programs write the items: their traffic is unknown.
    ATTACHED = "attached"
    #: Targets that count for it cannot be read.
    TARGETS = "targets"
    #: Nothing was ever taken, in the first hour: no consumer was started yet, perhaps.
    QUIET = "quiet"


class Trend(StrEnum):
    """Where the ready items are heading."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    STEADY = "steady"
    DRAINING = "draining"
    GROWING = "growing"
    STALLED = "stalled"
    PAUSED = "paused"


class Reason(Struct, frozen=True, array_like=True):
    """One reason of a verdict."""

    code: Code
    level: Level
    #: When it began, in seconds since the epoch by the store's clock.
    since: float
    #: The number that it is about: items, seconds, items per second, consumers or a share; None where there is none.
    value: float | None = None
    #: The target that it is beyond.
    limit: float | None = None


class Verdict(Struct, frozen=True, array_like=True):
    """What is to be said of a queue."""

    level: Level
    #: Since when it has this level.
    since: float
    #: The worst first.
    reasons: tuple[Reason, ...] = ()
    trend: Trend = Trend.UNKNOWN
    #: Seconds until the ready items are gone, at the present pace; of a draining queue.
    clears_in: float | None = None
    #: Items per second by which a growing queue grows.
    grows_by: float | None = None

    @property
    def codes(self) -> tuple[Code, ...]:
        """The codes of all reasons."""
        return tuple(reason.code for reason in self.reasons)


#: A number that differs by a smaller share from the one that was told is not told anew; counts below are exact.
_CLOSE, _EXACT = 0.25, 100


def told_roughly(value: float | None, before: float | None) -> float | None:
    """Return an estimate as it is told: to one digit, and as before until it is half of that or twice."""
    if value is None or (before is not None and before / 2 <= value <= before * 2):
        return None if value is None else before
    return float(f"{value:.1g}")


#: The count from which on a lower bound is told.
AT_LEAST = 10


def told_at_least(value: float) -> float:
    """Return a count as it is told: exactly below ten, then as at least 10, 20, 50, 100 and so on."""
    power = 10.0 ** (len(str(int(value))) - 1)
    return value if value < AT_LEAST else max(step * power for step in (1, 2, 5) if step * power <= value)


def told(value: float | None, before: float | None) -> float | None:
    """Return a number as it is told: to two digits, and as before while it is close to that; a small count exactly."""
    if value is None or _is_exact(value):
        return value
    if before is not None and abs(value - before) <= _CLOSE * abs(before):
        return before
    return float(f"{value:.2g}")


def _is_exact(value: float) -> bool:
    return value < _EXACT and value.is_integer()


def with_estimates(verdict: Verdict, recorded: Verdict) -> Verdict:
    """Return a verdict with the estimates that a recorded one tells of the same reasons and trend."""
    known = {
        reason.code: reason.value
        for reason in recorded.reasons
        if reason.value is not None and not _is_exact(reason.value)
    }
    reasons = tuple([replace(reason, value=known.get(reason.code, reason.value)) for reason in verdict.reasons])
    if verdict.trend is not recorded.trend:
        return replace(verdict, reasons=reasons)
    return replace(verdict, reasons=reasons, clears_in=recorded.clears_in, grows_by=recorded.grows_by)
