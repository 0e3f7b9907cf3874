"""The file formats of imports and exports, and how one is recognized."""

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pqadmin.files import csv_rows, lines, ndjson
from pqadmin.files.entries import BadEntry, BadFormat, Entry, Format, Outcome
from queues import Priority, Raw
from queues.admin import Codec, PriorityType
from queues.errors import BadValue

_SUFFIXES: dict[str, Format] = {".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson", ".csv": "csv"}


def format_of_name(name: str) -> Format | None:
    """Tell the format by the ending of the file's name; None when it tells nothing."""
    return _SUFFIXES.get(Path(name).suffix.lower())


def sniff(stream: io.BufferedReader) -> Format:
    """Tell the format by the first byte that is no blank, without reading past it. Raise `BadFormat`."""
    head = stream.peek(64)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise BadFormat("The file is UTF-16: convert it to UTF-8 first.")
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if head.startswith(b"["):
        raise BadFormat("The file begins with “[”: NDJSON is one object a line, without a list around them.")
    return "ndjson" if not head or head.startswith(b"{") else "csv"


def read(
    stream: IO[bytes],
    file_format: Format,
    *,
    priority_type: PriorityType | None,
    codec: Codec | None = None,
    skip: int = 0,
    priority: Priority | None = None,
) -> Iterator[Outcome]:
    """Yield what the file holds after line `skip`, line by line; raise `BadFormat`.

    A value that the queue's codec cannot decode is a bad line. Plain lines have the priority; none is skipped.
    """
    if file_format == "lines":
        outcomes = lines.values(stream, priority=priority)
    else:
        reader = ndjson.read if file_format == "ndjson" else csv_rows.read
        outcomes = reader(stream, priority_type=priority_type, skip=skip)
    for outcome in outcomes:
        yield _decodable(outcome, codec) if isinstance(outcome, Entry) and codec is not None else outcome


def _decodable(entry: Entry, codec: Codec) -> Entry | BadEntry:
    try:
        codec.encode(Raw(entry.value))
    except BadValue as error:
        return BadEntry(line=entry.line, first=entry.line, reason=error.words)
    return entry
