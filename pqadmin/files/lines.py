"""Physical lines of a byte stream, numbered from 1, in bounded memory.

A line ends with LF; a CR before it is kept for the format to judge. A line longer than the limit is never held in
memory: it is read past and handed out as `LongLine`.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from queues.errors import Words

#: Bytes. The largest value (90,000 B) with every byte escaped as \\u00XX is 540,000 B; the rest is room for priority.
MAX_LINE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLine:
    """One line of the file with its line end."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLine:
    """A line that was longer than the limit and was read past."""

    number: int
    size: int


def numbered(stream: IO[bytes], *, limit: int = MAX_LINE_BYTES) -> Iterator[RawLine | LongLine]:
    """Yield the stream's lines in order; a UTF-8 byte order mark before the first is dropped."""
    number = 0
    while data := stream.readline(limit + 1):
        number += 1
        if len(data) > limit and not data.endswith(b"\n"):
            yield LongLine(number=number, size=len(data) + _rest_of_line(stream))
            continue
        if number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        yield RawLine(number=number, data=data)


def too_long(line: LongLine) -> Words:
    """Say what is wrong with a line that was read past."""
    return Words("the line has {size:,} bytes; at most {most:,} are allowed", size=line.size, most=MAX_LINE_BYTES)


def _rest_of_line(stream: IO[bytes]) -> int:
    size = 0
    while data := stream.readline(1 << 16):
        size += len(data)
        if data.endswith(b"\n"):
            break
    return size
