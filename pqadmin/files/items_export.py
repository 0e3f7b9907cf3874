"""The items of a page's query as a file: NDJSON or CSV, for an import, or with all fields.

A value that pages redact is redacted here: it is named `value_redacted`, and an import refuses its line. In CSV, text
that a spreadsheet would run as a formula is written as base64, be it a value or a priority; numbers are none.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pqadmin.display import items
from pqadmin.display.error_text import redacted
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import masked, what_searchers_see
from pqadmin.files.entries import REDACTED, Format
from pqadmin.files.export_parts import Shape, csv_rows, part
from pqadmin.files.formula import defused, is_formula
from pqadmin.files.plain_text import plain_text
from pqadmin.files.shapes import OF_ATTEMPTS, shape_of
from queues import Attempt, Item, Query, Queue
from queues.admin import End

#: Items of one step, and how many it examines for them; with values of 90,000 B a step ends at 1 MB.
STEP, SCAN = 500, 5_000
#: Seconds of work after which a part is sent: redacting may need to unpack values.
SECONDS = 0.25
_RAW = "priority_raw"
_KNOWN = ("id", "state", "pushed_at", "due_at", "attempts", "reason", "attempt_log", "size")


def lines(
    queue: Queue,
    query: Query,
    *,
    end: End,
    rules: Redaction,
    file_format: Format,
    details: bool = False,
    clock: Callable[[], float] = time.monotonic,
    hides: bool = False,
    count: Callable[[int, int], object] = lambda items, hidden: None,
) -> Iterator[bytes]:
    """Yield the items in the page's order. Each step is a transaction, so a queue in use is not one snapshot.

    `hides`: what is read may have hidden parts, whatever the rules. `count` is told how many items each part has, and
    of how many something is hidden.
    """
    columns = _columns(queue, hides=hides or bool(rules), details=details)
    if file_format == "csv":
        yield csv_rows([columns])
    for shapes in _shapes(queue, query, end, rules, details=details, clock=clock):
        count(len(shapes), sum(REDACTED in shape for shape in shapes))
        yield part(shapes, partial(_cells, columns), file_format)


def _shapes(
    queue: Queue, query: Query, end: End, rules: Redaction, *, details: bool, clock: Callable[[], float]
) -> Iterator[list[Shape]]:
    shown = what_searchers_see(queue.config)
    after: str | None = None
    while True:
        found = queue.search(query, after=after, end=end, limit=STEP, scan=SCAN, shown=shown)
        shapes: list[Shape] = []
        until = clock() + SECONDS
        for item in found.items:
            shapes.append(_shape(item, rules, details=details))
            if clock() >= until:
                yield shapes
                shapes, until = [], clock() + SECONDS
        yield shapes  # an empty list too: a disconnected client is noticed
        after = found.cursor
        if after is None:
            return


def _columns(queue: Queue, *, hides: bool, details: bool) -> tuple[str, ...]:
    priorities: tuple[str, ...] = () if queue.kind == "fifo" else ("priority",)
    if priorities and (queue.priority_type == "str" or queue.attached):
        priorities = ("priority", "priority_base64")
    raw = (_RAW,) if details and queue.attached and queue.kind != "fifo" else ()
    values = ("value", "value_base64", *((REDACTED,) if hides else ()))
    return (*priorities, *raw, *values, *(_KNOWN if details else ()))


def _shape(item: Item, rules: Redaction, *, details: bool) -> Shape:
    """Return an item as members of a line, without those that do not apply."""
    shape: Shape = {}
    seen = masked(item.raw, rules)
    if seen != item.raw or item.hidden or item.truncated:
        shape[REDACTED] = seen.decode("utf-8", "replace")
    elif (text := plain_text(item.raw)) is not None:
        shape["value"] = text
    else:
        shape["value_base64"] = base64.b64encode(item.raw).decode()
    if item.foreign is not None and item.priority is None:
        shape[_RAW] = items.priority(item)  # no import takes it: only its writers know such priorities
    elif item.priority is not None:
        shape["priority"] = item.priority
    if details:
        shape |= {
            **shape_of(item, "id", "state", "pushed_at", "due_at", "attempts"),
            "reason": redacted(item.reason, rules),
            "attempt_log": [_attempt(one, rules) for one in item.attempt_log] or None,
            "size": item.size,
        }
    return shape


def _attempt(one: Attempt, rules: Redaction) -> Shape:
    errors = {name: redacted(getattr(one, name), rules) for name in ("error", "traceback")}
    return {**shape_of(one, *OF_ATTEMPTS), **errors}


def _cells(columns: tuple[str, ...], shape: Shape) -> list[str]:
    """Write a row. A value or priority that a spreadsheet would run is in the column for base64."""
    cells = {name: _cell(shape.get(name)) for name in columns}
    for name in ("value", "priority"):
        text = shape.get(name)
        if isinstance(text, str) and (is_formula(text) or plain_text(text.encode()) is None):
            cells |= {name: "", f"{name}_base64": base64.b64encode(text.encode()).decode()}
    return [
        cells[name] if name.endswith("_base64") or name in ("value", "priority") else defused(cells[name])
        for name in columns
    ]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else repr(value)
