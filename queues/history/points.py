"""Points of a queue's history, and their encoding in blocks.

A block holds the points of one period as differences to the one before, so that a quiet queue takes a few bytes a
point. A block that grows too large loses every second priority mix, again and again, then its waits, then every second
point. So the history of a queue stays within 64 KiB.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from queues.errors import NewerFormat
from queues.items.counters import wait_bucket

_FORMAT = 2
#: In the byte that begins a mix: nothing is known of the time before the point; otherwise how many bands there are.
_GAP = 0x80
#: The counts of a point, in the order in which they are packed.
STATES = ("ready", "delayed", "leased", "dead", "arrived", "left")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """State of a queue at a moment, and waits since the point before."""

    #: Seconds since the epoch.
    at: int
    ready: int
    delayed: int
    leased: int
    dead: int
    #: Items that ever became ready, and that ever left, until then: rates are differences.
    arrived: int
    left: int
    #: Since when the oldest ready item is ready, in seconds since the epoch; None when nothing is ready.
    oldest_at: int | None = None
    #: Waits of items taken since the point before: percentiles 50, 95 and 99 in milliseconds, rounded up to a √2-wide
    #: bucket; None when nothing was taken, or for points of single seconds.
    waits_ms: tuple[int, int, int] | None = None
    #: Ready items in each band, the lowest band first; empty when unknown.
    mix: tuple[int, ...] = ()
    #: Nothing was recorded between the point before and this one, for longer than points are apart.
    gap: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers that are packed as differences."""
        return tuple(getattr(self, name) for name in STATES)


class State(NamedTuple):
    """The values to which the next point of a stream is the difference."""

    at: int
    counts: tuple[int, ...]
    #: The last known ones.
    oldest_at: int
    mix: tuple[int, ...]


#: Before the first point of a stream.
BEFORE = State(0, (0,) * len(STATES), 0, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Distance, retention and block size of points; times in seconds."""

    name: str
    #: Between two points.
    step: int
    #: How long points are kept.
    kept: int
    #: Time that one block covers.
    block: int
    #: Bytes of one block, at most.
    room: int

    def start(self, at: int) -> int:
        """Return when the block begins that holds a moment."""
        return at - at % self.block

    @property
    def blocks(self) -> int:
        """Blocks that are kept, the one that is being filled included."""
        return self.kept // self.block + 1


#: 11 blocks of 512 bytes, 25 of 1,180 and 46 of 560 are 60,892 bytes; their keys take less than the rest of 64 KiB.
SECONDS = Resolution(name="s", step=1, kept=600, block=60, room=512)
MINUTES = Resolution(name="m", step=60, kept=48 * 3600, block=2 * 3600, room=1_180)
HOURS = Resolution(name="h", step=3600, kept=90 * 86_400, block=2 * 86_400, room=560)
RESOLUTIONS = {resolution.name: resolution for resolution in (SECONDS, MINUTES, HOURS)}


def encode(points: Sequence[Point], room: int) -> bytes:
    """Pack points, the oldest first, into at most `room` bytes."""
    block = _encode(points)
    while len(block) > room and (lighter := _lighter(points)):
        points = lighter
        block = _encode(points)
    return block


def decode(block: bytes | None) -> list[Point]:
    """Unpack points, the oldest first; raise one of `queues.model.records.UNREADABLE` for a damaged block."""
    if not block:
        return []
    if block[0] != _FORMAT:
        raise NewerFormat("This history was written by a newer release (format {format}).", format=block[0])
    try:
        stream = zlib.decompress(block[1:])
    except zlib.error as error:
        raise ValueError("the block cannot be unpacked") from error
    return list(read_points(stream))


def bucket_ms(bucket: int) -> int:
    """Return the milliseconds at which a bucket begins."""
    return math.ceil(2 ** (bucket / 2)) if bucket else 0


def _lighter(points: Sequence[Point]) -> list[Point]:
    """Return points that tell less, and as much of the newest as can be. Empty when no less can be told."""
    mixed = [n for n, point in enumerate(points) if point.mix]
    if len(mixed) > 1:
        dropped = set(mixed[-2::-2])
        return [replace(point, mix=()) if n in dropped else point for n, point in enumerate(points)]
    if any(point.mix or point.waits_ms is not None for point in points):
        return [replace(point, mix=(), waits_ms=None) for point in points]
    # The newest stays: the next one is a difference to it. A gap stays too, before the next point that does.
    kept = list(range(len(points) - 1, -1, -2))[::-1]
    gaps = [points[n].gap or (n > 0 and points[n - 1].gap) for n in kept]
    return [replace(points[n], gap=gap) for n, gap in zip(kept, gaps, strict=True)] if len(points) > 1 else []


def _encode(points: Sequence[Point]) -> bytes:
    stream, state = bytearray(), BEFORE
    for point in points:
        state = write_point(stream, state, point)
    return compress(stream)


def compress(stream: bytes | bytearray) -> bytes:
    """Return the block of a stream of points."""
    return bytes([_FORMAT]) + zlib.compress(stream, 6)


def write_point(stream: bytearray, before: State, point: Point) -> State:
    """Write a point as the difference to `before`, and return its state."""
    write_number(stream, point.at - before.at)
    counts = point.counts
    differences = [now - then for now, then in zip(counts, before.counts, strict=True)]
    flags = sum(1 << n for n, difference in enumerate(differences) if difference)
    flags |= (1 << 6 if point.waits_ms is not None else 0) | (1 << 7 if point.mix or point.gap else 0)
    stream.append(flags)
    for difference in filter(None, differences):
        write_number(stream, _fold(difference))
    oldest = before.oldest_at
    if point.oldest_at is None:
        stream.append(0)
    else:
        write_number(stream, _fold(point.oldest_at - oldest) + 1)
        oldest = point.oldest_at
    if point.waits_ms is not None:
        stream.extend(map(wait_bucket, point.waits_ms))
    if point.mix or point.gap:
        stream.append(len(point.mix) | (_GAP if point.gap else 0))
        for depth, then in zip(point.mix, _padded(before.mix, len(point.mix)), strict=True):
            write_number(stream, _fold(depth - then))
    return State(point.at, counts, oldest, point.mix or before.mix)


def read_points(packed: bytes | bytearray) -> Iterator[Point]:
    """Read a stream of points."""
    at = moment = oldest = 0
    counts = [0] * len(STATES)
    last: tuple[int, ...] = ()
    while at < len(packed):
        passed, at = read_number(packed, at)
        moment += passed
        flags = packed[at]
        at += 1
        for n in range(len(STATES)):
            if flags & 1 << n:
                folded, at = read_number(packed, at)
                counts[n] += _unfold(folded)
        folded, at = read_number(packed, at)
        if folded:
            oldest += _unfold(folded - 1)
        waits = None
        if flags & 1 << 6:
            first, second, third = map(bucket_ms, packed[at : at + 3])
            waits = first, second, third
            at += 3
        mix: list[int] = []
        gap = False
        if flags & 1 << 7:
            bands, gap, at = packed[at] & ~_GAP, bool(packed[at] & _GAP), at + 1
            for then in _padded(last, bands):
                difference, at = read_number(packed, at)
                mix.append(then + _unfold(difference))
            last = tuple(mix) or last
        yield Point(
            at=moment,
            **dict(zip(STATES, counts, strict=True)),
            oldest_at=oldest if folded else None,
            waits_ms=waits,
            mix=tuple(mix),
            gap=gap,
        )


def _padded(mix: tuple[int, ...], bands: int) -> tuple[int, ...]:
    return (*mix, *[0] * bands)[:bands]


def _fold(number: int) -> int:
    """Map a whole number to one that is not negative, small ones to small ones."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def _unfold(folded: int) -> int:
    return -((folded + 1) >> 1) if folded & 1 else folded >> 1


def write_number(out: bytearray, number: int) -> None:
    """Write a non-negative number, seven bits a byte."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_number(packed: bytes | bytearray, at: int) -> tuple[int, int]:
    """Read a number of `write_number`; return it and its end."""
    number = shift = 0
    while True:
        byte = packed[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7
