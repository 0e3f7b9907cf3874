"""How fast a queue fills and empties, worked out from its running totals alone.

A `Meter` remembers a few points of a queue's monotonic totals. Between two points the totals are taken to have
grown evenly; after the last one they are taken to hold, which the next observation confirms or corrects by its
`held_until`. So a rate falls to zero by itself when nothing changes, without asking the store again.
"""

from collections import deque
from typing import NamedTuple

#: Seconds over which a rate is averaged.
WINDOW = 10.0
#: Seconds that must have been watched before a rate is told.
KNOWN_AFTER = 1.0
#: Seconds between remembered points; changes closer together share one.
RESOLUTION = 0.5


class Point(NamedTuple):
    """The totals at one moment of the monitor's clock (seconds)."""

    at: float
    arrived: int
    left: int


class Meter:
    """The recent totals of one queue. Not thread-safe; at most about 24 points, whatever the traffic."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: deque[Point] = deque()

    def observe(self, at: float, arrived: int, left: int, *, held_until: float | None = None) -> None:
        """Note the totals at `at`; the ones before are known to have held until `held_until`."""
        points = self._points
        if not points:
            points.append(Point(at, arrived, left))
            return
        last = points[-1]
        unwatched = held_until is not None and at - held_until > WINDOW
        # In another life of the queue its totals began anew; what went on unwatched is no rate of now.
        if unwatched or arrived < last.arrived or left < last.left:
            points.clear()
            points.append(Point(at, arrived, left))
            return
        if held_until is not None and held_until - last.at > RESOLUTION:
            points.append(Point(min(held_until, at), last.arrived, last.left))
        if len(points) > 1 and points[-1].at - points[-2].at < RESOLUTION:
            points[-1] = Point(at, arrived, left)
        elif (arrived, left) != points[-1][1:]:
            points.append(Point(at, arrived, left))
        self._forget(at)

    def rates(self, now: float) -> tuple[float, float] | None:
        """Return (in, out) per second over the window; None after too short an observation."""
        if not self._points:
            return None
        first, last = self._points[0], self._points[-1]
        now = max(now, last.at)
        span = min(WINDOW, now - first.at)
        if span < KNOWN_AFTER:
            return None
        arrived, left = self._at(now - span)
        return (last.arrived - arrived) / span, (last.left - left) / span

    def _at(self, moment: float) -> tuple[float, float]:
        before = self._points[0]
        for point in self._points:
            if point.at > moment:
                share = (moment - before.at) / (point.at - before.at) if point.at > before.at else 0.0
                share = max(0.0, share)
                return (
                    before.arrived + (point.arrived - before.arrived) * share,
                    before.left + (point.left - before.left) * share,
                )
            before = point
        return before.arrived, before.left

    def _forget(self, now: float) -> None:
        edge = now - WINDOW
        while len(self._points) > 2 and self._points[1].at <= edge:
            self._points.popleft()


def three_digits(value: float | None) -> float | None:
    """Keep three digits: enough to read, few enough that a steady rate stays the same, on pages and in frames."""
    return None if value is None else float(f"{value:.3g}")
