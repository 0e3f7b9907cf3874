"""The audit as a file: one record a line, as CSV that no spreadsheet runs, or as NDJSON."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from pqadmin.files.entries import Format
from pqadmin.files.export_parts import Shape, csv_rows, part
from pqadmin.files.formula import defused
from pqadmin.files.shapes import shape_of
from queues import AuditEntry, RecordPage

COLUMNS = ("at", "actor", "via", "verb", "queue", "item", "count", "reason", "before", "after", "id")
#: Records of one step.
STEP = 500


def lines(page_after: Callable[[str | None], RecordPage[AuditEntry]], file_format: Format) -> Iterator[bytes]:
    """Yield the records of all pages, newest first; `page_after` reads a page in a transaction of its own."""
    if file_format == "csv":
        yield csv_rows([COLUMNS])
    after: str | None = None
    while True:
        page = page_after(after)
        if page.entries:
            shapes = [audit_shape(entry) for entry in page.entries]
            yield part(shapes, lambda shape: [_cell(shape[name]) for name in COLUMNS], file_format)
        after = page.cursor
        if after is None:
            return


def audit_shape(entry: AuditEntry) -> Shape:
    """Describe an act."""
    return shape_of(entry, *COLUMNS)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    return defused(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
