"""Sums over all queues: their depths, and what came and went, counted on from what was recorded before."""

from operator import add, sub

from queues.history.points import STATES, Point

#: How many of the counts are depths; the rest are totals that only grow.
_DEPTHS = STATES.index("arrived")


class Sums:
    """The counts of all queues together, brought up to date queue by queue."""

    def __init__(self, recorded: tuple[int, ...] | None) -> None:
        self._depths = [0] * _DEPTHS
        #: Of a queue that comes, or begins to count anew, what came and went before is in no rate.
        self._totals = list(recorded[_DEPTHS:]) if recorded else [0] * (len(STATES) - _DEPTHS)
        self._counted: dict[int, tuple[int, ...]] = {}
        #: Queues that cannot be read, and were never counted.
        self.missing: set[int] = set()

    def miss(self, queue_id: int) -> None:
        """Leave out a queue that cannot be read. One that was counted before stays as it was."""
        if queue_id not in self._counted:
            self.missing.add(queue_id)

    def take(self, queue_id: int, point: Point) -> None:
        """Replace what was counted of a queue."""
        self.missing.discard(queue_id)
        counts = point.counts
        before = self._counted.get(queue_id)
        if before == counts:
            return
        then = (0,) * _DEPTHS + counts[_DEPTHS:] if before is None else before
        self._depths = [*map(add, self._depths, map(sub, counts[:_DEPTHS], then[:_DEPTHS]))]
        grown = [max(0, now - was) for now, was in zip(counts[_DEPTHS:], then[_DEPTHS:], strict=True)]
        self._totals = [*map(add, self._totals, grown)]
        self._counted[queue_id] = counts

    def drop(self, queue_id: int) -> None:
        """Take a queue that is gone out of the depths."""
        self.missing.discard(queue_id)
        counts = self._counted.pop(queue_id, None)
        if counts is not None:
            self._depths = [*map(sub, self._depths, counts[:_DEPTHS])]

    def point(self, at: int) -> Point:
        """Return the sums as the point of a second."""
        (ready, delayed, leased, dead), (arrived, left) = self._depths, self._totals
        return Point(at=at, ready=ready, delayed=delayed, leased=leased, dead=dead, arrived=arrived, left=left)
