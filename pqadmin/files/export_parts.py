"""Parts of an export: rows of CSV, lines of NDJSON, and the last line of an incomplete file."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from pqadmin.files.entries import Format
from pqadmin.files.plain_text import json_text

#: One line: its members by name.
Shape = dict[str, Any]


def part(shapes: Sequence[Shape], cells: Callable[[Shape], Sequence[str]], file_format: Format) -> bytes:
    """Return some lines; `cells` makes a row of CSV from one."""
    if file_format == "ndjson":
        return "".join(json_text(shape) + "\n" for shape in shapes).encode()
    return csv_rows([cells(shape) for shape in shapes])


def failure(words: str, file_format: Format) -> bytes:
    """Return the last line of an incomplete file, which no import accepts."""
    told = f"INCOMPLETE: {words}"
    return csv_rows([[told] + [""] * 20]) if file_format == "csv" else (json_text({"error": told}) + "\n").encode()


def csv_rows(rows: Sequence[Sequence[str]]) -> bytes:
    """Write rows as CSV, every cell in quotes."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8", "replace")
