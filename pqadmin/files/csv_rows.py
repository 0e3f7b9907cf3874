"""CSV (RFC 4180, comma, header line) with the columns `value`, `value_base64`, `value_json`, `priority`,
`priority_base64`.

A record may span lines inside double quotes; its number is that of its last line.
"""

import codecs
import csv
from collections.abc import Iterator
from typing import IO

from pqadmin.display.format import shorten, visible
from pqadmin.files.entries import (
    NAMES,
    REDACTED,
    VALUE_NAMES,
    BadEntry,
    BadFormat,
    Blank,
    FewerLines,
    Outcome,
    Unfit,
    entry_of_cells,
)
from pqadmin.files.lines import MAX_LINE_BYTES, numbered
from queues.admin import PriorityType
from queues.errors import Words

#: Cells of a header that are looked at: there are not so many names.
MAX_COLUMNS = 50


class _LineTooLong(Exception):
    """A line that was read past; its argument says so."""


class _Lines:
    """The text lines that csv.reader asks for. A class, so that it goes on after an error."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = numbered(stream)
        self.number = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        if isinstance(line, Words):
            raise _LineTooLong(line)
        # Bytes that are not UTF-8 pass as lone surrogates and are refused with their record.
        return line.decode(errors="surrogateescape")


def read(stream: IO[bytes], *, priority_type: PriorityType | None, skip: int = 0) -> Iterator[Outcome]:
    """Yield what every record that ends after line `skip` holds, in order; raise `BadFormat`.

    Records are read from the first line even when skipped: only that tells where one begins.
    """
    csv.field_size_limit(MAX_LINE_BYTES)  # the module's own 131,072 is less than the largest value in base64
    lines = _Lines(stream)
    rows = csv.reader(lines, strict=True)
    columns = _columns(rows)
    while True:
        first = lines.number + 1
        outcome: Outcome
        try:
            cells = next(rows)
        except StopIteration:
            if lines.number < skip:
                raise FewerLines(lines.number, skip) from None
            return
        except (csv.Error, _LineTooLong) as error:
            reason = error.args[0] if isinstance(error, _LineTooLong) else Words("not CSV: {error}", error=_why(error))
            outcome = BadEntry(line=lines.number, first=first, reason=reason)
        else:
            outcome = _outcome(first, lines.number, cells, columns, priority_type)
        if lines.number > skip:
            if first <= skip:
                raise BadFormat(
                    "Line {skip} is inside a record (lines {first} to {number}).",
                    skip=skip,
                    first=first,
                    number=lines.number,
                )
            yield outcome


def _why(error: csv.Error | _LineTooLong) -> Words:
    said = error.args[0]
    return said if isinstance(said, Words) else _SAID.get(said, Words(said))


#: What Python says of a record with an open quote, and of one with a quote within.
_SAID: dict[str, Words] = {
    words: words for words in (Words("unexpected end of data"), Words("',' expected after '\"'"))
}


def has_header(data: bytes) -> bool:
    """Return whether the first line of a text that is no NDJSON names any column."""
    first = data.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].decode(errors="replace")
    return any(cell.strip(' "\r') in (*NAMES, REDACTED) for cell in first.split(","))


def _columns(rows: Iterator[list[str]]) -> list[str]:
    try:
        cells = next(rows, [])
    except (csv.Error, _LineTooLong) as error:
        raise BadFormat("The first line is no CSV header: {error}.", error=_why(error)) from None
    if len(cells) > MAX_COLUMNS:
        raise BadFormat("The first line of a CSV file names its columns; this one has {size:,} cells.", size=len(cells))
    columns = [cell.strip() for cell in cells]
    unknown = [column for column in columns if column not in (*NAMES, REDACTED)]
    if unknown or not columns:
        found = ", ".join(f"“{visible(shorten(column, 40))}”" for column in unknown[:3]) or Words("nothing")
        raise BadFormat(
            "The first line of a CSV file names its columns out of {names}; found {found}.",
            names=", ".join(NAMES),
            found=found,
        )
    if len(set(columns)) != len(columns):
        raise BadFormat("The first line of the CSV file names a column twice.")
    if not set(columns) & set(VALUE_NAMES):
        raise BadFormat("The CSV file has no column value, value_base64 or value_json.")
    return columns


def _outcome(
    first: int, number: int, cells: list[str], columns: list[str], priority_type: PriorityType | None
) -> Outcome:
    if not cells:
        return Blank(line=number)
    if len(cells) != len(columns):
        reason = Words("{cells} cells where the header names {columns} columns", cells=len(cells), columns=len(columns))
        return BadEntry(line=number, first=first, reason=reason)
    try:
        for cell in cells:
            cell.encode()
        return entry_of_cells(dict(zip(columns, cells, strict=True)), line=number, priority_type=priority_type)
    except UnicodeEncodeError:
        return BadEntry(line=number, first=first, reason=Words("not UTF-8"))
    except Unfit as error:
        return BadEntry(line=number, first=first, reason=error.words)
