"""Sums over all queues: their depths, and what came and went, counted on from what was recorded before."""

from collections.abc import Iterator, Mapping
from operator import add, sub

from queues.history.line import Line, is_time
from queues.history.points import RESOLUTIONS, SECONDS, STATES, Point, Resolution
from queues.history.sampling import as_point
from queues.status.status import QueueStatus

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


class SumsHistory:
    """The history of the sums over all queues, as this recorder continues it."""

    def __init__(self) -> None:
        #: None until what was recorded is read.
        self.line: Line | None = None
        #: None until every queue was read once.
        self._sums: Sums | None = None
        #: Some queue has changed while no process recorded.
        self._missed = False

    @property
    def is_begun(self) -> bool:
        """Say whether every queue was read once."""
        return self._sums is not None

    @property
    def until(self) -> int | None:
        """The time of the last point; None when there is none."""
        return None if self.line is None else self.line.blocks[SECONDS.name].at

    def compare(self, line: Line, counts: tuple[int, ...]) -> None:
        """Note until when a queue that is new to this recorder is known: its last point, if it has changed."""
        last = line.blocks[SECONDS.name]
        if last.counts is not None and last.counts != counts and last.at is not None:
            self._missed = True
            # What was written together with the sums says that nothing had changed until then.
            known = max(last.at, min(self.until or 0, line.first)) if self._sums is None else last.at
            line.unknown_after = dict.fromkeys(RESOLUTIONS, known) | line.unknown_after
            line.last = last.newest

    def drop(self, queue_id: int) -> None:
        """Leave out a queue that is gone."""
        if self._sums is not None:
            self._sums.drop(queue_id)

    def points(self, read: Mapping[int, QueueStatus], now: int) -> Iterator[tuple[Line, Resolution, Point]]:
        """Bring the sums up to now, and iterate the points that are due. At first, all queues are read."""
        line = self.line
        if line is None:
            return
        if self._sums is None:
            last = line.blocks[SECONDS.name]
            self._sums = Sums(last.counts)
            if last.at is not None and self._missed:
                line.first, line.last = now, last.newest
                line.unknown_after |= dict.fromkeys(RESOLUTIONS, last.at)
        for queue_id, status in read.items():
            if status.unreadable:
                self._sums.miss(queue_id)
            else:
                self._sums.take(queue_id, as_point(status, now))
        if self._sums.missing:  # no sums are better than some that leave out a queue
            line.unknown_after |= {
                name: block.at
                for name, block in line.blocks.items()
                if block.at is not None and name not in line.unknown_after
            }
            line.first = now
            return
        point = self._sums.point(now)
        for resolution in RESOLUTIONS.values():
            block = line.blocks[resolution.name]
            changed = any(point.counts) if block.counts is None else block.counts != point.counts
            if (changed or line.has_gap(resolution)) and is_time(resolution, block, now):
                yield line, resolution, point
