"""The health of a queue: its state, its trend, and whether it needs attention.

Pure rules over known values. Codes, not texts: pages and the browser put them into words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Items per second below which two rates count as equal, and the share of the larger one likewise.
EVEN, EVEN_SHARE = 0.05, 0.05


class State(StrEnum):
    """The state shape and word of a row."""

    OK = "ok"
    EMPTY = "empty"
    GROWING = "growing"
    STALLED = "stalled"
    PAUSED = "paused"
    #: Other programs write the items: their traffic is unknown.
    ATTACHED = "attached"
    #: The queue's records are damaged, or of a newer release: nothing is known of it.
    UNREADABLE = "unreadable"


class Outlook(StrEnum):
    """The trend of the ready items."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    STEADY = "steady"
    DRAINING = "draining"
    GROWING = "growing"
    STALLED = "stalled"
    PAUSED = "paused"
    ATTACHED = "attached"
    UNREADABLE = "unreadable"


class Problem(StrEnum):
    """Why a queue needs attention, the worst first; NONE when it does not."""

    NONE = ""
    UNREADABLE = "unreadable"
    #: Ready items, and nothing taken for a while.
    STALLED = "stalled"
    #: Clearly more in than out for a while.
    GROWING = "growing"
    #: Counters and items were seen to disagree.
    DRIFT = "drift"
    #: The oldest item that can be taken has waited for long.
    OLD = "old"
    DEAD = "dead"
    PAUSED = "paused"


PROBLEMS = tuple(problem for problem in Problem if problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When something is a problem; 0 switches a rule off."""

    #: Seconds for which a queue held ready items without anything leaving, after which it is stalled.
    stalled_after: float = 60.0
    #: Seconds a queue must have grown without a break before that is a problem and not a burst.
    growing_after: float = 300.0
    #: Seconds that the oldest claimable item may wait.
    old_after: float = 900.0
    #: Dead items from which on they are a problem.
    dead_from: int = 1


DEFAULT_RULES = Rules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The input of the rules. Rates in items per second, None while unknown; times in seconds."""

    ready: int
    paused: bool = False
    drift: bool = False
    rate_in: float | None = None
    rate_out: float | None = None
    #: How long items have been ready without anything leaving.
    quiet_for: float = 0.0
    growing_for: float = 0.0
    dead: int = 0
    #: How long the oldest ready item has waited; None when there is none, or it is unknown.
    oldest_for: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of the rules. `clears_in` in seconds, `grows_by` in items per second, each only where it applies."""

    state: State
    outlook: Outlook
    problem: Problem
    #: Further reasons, the worst first.
    more: tuple[Problem, ...] = ()
    clears_in: float | None = None
    grows_by: float | None = None


def is_growing(ready: int, rate_in: float | None, rate_out: float | None) -> bool:
    """Return whether clearly more arrives than leaves while items wait."""
    if not ready or rate_in is None or rate_out is None:
        return False
    return rate_in - rate_out > _tolerance(rate_in, rate_out)


def judge(known: Known, rules: Rules = DEFAULT_RULES) -> Verdict:
    """Apply the rules: a pause first, then stalled, growing, draining, steady, empty."""
    reasons: list[Problem] = []
    state, outlook = _where(known, rules)
    clears_in = grows_by = None
    rate_in, rate_out = known.rate_in or 0.0, known.rate_out or 0.0
    if outlook is Outlook.GROWING:
        grows_by = rate_in - rate_out
    elif outlook is Outlook.DRAINING:
        clears_in = known.ready / (rate_out - rate_in)
    if state is State.STALLED:
        reasons.append(Problem.STALLED)
    elif state is State.GROWING:
        reasons.append(Problem.GROWING)
    if known.drift:
        reasons.append(Problem.DRIFT)
    if rules.old_after and not known.paused and (known.oldest_for or 0.0) >= rules.old_after:
        reasons.append(Problem.OLD)
    if rules.dead_from and known.dead >= rules.dead_from:
        reasons.append(Problem.DEAD)
    if known.paused:
        reasons.append(Problem.PAUSED)
    return Verdict(
        state=state,
        outlook=outlook,
        problem=reasons[0] if reasons else Problem.NONE,
        more=tuple(reasons[1:]),
        clears_in=clears_in,
        grows_by=grows_by,
    )


def _where(known: Known, rules: Rules) -> tuple[State, Outlook]:
    rate_in, rate_out = known.rate_in, known.rate_out
    if known.paused:
        return State.PAUSED, Outlook.PAUSED
    if not known.ready:
        return (State.OK, Outlook.STEADY) if rate_in or rate_out else (State.EMPTY, Outlook.EMPTY)
    if rules.stalled_after and known.quiet_for >= rules.stalled_after:
        return State.STALLED, Outlook.STALLED
    if rate_in is None or rate_out is None:
        return State.OK, Outlook.UNKNOWN
    if is_growing(known.ready, rate_in, rate_out):
        lasting = rules.growing_after and known.growing_for >= rules.growing_after
        return State.GROWING if lasting else State.OK, Outlook.GROWING
    if rate_out - rate_in > _tolerance(rate_in, rate_out):
        return State.OK, Outlook.DRAINING
    if not rate_in and not rate_out:
        return State.OK, Outlook.UNKNOWN
    return State.OK, Outlook.STEADY


def _tolerance(rate_in: float, rate_out: float) -> float:
    return max(EVEN, EVEN_SHARE * max(rate_in, rate_out))
