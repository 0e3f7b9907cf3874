"""Time in breach: how much of the last day a queue was beyond each target, and how much of it is unknown.

Seconds are added up by the hour, so that the record stays small however often a queue crosses a limit.
"""

from collections.abc import Mapping

from msgspec import Struct, field

_HOUR, _DAY = 3_600, 86_400
#: Seconds by limit, and by the hour since the epoch.
_Spent = dict[str, dict[int, int]]


class Share(Struct, frozen=True):
    """Shares of the last 24 hours, of one target."""

    beyond: float
    unknown: float


NOTHING_KNOWN = Share(0.0, 1.0)


class Breaches(Struct, frozen=True, array_like=True):
    """The time that one queue spent beyond its targets."""

    #: When the queue was observed first.
    since: float = 0.0
    beyond: _Spent = field(default_factory=dict)
    unknown: _Spent = field(default_factory=dict)

    def after(self, begin: float, end: float, *, beyond: Mapping[str, float], unknown: set[str]) -> "Breaches":
        """Return the times after a stretch, given since when a limit was crossed, and of which that is unknown."""
        since = self.since or begin
        if end < begin:  # the clock stepped back: nothing is known of the future
            return Breaches(min(since, end), _kept(self.beyond, end), _kept(self.unknown, end))
        if int(end) == int(begin) or not (beyond or unknown):
            return self if self.since else Breaches(since)
        return Breaches(
            since,
            _added(self.beyond, {limit: max(begin, crossed) for limit, crossed in beyond.items()}, end),
            _added(self.unknown, dict.fromkeys(unknown, begin), end),
        )

    def share(self, limit: str, now: float) -> Share:
        """Return the share of the last 24 hours beyond a limit, and the share that is unknown."""
        begin = int(now) - _DAY
        before = min(max(0, int(self.since or now) - begin), _DAY)
        beyond = min(_within(self.beyond.get(limit, {}), begin), _DAY - before)
        unknown = min(before + _within(self.unknown.get(limit, {}), begin), _DAY - beyond)
        return Share(beyond / _DAY, unknown / _DAY)


def _kept(spent: _Spent, now: float) -> _Spent:
    """Return the times of the last day."""
    first, last = int(now - _DAY) // _HOUR, int(now) // _HOUR
    days = {limit: {hour: n for hour, n in hours.items() if first <= hour <= last} for limit, hours in spent.items()}
    return {limit: hours for limit, hours in days.items() if hours}


def _added(spent: _Spent, begins: Mapping[str, float], end: float) -> _Spent:
    """Return the times of the last day with some more, each from its beginning up to one end."""
    found = _kept(spent, end)
    for limit, begin in begins.items():
        hours, at = found.setdefault(limit, {}), int(max(begin, end - _DAY))
        while at < int(end):
            hour = at // _HOUR
            until = min(int(end), (hour + 1) * _HOUR)
            hours[hour] = min(_HOUR, hours.get(hour, 0) + until - at)
            at = until
    return found


def _within(hours: Mapping[int, int], begin: int) -> int:
    """Return the seconds of the day after a moment; of the hour in which it begins, its share."""
    return sum(
        seconds * min(_HOUR, (hour + 1) * _HOUR - begin) // _HOUR
        for hour, seconds in hours.items()
        if begin < (hour + 1) * _HOUR and hour * _HOUR <= begin + _DAY
    )
