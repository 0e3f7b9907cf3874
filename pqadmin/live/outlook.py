"""What an operator should think of a queue: its state, where it is heading, and whether it needs a look.

Pure rules over what is known. Codes, not texts: pages and the browser put them into words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Seconds without anything leaving after which a queue that holds ready items is stalled.
STALLED_AFTER = 60.0
#: Seconds a queue must have grown without a break before that is a problem and not a burst.
GROWING_AFTER = 60.0
#: Items per second below which two rates count as equal, and the share of the larger one likewise.
EVEN, EVEN_SHARE = 0.05, 0.05


class State(StrEnum):
    """The state shape and word of a row."""

    OK = "ok"
    EMPTY = "empty"
    GROWING = "growing"
    STALLED = "stalled"
    PAUSED = "paused"
    #: Others write the items: nothing is known of their traffic.
    ATTACHED = "attached"


class Outlook(StrEnum):
    """Where the ready items are heading."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    STEADY = "steady"
    DRAINING = "draining"
    GROWING = "growing"
    STALLED = "stalled"
    PAUSED = "paused"
    ATTACHED = "attached"


class Problem(StrEnum):
    """Why a queue needs a look; NONE when it does not."""

    NONE = ""
    STALLED = "stalled"
    GROWING = "growing"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the rules look at. Rates in items per second, None while unknown; times in seconds."""

    ready: int
    paused: bool = False
    drift: bool = False
    rate_in: float | None = None
    rate_out: float | None = None
    quiet_for: float = 0.0
    growing_for: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules say. `clears_in` in seconds, `grows_by` in items per second, each only where it applies."""

    state: State
    outlook: Outlook
    problem: Problem
    clears_in: float | None = None
    grows_by: float | None = None


def is_growing(ready: int, rate_in: float | None, rate_out: float | None) -> bool:
    """Say whether clearly more arrives than leaves while items wait."""
    if not ready or rate_in is None or rate_out is None:
        return False
    return rate_in - rate_out > _tolerance(rate_in, rate_out)


def judge(known: Known) -> Verdict:
    """Apply the rules: a pause first, then stalled, growing, draining, steady, empty."""
    drift = Problem.DRIFT if known.drift else Problem.NONE
    if known.paused:
        return Verdict(state=State.PAUSED, outlook=Outlook.PAUSED, problem=drift)
    rate_in, rate_out = known.rate_in, known.rate_out
    if not known.ready:
        if rate_in or rate_out:
            return Verdict(state=State.OK, outlook=Outlook.STEADY, problem=drift)
        return Verdict(state=State.EMPTY, outlook=Outlook.EMPTY, problem=drift)
    if known.quiet_for >= STALLED_AFTER:
        return Verdict(state=State.STALLED, outlook=Outlook.STALLED, problem=Problem.STALLED)
    if rate_in is None or rate_out is None:
        return Verdict(state=State.OK, outlook=Outlook.UNKNOWN, problem=drift)
    if is_growing(known.ready, rate_in, rate_out):
        lasting = known.growing_for >= GROWING_AFTER
        return Verdict(
            state=State.GROWING if lasting else State.OK,
            outlook=Outlook.GROWING,
            problem=Problem.GROWING if lasting else drift,
            grows_by=rate_in - rate_out,
        )
    if rate_out - rate_in > _tolerance(rate_in, rate_out):
        return Verdict(
            state=State.OK,
            outlook=Outlook.DRAINING,
            problem=drift,
            clears_in=known.ready / (rate_out - rate_in),
        )
    if not rate_in and not rate_out:
        return Verdict(state=State.OK, outlook=Outlook.UNKNOWN, problem=drift)
    return Verdict(state=State.OK, outlook=Outlook.STEADY, problem=drift)


def _tolerance(rate_in: float, rate_out: float) -> float:
    return max(EVEN, EVEN_SHARE * max(rate_in, rate_out))
