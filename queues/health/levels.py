"""Levels of health, and what a verdict consists of: level, reasons with their numbers, trend.

Values, not texts: pages, commands and the API put them into words. `queues.health.verdict` makes them.
"""

from enum import IntEnum, StrEnum

from msgspec import Struct


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
    #: Nothing was recorded for a while: no process does the upkeep. With a number: too little was watched since.
    STALE = "stale"
    #: No consumer has taken, and none is known.
    NO_CONSUMER = "no-consumer"
    #: There are consumers, and none took.
    NONE_TAKEN = "none-taken"
    #: Consumers take, and finish nothing.
    NOTHING_DONE = "nothing-done"
    #: It holds nearly as many items as its limit allows; with a number, it reached it: pushes are refused.
    FULL = "full"
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
    #: When a stall, growth, or being full ended of which the level holds for a while; None: it goes on.
    until: float | None = None


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
