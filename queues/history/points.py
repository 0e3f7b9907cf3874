"""Points of a queue's history, and their encoding in blocks.

A block holds the points of one period as differences to the one before, so that a quiet queue takes a few bytes a
point. A block that grows too large loses its priority mix first, then its waits, then every second point. So the
history of a queue stays within 64 KiB.
"""

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from queues.errors import NewerFormat
from queues.items.counters import wait_bucket

_FORMAT = 1
#: Shares of a band are kept in this many parts of the whole.
SHARES = 15
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
    #: When the oldest ready item was pushed, in seconds since the epoch; None when nothing is ready.
    oldest_at: int | None = None
    #: Waits of items taken since the point before: percentiles 50, 95 and 99 in milliseconds, rounded up to a √2-wide
    #: bucket; None when nothing was taken, or for points of single seconds.
    waits_ms: tuple[int, int, int] | None = None
    #: Shares of the bands among ready items, in fifteenths, the lowest band first; empty when unknown.
    mix: tuple[int, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers that are packed as differences."""
        return tuple(getattr(self, name) for name in STATES)


class State(NamedTuple):
    """The values to which the next point of a stream is the difference."""

    at: int
    counts: tuple[int, ...]
    #: The last known one.
    oldest_at: int


#: Before the first point of a stream.
BEFORE = State(0, (0,) * len(STATES), 0)


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
    for lighten in _LIGHTER:
        lighter = lighten(points)
        block = _encode(lighter)
        if len(block) <= room:
            return block
    while len(block) > room and len(lighter) > 1:
        # The newest stays: the next one is a difference to it.
        lighter = [point for n, point in enumerate(reversed(lighter)) if n % 2 == 0][::-1]
        block = _encode(lighter)
    return block


def decode(block: bytes | None) -> list[Point]:
    """Unpack points, the oldest first."""
    if not block:
        return []
    if block[0] != _FORMAT:
        raise NewerFormat("This history was written by a newer release (format {format}).", format=block[0])
    return list(read_points(zlib.decompress(block[1:])))


def bucket_ms(bucket: int) -> int:
    """Return the milliseconds at which a bucket begins."""
    return math.ceil(2 ** (bucket / 2)) if bucket else 0


def _without_mix(points: Sequence[Point]) -> list[Point]:
    return [replace(point, mix=()) for point in points]


def _without_waits(points: Sequence[Point]) -> list[Point]:
    return [replace(point, mix=(), waits_ms=None) for point in points]


_LIGHTER: tuple[Callable[[Sequence[Point]], list[Point]], ...] = (list, _without_mix, _without_waits)


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
    flags |= (1 << 6 if point.waits_ms is not None else 0) | (1 << 7 if point.mix else 0)
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
    if point.mix:
        stream.append(len(point.mix))
        shares = [*point.mix, 0]
        stream.extend(low << 4 | high for low, high in zip(shares[::2], shares[1::2], strict=False))
    return State(point.at, counts, oldest)


def read_points(packed: bytes | bytearray) -> Iterator[Point]:
    """Read a stream of points."""
    at = moment = oldest = 0
    counts = [0] * len(STATES)
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
            waits = tuple(map(bucket_ms, packed[at : at + 3]))
            at += 3
        mix: tuple[int, ...] = ()
        if flags & 1 << 7:
            bands, size = packed[at], (packed[at] + 1) // 2
            shares = [share for pair in packed[at + 1 : at + 1 + size] for share in (pair >> 4, pair & 15)]
            mix, at = tuple(shares[:bands]), at + 1 + size
        yield Point(
            at=moment,
            **dict(zip(STATES, counts, strict=True)),
            oldest_at=oldest if folded else None,
            waits_ms=waits,  # type: ignore[arg-type] # three of them
            mix=mix,
        )


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
