"""Verdict on a queue: critical, warning, unknown or ok, with its reasons and trend."""

from collections.abc import Mapping

from queues.health.averages import NO_TRAFFIC
from queues.health.health import STALE, Health
from queues.health.latch import Signal
from queues.health.levels import Code, Level, Reason, Trend, Verdict
from queues.health.rounding import told, told_roughly
from queues.health.signals import growth_of, is_draining, is_failing, is_unmoved


def at(health: Health, now: float) -> Verdict:
    """Return the verdict as it is at a time after the last observation: unknown where that is long ago."""
    if now - health.seen.at <= STALE or health.settled:
        return health.verdict
    return unknown(Code.STALE, health.seen.at)


def unknown(code: Code, since: float) -> Verdict:
    """Return the verdict where nothing is known, and why."""
    return Verdict(Level.UNKNOWN, since, (Reason(code, Level.UNKNOWN, since),))


def verdict_of(before: Verdict, health: Health, signals: list[Signal]) -> Verdict:
    """Return the verdict that the latches give, with the numbers that the signals tell."""
    seen, at = health.seen, health.seen.at
    told_before = {reason.code: reason.value for reason in before.reasons}
    limits = {reason.code: reason.limit for reason in before.reasons}
    ends = {reason.code: reason.until for reason in before.reasons}
    over = _over(health, signals, before)
    reasons = []
    for signal in signals:
        latch = health.latches.get(signal.code.value)
        if latch is not None and latch.level:
            tell = told_roughly if signal.code is Code.GROWING else told
            value = tell(signal.value, told_before.get(signal.code))
            is_over = signal.code in over
            # Where no number of now explains the trouble, what was told stays.
            within = signal.limit and not signal.level and not signal.close
            if value is None or is_over or within:
                value = told_before.get(signal.code, value)
            until = (ends.get(signal.code) or at) if is_over else None
            limit = limits.get(signal.code) if is_over else signal.limit
            reasons.append(Reason(signal.code, latch.level, min(latch.since, at), value, limit, until))
    if any(reason.code is Code.NO_CONSUMER for reason in reasons):  # then none of them takes either
        reasons = [reason for reason in reasons if reason.code is not Code.NONE_TAKEN]
    raised = {reason.code: reason.level for reason in reasons}
    reasons = [reason for reason in reasons if not _follows(reason, raised)]
    reasons.sort(key=lambda reason: -reason.level)
    level = max((reason.level for reason in reasons), default=Level.OK)
    blind = {
        Code.STALE: not reasons and health.is_unproven,
        Code.ATTACHED: seen.attached,
        Code.TARGETS: health.targets.unreadable,
    }
    for code in [code for code, holds in blind.items() if holds]:
        level = max(level, Level.UNKNOWN)
        since = next((reason.since for reason in before.reasons if reason.code is code), at)
        reasons.append(Reason(code, Level.UNKNOWN, since, health.proof if code is Code.STALE else None))
    since = before.since if level is before.level else at
    if not reasons and seen.ready and seen.paused is None and health.is_quiet:
        reasons.append(Reason(Code.QUIET, Level.OK, health.began or at))
    trend = _trend(health, over)
    drained = health.marks.clears_in if trend is Trend.DRAINING else None
    grown = growth_of(health) if trend is Trend.GROWING else None
    return Verdict(
        level=level,
        since=min(since, at),
        reasons=tuple(reasons),
        trend=trend,
        clears_in=told_roughly(drained, before.clears_in),
        grows_by=before.grows_by if grown is None and trend is Trend.GROWING else told_roughly(grown, before.grows_by),
    )


#: Reasons that are told with their end: nothing is taken or finished, and pushes are refused.
_END = (Code.NO_CONSUMER, Code.NONE_TAKEN, Code.NOTHING_DONE, Code.FULL)


def _over(health: Health, signals: list[Signal], before: Verdict) -> frozenset[Code]:
    """Return the reasons that have ended, though their levels hold for a while."""
    found = ((code, health.latches.get(code)) for code in _END)
    close = {signal.code for signal in signals if signal.close}
    ended = {code for code, latch in found if latch is not None and latch.level and not latch.toward} - close
    grows = next((signal.level for signal in signals if signal.code is Code.GROWING), Level.OK)
    # Lows that rise no more are no end by themselves; one that shrinks since has ended, until they rise again.
    shrinks = health.averages.net[0] < -NO_TRAFFIC
    told = any(reason.code is Code.GROWING and reason.until is not None for reason in before.reasons)
    latch = health.latches.get(Code.GROWING)
    if latch is not None and latch.level and (grows == Level.OK or (grows is None and (shrinks or told))):
        ended.add(Code.GROWING)
    return frozenset(ended)


#: Reasons that follow from another one, which then tells enough.
_FOLLOWS: Mapping[Code, frozenset[Code]] = {
    Code.RETRIES: frozenset({Code.NOTHING_DONE}),
    Code.GROWING: frozenset({Code.NO_CONSUMER, Code.NONE_TAKEN, Code.NOTHING_DONE, Code.PAUSED}),
}


def _follows(reason: Reason, raised: Mapping[Code, int]) -> bool:
    """Say whether a reason follows from another one that is at least as grave."""
    return any(raised.get(cause, Level.OK) >= reason.level for cause in _FOLLOWS.get(reason.code, ()))


def _trend(health: Health, over: frozenset[Code]) -> Trend:
    seen, latches = health.seen, health.latches
    raised = {code for code, latch in latches.items() if latch.level} - over
    if seen.attached:
        return Trend.UNKNOWN
    if seen.paused is not None:
        return Trend.PAUSED
    hung = Code.NONE_TAKEN in raised
    if Code.NO_CONSUMER in raised or (hung and not seen.leased and health.silent >= health.targets.no_consumer):
        return Trend.STALLED
    if Code.GROWING in raised:
        return Trend.GROWING
    if hung or (seen.ready and (is_unmoved(health) or health.is_quiet or health.is_unproven)):
        return Trend.UNKNOWN
    if not seen.ready and health.averages.taken[0] <= NO_TRAFFIC:
        left = seen.leased and seen.consumers == 0 and seen.lost  # by a consumer that was killed
        return Trend.UNKNOWN if left or (seen.delayed and not seen.signs) else Trend.EMPTY
    if is_draining(health):
        return Trend.DRAINING
    # What is refused is not known.
    full = seen.is_full or Code.FULL in raised
    unsure = full or is_failing(health) or health.marks.may_rise(seen.ready)
    return Trend.UNKNOWN if over or unsure else Trend.STEADY
