"""Line of a history: the blocks of one queue, or of the sums, that are being filled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queues.errors import NewerFormat
from queues.history.open_block import OpenBlock
from queues.history.points import RESOLUTIONS, Point, Resolution, decode
from queues.history.sampling import as_point
from queues.model.records import UNREADABLE, warn
from queues.status.status import QueueStatus

#: Seconds by which a clock may step back unnoticed; beyond that, points of the future are dropped.
_BACK = 60


@dataclass(slots=True, kw_only=True)
class Line:
    """The blocks of one queue, or of the sums, that are being filled."""

    #: By resolution.
    blocks: dict[str, OpenBlock]
    #: When this recorder saw it first.
    first: int
    #: By resolution, until the next point: the moment up to which it was recorded by another process, where it has
    #: changed since.
    unknown_after: dict[str, int]
    #: How it was at that moment, which its points of minutes and hours do not tell yet.
    last: Point | None = None

    def has_gap(self, resolution: Resolution) -> bool:
        """Say whether the next point comes after a time that is unknown, and longer than a step."""
        known = self.unknown_after.get(resolution.name)
        return known is not None and self.first - known > resolution.step


def open_line(blocks: Mapping[str, Sequence[Point] | None], now: int) -> Line:
    """Return what continues stored blocks; nothing is known of the time of a damaged one."""
    return Line(
        blocks={r.name: OpenBlock(r, blocks[r.name] or ()) for r in RESOLUTIONS.values()},
        first=now,
        unknown_after={name: 0 for name, points in blocks.items() if points is None},
    )


def decoded(block: bytes) -> Sequence[Point] | None:
    """Return the points of a block; None for one that is damaged. One of a newer release is left alone."""
    try:
        return decode(block)
    except NewerFormat:
        raise
    except UNREADABLE as error:
        warn("A block of a history", error)
        return None


def is_due(resolution: Resolution, block: OpenBlock, status: QueueStatus, now: int) -> bool:
    """Return whether a point has to be written."""
    return differs(block, status) and is_time(resolution, block, now)


def is_time(resolution: Resolution, block: OpenBlock, now: int) -> bool:
    """Return whether the step of the last point is over."""
    last = block.at
    return last is None or last > now + _BACK or now // resolution.step > last // resolution.step


def differs(block: OpenBlock, status: QueueStatus) -> bool:
    """Return whether a status differs from the last point; an unused queue has no history."""
    counts, last = as_point(status, 0).counts, block.counts
    return any(counts) if last is None else counts != last
