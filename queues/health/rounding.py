"""Rounding of the numbers of a verdict.

A rounded number stays while the true one is close to it, so that a text changes only when there is something new to
say.
"""

from msgspec.structs import replace

from queues.health.levels import Verdict

#: A number that differs by a smaller share from the one that was told is not told anew; counts below are exact.
_CLOSE, _EXACT = 0.25, 100


def told_roughly(value: float | None, before: float | None) -> float | None:
    """Return an estimate to one digit, or as before until it is half of that or twice."""
    if value is None or (before is not None and before / 2 <= value <= before * 2):
        return None if value is None else before
    return float(f"{value:.1g}")


#: The count from which on a lower bound is told.
AT_LEAST = 10


def told_at_least(value: float) -> float:
    """Return a count: exactly below ten, then as at least 10, 20, 50, 100 and so on."""
    power = 10.0 ** (len(str(int(value))) - 1)
    return value if value < AT_LEAST else max(step * power for step in (1, 2, 5) if step * power <= value)


def told(value: float | None, before: float | None) -> float | None:
    """Return a number to two digits, or as before while it is close to that. A small count is exact."""
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
