"""Several items as text: read by the formats of imports, all of it looked through before anything is pushed.

Reading stops as soon as a text is known to have too many lines, so that other requests do not wait.
"""

import io
from dataclasses import dataclass

from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.files import csv_rows, formats
from pqadmin.files.entries import BadEntry, BadFormat, Entry, Format
from queues import Priority
from queues.admin import MAX_PUSH_JOB_ITEMS, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_ITEMS, Codec, PriorityType

#: Wrong lines that are shown.
MAX_SHOWN = 50
#: Lines (or records of CSV) besides those that may be pushed that are looked at, good, wrong or blank.
MORE_LINES = 4_000
#: Lines of a file that all records together may have: values of CSV span lines.
MAX_LINES_OF_RECORDS = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a text holds. It can be pushed when `wrong` is empty and nothing is bad."""

    #: At most as many as may be pushed.
    entries: tuple[Entry, ...]
    #: Items, all of them that were looked at.
    count: int
    #: Bytes of all their values.
    size: int
    #: The first of the lines that hold no item, with why.
    bad: tuple[BadEntry, ...]
    bad_count: int
    file_format: Format | None
    #: Why none of it can be pushed, apart from bad lines; empty: it can.
    wrong: str

    @property
    def large(self) -> bool:
        """Say whether it is more than one transaction takes: a job pushes it then."""
        return self.count > MAX_TRANSACTION_ITEMS or self.size > MAX_TRANSACTION_BYTES

    @property
    def good(self) -> bool:
        """Say whether it can be pushed."""
        return not self.wrong and not self.bad_count and self.count > 0


class _TooManyLines(Exception):
    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


class _Bounded(io.BytesIO):
    """A text of which only so many lines can be read."""

    _read = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if line:
            self._read += 1
            if self._read > MAX_LINES_OF_RECORDS:
                raise _TooManyLines(MAX_LINES_OF_RECORDS)
        return line


def _told(data: bytes) -> Format:
    """Tell the format by the beginning: CSV names its columns, any other lines are plain; raise `BadFormat`."""
    told = formats.sniff(io.BufferedReader(io.BytesIO(data)))
    return "lines" if told == "csv" and not csv_rows.has_header(data) else told


def read(
    data: bytes,
    *,
    file_format: Format | None,
    priority_type: PriorityType | None,
    codec: Codec | None = None,
    at_once: bool = False,
    priority: Priority | None = None,
) -> Batch:
    """Look through a text; `priority_type` None is a FIFO queue. With `at_once`, one transaction has to take it.

    Plain lines have the priority.
    """
    most = MAX_TRANSACTION_ITEMS if at_once else MAX_PUSH_JOB_ITEMS
    entries: list[Entry] = []
    bad: list[BadEntry] = []
    count = size = bad_count = 0
    wrong = ""
    try:
        file_format = file_format or _told(data)
        outcomes = formats.read(
            _Bounded(data), file_format, priority_type=priority_type, codec=codec, priority=priority
        )
        for looked_at, outcome in enumerate(outcomes, 1):
            if looked_at > most + MORE_LINES:
                raise _TooManyLines(most + MORE_LINES)
            if isinstance(outcome, Entry):
                count, size = count + 1, size + len(outcome.value)
                if count <= most:
                    entries.append(outcome)
            elif isinstance(outcome, BadEntry):
                bad_count += 1
                if len(bad) < MAX_SHOWN:
                    bad.append(outcome)
    except BadFormat as error:
        wrong = said(error)
    except _TooManyLines as error:
        wrong = _(
            "There are more than %(n)s lines, and only these were looked at. "
            "Push them in parts, or as many as you like with the command below."
        ) % {"n": write.number(error.most)}
    if not wrong and not count and not bad_count:
        wrong = _("There is no item in it.")
    return Batch(
        entries=tuple(entries),
        count=count,
        size=size,
        bad=tuple(bad),
        bad_count=bad_count,
        file_format=file_format,
        wrong=wrong or _too_many(count, size, most, at_once=at_once),
    )


def _too_many(count: int, size: int, most: int, *, at_once: bool) -> str:
    """Say that there are more items than one job, or one transaction, takes; empty: there are not."""
    words = ""
    if not at_once and count > most:
        words = _(
            "These are %(n)s items. A job pushes at most %(items)s. "
            "Push them in parts, or as many as you like with the command below."
        )
    elif at_once and (count > most or size > MAX_TRANSACTION_BYTES):
        words = _(
            "These are %(n)s items of %(size)s together. One transaction takes at most %(items)s items and %(most)s, "
            "so that they arrive all or none. Push them in parts, or as many as you like with the command below."
        )
    values = {"n": write.number(count), "size": write.size(size), "items": write.number(most)}
    return words % (values | {"most": write.size(MAX_TRANSACTION_BYTES)})
