"""Sampling of a point of history from a queue's status, waits and priority mix."""

from collections.abc import Mapping

from queues.history.points import Point, bucket_ms
from queues.model.ids import to_ms
from queues.status.status import QueueStatus

#: Percentiles of waits.
_PERCENTILES = (50, 95, 99)


def as_point(status: QueueStatus, at: int) -> Point:
    """Return a status as the point of a second."""
    return Point(
        at=at,
        ready=status.totals.ready,
        delayed=status.totals.delayed,
        leased=status.totals.leased,
        dead=status.totals.dead,
        arrived=status.arrived,
        left=status.left,
        oldest_at=None if status.oldest is None else to_ms(status.oldest) // 1000,
    )


def mix_of(status: QueueStatus) -> tuple[int, ...]:
    """Return the ready items of each band; empty when there are none."""
    depths = tuple(max(0, band.depth) for band in status.bands)
    return depths if any(depths) else ()


def percentiles(now: Mapping[int, int], before: Mapping[int, int]) -> tuple[int, int, int] | None:
    """Return the percentiles 50, 95 and 99 of waits between two histograms, rounded up."""
    taken = {bucket: count - before.get(bucket, 0) for bucket, count in sorted(now.items())}
    whole = sum(taken.values())
    if whole <= 0:
        return None
    found = []
    for percent in _PERCENTILES:
        left = -(-whole * percent // 100)
        for bucket, count in taken.items():
            left -= count
            if left <= 0:
                found.append(bucket_ms(bucket + 1))
                break
    return found[0], found[1], found[2]


def middle_ms(wait_ms: int) -> float:
    """Return the middle of the waits that are rounded up to a percentile: the true one is within a fifth of it."""
    return wait_ms / 2**0.25
