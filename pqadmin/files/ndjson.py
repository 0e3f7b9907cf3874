"""NDJSON: one JSON object a line, `{"value": "…", "priority": 5}`."""

from collections.abc import Iterator
from typing import IO

from pqadmin.files.entries import BadEntry, Blank, Entry, FewerLines, Outcome, Unfit, entry_of_members
from pqadmin.files.lines import numbered
from pqadmin.files.strict_json import BadJSON, parse_members
from queues.admin import MAX_VALUE_SIZE, PriorityType
from queues.errors import Words

#: Characters of a line that holds a list or an object: the largest value, the longest priority, and room.
MAX_NESTED_LINE = MAX_VALUE_SIZE + 10_000


def read(stream: IO[bytes], *, priority_type: PriorityType | None, skip: int = 0) -> Iterator[Outcome]:
    """Yield what every line after line `skip` holds, in order; raise `FewerLines`.

    `priority_type` None is a FIFO queue.
    """
    number = 0
    for number, line in numbered(stream):
        if number <= skip:
            continue
        if isinstance(line, Words):
            yield BadEntry(line=number, first=number, reason=line)
        elif not line.strip():
            yield Blank(line=number)
        else:
            yield _outcome(number, line, priority_type)
    if number < skip:
        raise FewerLines(number, skip)


def _outcome(number: int, data: bytes, priority_type: PriorityType | None) -> Entry | BadEntry:
    try:
        text = data.decode()
        return entry_of_members(parse_members(text, longest=MAX_NESTED_LINE), line=number, priority_type=priority_type)
    except UnicodeDecodeError as error:
        reason = Words("not UTF-8 at byte {at}", at=error.start + 1)
    except (BadJSON, Unfit) as error:
        reason = error.words
    return BadEntry(line=number, first=number, reason=reason)
