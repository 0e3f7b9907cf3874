"""When an item becomes ready: after a delay, or at a due time."""

from datetime import datetime, timedelta
from math import ceil

from queues.errors import BadTime, NaiveTime
from queues.model import ids
from queues.model.duration import Duration, delay_of

#: How long to wait from now, or until when.
When = Duration | datetime

#: The same, checked.
Moment = timedelta | datetime

_MILLISECOND = timedelta(milliseconds=1)


def due_ms(when: Moment, seconds: float) -> int | None:
    """Return when an item is due, never early. None: now, which is so many seconds since the epoch."""
    if isinstance(when, timedelta):
        if when <= timedelta(0):
            return None
        due = ceil(seconds * 1000) + _milliseconds(when)
    else:
        due = _milliseconds(when - ids.EPOCH)
        if due <= int(seconds * 1000):
            return None
    if due > ids.LAST_MS:
        raise BadTime("An item is due before the year 10000.")
    return due


def _milliseconds(span: timedelta) -> int:
    """Return a span in milliseconds, rounded up."""
    whole, rest = divmod(span, _MILLISECOND)
    return whole + bool(rest)


def either(delay: Duration | None, due: datetime | None) -> Moment | None:
    """Return the one of both that is given, checked; raise `BadTime`."""
    if delay is not None and due is not None:
        raise BadTime("An item has a delay or a due time, not both.")
    if due is not None and not isinstance(due, datetime):
        raise BadTime("A due time is a datetime, not {type}.", type=type(due).__name__)
    return check_when(due) if delay is None else delay_of(delay)


def check_when(when: object) -> Moment | None:
    """Return a delay or a due time, or None for at once. Raise `BadTime` for anything else."""
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise NaiveTime("A due time needs a time zone: a naive datetime says no moment.")
        return when
    return None if when is None else delay_of(when)
