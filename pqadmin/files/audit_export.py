"""The audit as a file: one act a line, as CSV that no spreadsheet runs, or as NDJSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pqadmin.files.formula import defused
from pqadmin.files.plain_text import json_text
from queues import AuditEntry, AuditPage

Format = Literal["csv", "ndjson"]
COLUMNS = ("at", "actor", "via", "verb", "queue", "item", "count", "reason", "before", "after", "id")
#: Actions of one step.
STEP = 500


def lines(page_after: Callable[[str | None], AuditPage], file_format: Format) -> Iterator[bytes]:
    """Yield the acts of all pages, newest first; `page_after` reads one, each in a transaction of its own."""
    if file_format == "csv":
        yield _rows([list(COLUMNS)])
    after: str | None = None
    while True:
        page = page_after(after)
        if page.entries:
            yield _part([_shape(entry) for entry in page.entries], file_format)
        after = page.cursor
        if after is None:
            return


def failure(words: str, file_format: Format) -> bytes:
    """Return the last line of a file that is not complete."""
    told = f"INCOMPLETE: {words}"
    return _rows([[told]]) if file_format == "csv" else (json_text({"error": told}) + "\n").encode()


def _part(shapes: list[dict[str, Any]], file_format: Format) -> bytes:
    if file_format == "ndjson":
        return "".join(json_text(shape) + "\n" for shape in shapes).encode()
    return _rows([[_cell(shape[name]) for name in COLUMNS] for shape in shapes])


def _shape(entry: AuditEntry) -> dict[str, Any]:
    return {
        "at": entry.at.isoformat(timespec="milliseconds"),
        "actor": entry.actor,
        "via": entry.via,
        "verb": entry.verb,
        "queue": entry.queue,
        "item": entry.item,
        "count": entry.count,
        "reason": entry.reason,
        "before": None if entry.before is None else dict(entry.before),
        "after": None if entry.after is None else dict(entry.after),
        "id": entry.id,
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    return defused(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _rows(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8", "replace")
