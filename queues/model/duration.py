"""Durations: a number of seconds or a `timedelta`."""

import math
from datetime import timedelta
from typing import TypeAlias

from queues.errors import BadTime, Words

#: A number of seconds, or a `timedelta`.
Duration: TypeAlias = float | timedelta
#: How long to wait for items: False does not wait, True waits forever, a duration is the longest wait.
Wait: TypeAlias = bool | Duration

DELAY, LEASE, TIMEOUT, WAIT = Words("A delay"), Words("A lease"), Words("A timeout"), Words("A wait")
KEEP, GRACE, BACKOFF = Words("A time to keep things"), Words("A grace time"), Words("A back-off")


def seconds_of(duration: object, what: Words, *, above_zero: bool = False, endless: bool = False) -> float:
    """Return a duration in seconds, 0 or more; raise `BadTime` for anything else.

    The message names `what`; `above_zero` refuses 0 too, `endless` accepts infinity.
    """
    seconds = _seconds(duration, what)
    if above_zero and seconds <= 0:
        raise BadTime("{what} is more than 0 seconds, not {value}.", what=what, value=f"{duration!r:.40}")
    if seconds < 0:
        raise BadTime("{what} is 0 seconds or more, not {value}.", what=what, value=f"{duration!r:.40}")
    if seconds == math.inf and not endless:
        raise BadTime("{what} has an end: infinity is no number of seconds here.", what=what)
    return seconds


def wait_seconds(wait: object) -> float:
    """Return the longest time to wait, in seconds: infinity for True. Raise `BadTime`."""
    if isinstance(wait, bool):
        return math.inf if wait else 0.0
    if not isinstance(wait, int | float | timedelta):
        raise BadTime("wait= is True, False, a number of seconds or a timedelta, not {value}.", value=f"{wait!r:.40}")
    return seconds_of(wait, WAIT, endless=True)


def delay_of(delay: object) -> timedelta:
    """Return a delay, which may be negative, as a timedelta; raise `BadTime`."""
    if isinstance(delay, timedelta):
        return delay
    seconds = _seconds(delay, DELAY)
    try:
        return timedelta(seconds=max(seconds, 0))
    except OverflowError:
        raise BadTime("An item is due before the year 10000.") from None


def _seconds(duration: object, what: Words) -> float:
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float) or duration != duration:
        raise BadTime(
            "{what} is a number of seconds or a timedelta, not {value}.", what=what, value=f"{duration!r:.40}"
        )
    return duration if isinstance(duration, float) else _as_float(duration)


def _as_float(number: int) -> float:
    try:
        float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    return number
