"""The log of attempts: the last leases of an item that ended without an acknowledgement.

It lies in the item's own record, and in the index entry of a ready item, so it goes wherever the item goes and leaves
with it. It is written when an attempt ends, and never by a push, a pop, a lease or an acknowledgement of an item
without one.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues.model import records
from queues.model.ids import at

#: The field of a record that holds the log: entries as plain JSON values, the oldest first.
LOG = "log"
#: Attempts that are kept.
MOST = 20
#: Bytes of a whole log; a large value leaves it less.
MAX_BYTES = 8_000
#: Bytes of a record beside its value and its log, at most.
_REST = 6_000
_RECORD = 100_000
#: Characters of a traceback, and how many of them are its beginning: the end says where it failed.
MAX_TRACEBACK, _BEGINNING = 2_500, 600
#: Text that no terminal or page shows as it is: it costs up to six bytes a character in a record.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One lease of an item that ended without an acknowledgement."""

    #: Its number, from 1; a retry of the dead item begins anew.
    number: int
    #: The worker that held the item.
    worker: str
    began_at: datetime
    ended_at: datetime
    #: The lease expired: its worker died, hung, or lost the store. Else the item was released.
    expired: bool
    #: The item was dead by it.
    died: bool
    #: The exception's type and message, or the reason of the release; empty when none was given.
    error: str
    #: That of the exception, its middle left out where it is long; only the last ones are kept.
    traceback: str


def entry(
    *,
    number: int,
    worker: str,
    began_ms: int,
    ended_ms: int,
    expired: bool = False,
    died: bool = False,
    error: str = "",
    traceback: str = "",
) -> Entry:
    """Return an attempt as it is stored, without what does not apply."""
    made = {"number": number, "worker": worker, "began": began_ms, "ended": ended_ms}
    more = {"expired": expired, "died": died, "error": error, "traceback": traceback}
    return made | {name: value for name, value in more.items() if value}


def fitted(log: Sequence[Entry], value_size: int) -> list[Entry]:
    """Return what is kept of a log beside a value of this size: old tracebacks go first, then old attempts."""
    kept = list(log[-MOST:])
    room = min(MAX_BYTES, _RECORD - _REST - value_size)
    sizes = [len(records.encode(one)) for one in kept]
    for n, one in enumerate(kept):
        if sum(sizes) > room and one.get("traceback"):
            kept[n] = {name: value for name, value in one.items() if name != "traceback"}
            sizes[n] = len(records.encode(kept[n]))
    while kept and sum(sizes) > room:
        del kept[0], sizes[0]
    return kept


def size_of(log: Sequence[Entry]) -> int:
    """Return about how many bytes a log takes in the store."""
    return len(records.encode({LOG: list(log)})) if log else 0


def read(log: Sequence[Entry]) -> tuple[Attempt, ...]:
    """Return a log as attempts, the oldest first. An entry that cannot be read is left out."""
    found = []
    for one in log:
        with suppress(*records.UNREADABLE):
            found.append(
                Attempt(
                    number=int(one["number"]),
                    worker=str(one["worker"]),
                    began_at=at(one["began"]),
                    ended_at=at(one["ended"]),
                    expired=bool(one.get("expired")),
                    died=bool(one.get("died")),
                    error=str(one.get("error", "")),
                    traceback=str(one.get("traceback", "")),
                )
            )
    return tuple(found)


def cut(text: str) -> str:
    """Return a traceback as it is kept: valid text, its middle left out where it is long."""
    if len(text) > MAX_TRACEBACK:
        left_out = len(text) - MAX_TRACEBACK
        text = f"{text[:_BEGINNING]}\n… {left_out:,} characters …\n{text[_BEGINNING - MAX_TRACEBACK :]}"
    plain = text.encode(errors="backslashreplace").decode()
    return _CONTROL.sub("�", plain)
