"""Physical lines of a byte stream, numbered from 1, in bounded memory; and as one value each.

A line ends with LF; a CR before it is kept for the format to judge. A line longer than the limit is never held in
memory: it is read past.
"""

import codecs
from collections.abc import Iterator
from typing import IO

from pqadmin.files.entries import BadEntry, Blank, Entry, Outcome, Unfit, sized
from queues import Priority
from queues.errors import Words

#: Bytes. The largest value (90,000 B) with every byte escaped as \\u00XX is 540,000 B; the rest is room for priority.
MAX_LINE_BYTES = 1_000_000


def numbered(stream: IO[bytes]) -> Iterator[tuple[int, bytes | Words]]:
    """Yield the stream's lines in order, of too long ones what is wrong with them. Drop a UTF-8 byte order mark."""
    number = 0
    while data := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(data) > MAX_LINE_BYTES and not data.endswith(b"\n"):
            size = len(data)
            while not data.endswith(b"\n") and (data := stream.readline(1 << 16)):
                size += len(data)
            yield (
                number,
                Words("the line has {size:,} bytes; at most {most:,} are allowed", size=size, most=MAX_LINE_BYTES),
            )
        else:
            yield number, data.removeprefix(codecs.BOM_UTF8) if number == 1 else data


def values(stream: IO[bytes], *, priority: Priority | None) -> Iterator[Outcome]:
    """Yield each line as the value of an item, all of one priority. None is a FIFO queue. Empty lines are left out."""
    for number, line in numbered(stream):
        try:
            if isinstance(line, Words):
                raise Unfit(line)
            value = sized(line.removesuffix(b"\n").removesuffix(b"\r"))
            yield Entry(line=number, value=value, priority=priority) if value else Blank(line=number)
        except Unfit as error:
            yield BadEntry(line=number, first=number, reason=error.words)
