"""One entry of an import or export file: a value and its priority, whatever the format.

Both formats have the same names: `value` (text), `value_base64` (any bytes), `value_json` (a JSON value, stored as its
text in the file) and `priority`, or `priority_base64` for a text priority. An entry has exactly one of the three
values, and at most one of the two priorities.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pqadmin.display.format import shorten, visible
from pqadmin.files.strict_json import BadJSON, LongInteger, parse
from queues import Priority
from queues.admin import MAX_VALUE_SIZE, PriorityType, normalize_priority, parse_priority
from queues.errors import BadPriority, Worded, Words

Format = Literal["ndjson", "csv", "lines"]
VALUE_NAMES = ("value", "value_base64", "value_json")
PRIORITY_NAMES = ("priority", "priority_base64")
NAMES = (*VALUE_NAMES, *PRIORITY_NAMES)
#: How an export names a value of which something is hidden: such a line is never pushed.
REDACTED = "value_redacted"
_HIDDEN = Words("something of the value was hidden when it was exported, so it is not the value that was there")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item to push. `line` is its last physical line; `priority` is None for a FIFO queue."""

    line: int
    value: bytes
    priority: Priority | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEntry:
    """A line (or CSV record from `first` to `line`) that cannot be pushed, with the reason."""

    line: int
    first: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """A line that holds nothing: skipped, but counted."""

    line: int


Outcome = Entry | BadEntry | Blank


class BadFormat(Worded):
    """The file is of no format that can be read; the message says why."""


class FewerLines(BadFormat):
    """The file ends before the line behind which reading was to begin."""

    def __init__(self, lines: int, skip: int) -> None:
        super().__init__(
            Words(
                "The file ends at line {lines:,}: line {skip:,} is behind its end. Nothing was read.",
                lines=lines,
                skip=skip,
            )
        )


class Unfit(Worded):
    """The line holds no entry; the message says why."""


def entry_of_members(members: dict[str, object], *, line: int, priority_type: PriorityType | None) -> Entry:
    """Make an entry from a JSON object; raise `Unfit`."""
    if REDACTED in members:
        raise Unfit(_HIDDEN)
    for name in members:
        if name not in NAMES:
            raise Unfit(
                "unknown name “{name}”; known are {names}", name=visible(shorten(name, 40)), names=", ".join(NAMES)
            )
    given = [name for name in VALUE_NAMES if name in members]
    if len(given) != 1:
        raise Unfit(_one_value(given))
    written = members[given[0]]
    if not isinstance(written, str):
        raise Unfit("{name} is text in double quotes; for other JSON use value_json", name=given[0])
    value = _from_base64(given[0], written) if given[0] == "value_base64" else written.encode()
    priority = _priority(members.get("priority"), members.get("priority_base64"), priority_type, normalize_priority)
    return Entry(line=line, value=sized(value), priority=priority)


def entry_of_cells(cells: dict[str, str], *, line: int, priority_type: PriorityType | None) -> Entry:
    """Make an entry from the cells of a CSV record; raise `Unfit`.

    Of the value columns at most one cell is filled. When all are empty the value is empty.
    """
    if cells.get(REDACTED):
        raise Unfit(_HIDDEN)
    filled = [name for name in VALUE_NAMES if cells.get(name)]
    if len(filled) > 1:
        raise Unfit(_one_value(filled))
    if filled == ["value_base64"]:
        value = _from_base64("value_base64", cells["value_base64"])
    elif filled == ["value_json"]:
        value = sized(cells["value_json"].encode())  # before it is parsed: that takes long
        try:
            parse(cells["value_json"])
        except BadJSON as error:
            raise Unfit("value_json: {error}", error=error.words) from None
    elif not filled and "value" not in cells and "value_base64" not in cells:
        raise Unfit("value_json is empty")
    else:
        value = cells.get("value", "").encode()
    text, encoded = cells.get("priority"), cells.get("priority_base64")
    if encoded:
        text = text or None
    elif text is None:
        text = encoded
    if priority_type != "str":
        text = text or None
    priority = _priority(text, encoded or None, priority_type, parse_priority)
    return Entry(line=line, value=sized(value), priority=priority)


def _one_value(given: list[str]) -> Words:
    if not given:
        return Words("no value: one of value, value_base64, value_json is needed")
    names: str = given[0]
    for other in given[1:]:
        names = Words("{name} and {other}", name=names, other=other)
    return Words("{names} are given together; one value is needed", names=names)


def _from_base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise Unfit("{name} is not base64", name=name) from None


def sized(value: bytes) -> bytes:
    """Return the value if it is not too large; raise `Unfit`."""
    if len(value) > MAX_VALUE_SIZE:
        raise Unfit("the value has {size:,} bytes; at most {most:,} are allowed", size=len(value), most=MAX_VALUE_SIZE)
    return value


def _priority(
    given: object, encoded: object, priority_type: PriorityType | None, read: Callable[[Any, PriorityType], Priority]
) -> Priority | None:
    """Read a priority as it is given, or in base64; None for a FIFO queue."""
    if priority_type is None:
        if given is not None or encoded is not None:
            raise Unfit("a FIFO queue takes no priority")
        return None
    if encoded is not None:
        if given is not None:
            raise Unfit("priority and priority_base64 are given together; one priority is needed")
        if priority_type != "str":
            raise Unfit("priority_base64 is only for text priorities")
        if not isinstance(encoded, str):
            raise Unfit("priority_base64 is text in double quotes")
        try:
            given, read = _from_base64("priority_base64", encoded).decode(), normalize_priority
        except UnicodeDecodeError:
            raise Unfit("priority_base64 is not UTF-8") from None
    if given is None:
        raise Unfit("priority is missing")
    if isinstance(given, LongInteger):
        raise Unfit("the priority has {digits:,} digits; at most 614 are allowed", digits=given.digits)
    try:
        return read(given, priority_type)
    except BadPriority as error:
        raise Unfit(error.words.within()) from None
