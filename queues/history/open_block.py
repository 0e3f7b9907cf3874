"""Block of a history that is being filled, with its points packed.

A point is stored as the difference to the one before, in about ten bytes; an object takes hundreds. Points that cannot
fit into a block are thinned out as soon as the packed points are several times as large as one.
"""

from collections.abc import Mapping, Sequence
from struct import Struct

from msgspec import msgpack

from queues.history.points import (
    BEFORE,
    STATES,
    Point,
    Resolution,
    State,
    compress,
    decode,
    encode,
    read_points,
    write_point,
)

#: Packed points may be this many times as large as a block, which is compressed.
_TIMES = 4
#: Of the newest point: its time and counts, the last known age, and whether that age and the last mix are its own.
_TAIL = Struct("=8q??")


_NO_MIX = msgpack.encode(())


class OpenBlock:
    """Packed points of one block of one queue, and the wait histogram at the newest one."""

    __slots__ = ("_mix", "_resolution", "_stream", "_tail", "_waits")

    def __init__(self, resolution: Resolution, points: Sequence[Point] = ()) -> None:
        self._resolution = resolution
        self._stream = bytearray()
        self._tail = b""
        self._mix = _NO_MIX
        self._waits: bytes | None = None
        for point in points:
            self._append(point)

    @property
    def at(self) -> int | None:
        """Time of the newest point; None when there is none."""
        return _TAIL.unpack(self._tail)[0] if self._tail else None

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The counts of the newest point; None when there is none."""
        return _TAIL.unpack(self._tail)[1:7] if self._tail else None

    @property
    def points(self) -> list[Point]:
        """All points, the oldest first."""
        return list(read_points(self._stream))

    def add(self, point: Point) -> None:
        """Add the newest point."""
        self._append(point)
        if len(self._stream) > _TIMES * self._resolution.room:
            self._rewrite(decode(self.block()))

    @property
    def newest(self) -> Point:
        """The newest point, without its waits; there is one."""
        at, *counts, oldest, aged, mixed = _TAIL.unpack(self._tail)
        states = dict(zip(STATES, counts, strict=True))
        return Point(at=at, **states, oldest_at=oldest if aged else None, mix=self._last_mix if mixed else ())

    def next_block(self) -> "OpenBlock":
        """Return the next block: empty, with the newest point to continue from."""
        following = OpenBlock(self._resolution)
        following._tail, following._mix, following._waits = self._tail, self._mix, self._waits
        return following

    def with_points(self, points: Sequence[Point]) -> "OpenBlock":
        """Return a block of these points with the same wait histogram."""
        block = OpenBlock(self._resolution, points)
        block._waits = self._waits
        return block

    def block(self) -> bytes:
        """Return the compressed block, within its size limit."""
        block = compress(self._stream)
        if len(block) > self._resolution.room:
            block = encode(self.points, self._resolution.room)
            self._rewrite(decode(block))
        return block

    @property
    def waits(self) -> dict[int, int] | None:
        """The wait histogram at the newest point, by bucket; None when unknown."""
        return None if self._waits is None else msgpack.decode(self._waits, type=dict[int, int])

    def note_waits(self, histogram: Mapping[int, int]) -> None:
        """Remember the wait histogram at the newest point."""
        self._waits = msgpack.encode(histogram)

    @property
    def _last_mix(self) -> tuple[int, ...]:
        return msgpack.decode(self._mix, type=tuple[int, ...])

    def _append(self, point: Point) -> None:
        before = BEFORE
        if self._stream:
            at, *counts, oldest, _, _ = _TAIL.unpack(self._tail)
            before = State(at, tuple(counts), oldest, self._last_mix)
        after = write_point(self._stream, before, point)
        self._tail = _TAIL.pack(after.at, *after.counts, after.oldest_at, point.oldest_at is not None, bool(point.mix))
        self._mix = msgpack.encode(after.mix) if after.mix else _NO_MIX

    def _rewrite(self, points: Sequence[Point]) -> None:
        """Replace the points by ones that tell less."""
        self._stream = bytearray()
        for point in points:
            self._append(point)
