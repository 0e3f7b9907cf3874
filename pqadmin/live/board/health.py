"""The health of a queue: its state, its trend, and whether it needs attention.

Pure rules over known values. Codes, not texts: pages and the browser put them into words.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from queues.admin import HealthCode, HealthTrend, HealthVerdict, Targets

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
    #: What is taken comes back: handlers fail.
    FAILING = "failing"
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
    growing_after: float = 120.0
    #: Seconds that the oldest claimable item may wait.
    old_after: float = 900.0
    #: Dead items from which on they are a problem.
    dead_from: int = 1

    @property
    def targets(self) -> Targets:
        """The same as the recorder's targets."""
        return Targets(
            no_consumer=self.stalled_after, growing=self.growing_after, oldest=self.old_after, dead=self.dead_from
        )


DEFAULT_RULES = Rules()


class Verdict(NamedTuple):
    """The result of the rules, to three digits. `clears_in` in seconds, `grows_by` in items per second."""

    state: State
    outlook: Outlook
    problem: Problem = Problem.NONE
    #: Further reasons, the worst first.
    more: tuple[Problem, ...] = ()
    clears_in: float | None = None
    grows_by: float | None = None


def is_growing(ready: int, rate_in: float | None, rate_out: float | None) -> bool:
    """Return whether clearly more arrives than leaves while items wait."""
    if not ready or rate_in is None or rate_out is None:
        return False
    return rate_in - rate_out > _tolerance(rate_in, rate_out)


def judge(
    *,
    ready: int,
    paused: bool = False,
    drift: bool = False,
    rate_in: float | None = None,
    rate_out: float | None = None,
    quiet_for: float = 0.0,
    growing_for: float = 0.0,
    dead: int = 0,
    oldest_for: float | None = None,
    rules: Rules = DEFAULT_RULES,
) -> Verdict:
    """Apply the rules: a pause first, then stalled, growing, draining, steady, empty.

    Rates are items per second, None while unknown. Items have been ready for `quiet_for` seconds without anything
    leaving; the oldest one has waited for `oldest_for`.
    """
    state, outlook = _trend(rules, ready, paused, rate_in, rate_out, quiet_for, growing_for)
    excess = (rate_in or 0.0) - (rate_out or 0.0)
    reasons = {
        Problem.STALLED: state is State.STALLED,
        Problem.GROWING: state is State.GROWING,
        Problem.DRIFT: drift,
        Problem.OLD: rules.old_after and not paused and (oldest_for or 0.0) >= rules.old_after,
        Problem.DEAD: rules.dead_from and dead >= rules.dead_from,
        Problem.PAUSED: paused,
    }
    first, *more = [problem for problem, holds in reasons.items() if holds] or [Problem.NONE]
    return Verdict(
        state=state,
        outlook=outlook,
        problem=first,
        more=tuple(more),
        clears_in=three_digits(ready / -excess) if outlook is Outlook.DRAINING else None,
        grows_by=three_digits(excess) if outlook is Outlook.GROWING else None,
    )


_RECORDED = {
    HealthTrend.STALLED: (State.STALLED, Outlook.STALLED),
    HealthTrend.GROWING: (State.GROWING, Outlook.GROWING),
    HealthTrend.DRAINING: (State.OK, Outlook.DRAINING),
}
_OF_CODES = {
    HealthCode.NO_CONSUMER: Problem.STALLED,
    HealthCode.NONE_TAKEN: Problem.STALLED,
    HealthCode.NOTHING_DONE: Problem.FAILING,
    HealthCode.RETRIES: Problem.FAILING,
    HealthCode.GROWING: Problem.GROWING,
    HealthCode.DRIFT: Problem.DRIFT,
    HealthCode.OLD: Problem.OLD,
    HealthCode.DEAD: Problem.DEAD,
    HealthCode.PAUSED: Problem.PAUSED,
}


def as_recorded(verdict: HealthVerdict, *, ready: int, paused: bool, moving: bool) -> Verdict:
    """Return a verdict of the recorded health in the terms of rows; `moving` says that items came or went just now."""
    if paused:
        state, outlook = State.PAUSED, Outlook.PAUSED
    elif not ready:
        state, outlook = (State.OK, Outlook.STEADY) if moving else (State.EMPTY, Outlook.EMPTY)
    else:
        state, outlook = _RECORDED.get(verdict.trend, (State.OK, Outlook.STEADY))
        if HealthCode.QUIET in verdict.codes:
            outlook = Outlook.UNKNOWN
    found = {_OF_CODES[code] for code in verdict.codes if code in _OF_CODES}
    first, *more = [problem for problem in PROBLEMS if problem in found] or [Problem.NONE]
    return Verdict(state, outlook, first, tuple(more), verdict.clears_in, verdict.grows_by)


def stalled_since(verdict: HealthVerdict) -> float | None:
    """Return since when nothing was taken, in seconds since the epoch; None for a queue that is not stalled."""
    reasons = (reason.since for reason in verdict.reasons if _OF_CODES.get(reason.code) is Problem.STALLED)
    return next(reasons, None)


def _trend(
    rules: Rules,
    ready: int,
    paused: bool,
    rate_in: float | None,
    rate_out: float | None,
    quiet_for: float,
    growing_for: float,
) -> tuple[State, Outlook]:
    if paused:
        return State.PAUSED, Outlook.PAUSED
    if not ready:
        return (State.OK, Outlook.STEADY) if rate_in or rate_out else (State.EMPTY, Outlook.EMPTY)
    if rules.stalled_after and quiet_for >= rules.stalled_after:
        return State.STALLED, Outlook.STALLED
    if rate_in is None or rate_out is None:
        return State.OK, Outlook.UNKNOWN
    if is_growing(ready, rate_in, rate_out):
        lasting = rules.growing_after and growing_for >= rules.growing_after
        return State.GROWING if lasting else State.OK, Outlook.GROWING
    if rate_out - rate_in > _tolerance(rate_in, rate_out):
        return State.OK, Outlook.DRAINING
    return State.OK, Outlook.STEADY if rate_in or rate_out else Outlook.UNKNOWN


def three_digits(value: float | None) -> float | None:
    """Keep three digits: enough to read, few enough that a steady rate stays the same, on pages and in frames."""
    return None if value is None else float(f"{value:.3g}")


def _tolerance(rate_in: float, rate_out: float) -> float:
    return max(EVEN, EVEN_SHARE * max(rate_in, rate_out))
