"""NDJSON: one JSON object a line, `{"value": "…", "priority": 5}`."""

import base64
from collections.abc import Iterator
from typing import IO

from pqadmin.files.entries import BadEntry, Blank, Entry, Outcome, Unfit, entry_of_members
from pqadmin.files.lines import LongLine, numbered, too_long
from pqadmin.files.plain_text import json_text, plain_text
from pqadmin.files.strict_json import BadJSON, parse_members
from queues import Priority
from queues.admin import MAX_VALUE_SIZE, PriorityType
from queues.errors import Words

#: Characters of a line that holds a list or an object: the largest value, the longest priority, and room.
MAX_NESTED_LINE = MAX_VALUE_SIZE + 10_000


def read(stream: IO[bytes], *, priority_type: PriorityType | None, skip: int = 0) -> Iterator[Outcome]:
    """Yield what every line after line `skip` holds, in order; `priority_type` None is a FIFO queue."""
    for line in numbered(stream):
        if line.number <= skip:
            continue
        if isinstance(line, LongLine):
            reason = too_long(line)
            yield BadEntry(line=line.number, first=line.number, reason=reason)
        elif not line.data.strip():
            yield Blank(line=line.number)
        else:
            yield _outcome(line.number, line.data, priority_type)


def _outcome(number: int, data: bytes, priority_type: PriorityType | None) -> Entry | BadEntry:
    try:
        text = data.decode()
        return entry_of_members(parse_members(text, longest=MAX_NESTED_LINE), line=number, priority_type=priority_type)
    except UnicodeDecodeError as error:
        reason = Words("not UTF-8 at byte {at}", at=error.start + 1)
    except (BadJSON, Unfit) as error:
        reason = error.words
    return BadEntry(line=number, first=number, reason=reason)


def write(stream: IO[bytes], entries: Iterator[Entry]) -> int:
    """Write the entries and return their number."""
    count = 0
    for entry in entries:
        count += 1
        stream.write(line_of(entry.value, entry.priority).encode() + b"\n")
    return count


def line_of(value: bytes, priority: Priority | None) -> str:
    """Write one item as a JSON object: text as `value`, bytes as `value_base64`; no priority for a FIFO queue."""
    text = plain_text(value)
    shape: dict[str, str | Priority] = (
        {"value_base64": base64.b64encode(value).decode()} if text is None else {"value": text}
    )
    if priority is not None:
        shape["priority"] = priority
    return json_text(shape)
