"""What the address of a queue's page asks for: a state, an end, and which items of it; and the address that asks so.

Everything typed is read here and only here, so that the list, acts on all that match and exports mean the same items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from pqadmin.dashboard import format as write
from pqadmin.dashboard.said import said
from queues import Query, Queue, QueueStatus
from queues.cursor import End
from queues.errors import BadPriority
from queues.priority import Priority, parse_priority
from queues.queue_keys import STATES
from queues.search import MAX_TEXT

T = TypeVar("T")

TRASH = "trash"
_ENDS: dict[str, End] = {"min": "min", "max": "max", "head": "min", "tail": "max"}
#: Those who died last are what people come for.
_FIRST_END: dict[str, End] = {"dead": "max"}
#: Characters of what is read; ids of attached items are their keys, up to 10,000 bytes.
_MAX_PRIORITY, _MAX_ID, _MAX_TIME, _MAX_CURSOR = 2_000, 20_100, 60, 14_000
_ID = re.compile(r"[0-9a-f]{1,40}")
_FOREIGN_ID = re.compile(r"(key-)?[0-9a-f]+")
_LENGTH = re.compile(r"([0-9]{1,9})\s*(s|sec|m|min|h|d|w)", re.IGNORECASE)
_ZONE = re.compile(r"\s+UTC(?:(?P<sign>[+−-])(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{2}))?)?$")
_UNITS = {
    "s": timedelta(seconds=1),
    "sec": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class BadMoment(ValueError):
    """The text is no moment; the message says what would be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one address asks for."""

    #: ready, delayed, leased, dead or trash.
    state: str
    end: End
    #: A cursor, as it came.
    after: str | None
    query: Query
    #: What stands in the form's fields: as typed, or as it reads now.
    typed: Mapping[str, str]
    #: What is wrong, by field.
    wrong: Mapping[str, str]
    #: All items of the page are to be selected.
    selected: bool

    @property
    def searching(self) -> bool:
        """Say whether items are left out."""
        return self.state != TRASH and self.query.filters

    @property
    def pinned(self) -> dict[str, str]:
        """The query as an address's fields, exact: times are moments, however they were typed."""
        return fields_of(self.query) | {"state": self.state}

    def address(self, **more: str) -> str:
        """Return the address of the same items, from the same end."""
        return "?" + urlencode({**self.pinned, "end": self.end, **more})


def asked(fields: Mapping[str, str], queue: Queue | QueueStatus, *, now: datetime | None = None) -> Asked:
    """Read an address for a queue. What is wrong in it is told, and asks for nothing."""
    now = now or datetime.now(UTC)
    state = fields.get("state", "")
    if state not in (*STATES, TRASH) or (queue.attached and state not in ("ready", TRASH)):
        state = "ready"
    end = _ENDS.get(fields.get("end", "")) or _FIRST_END.get(state, "min")
    reading = _Reading(fields, queue, now)
    query = Query() if state == TRASH else reading.query(state, end)
    return Asked(
        state=state,
        end=end,
        after=fields.get("after", "")[:_MAX_CURSOR] or None,
        query=query,
        typed=reading.typed,
        wrong=reading.wrong,
        selected=fields.get("select") == "page",
    )


def read(fields: Mapping[str, str], queue: Queue | QueueStatus) -> tuple[Query, Mapping[str, str]]:
    """Return the query that an address's fields ask for, and what is wrong in them, by field."""
    found = asked(fields, queue)
    return found.query, found.wrong


def fields_of(query: Query) -> dict[str, str]:
    """Return the fields of an address that asks for a query."""
    named = {
        "state": query.state,
        "q": query.text,
        "id": query.item_id,
        "low": "" if query.low is None else write_priority(query.low),
        "high": "" if query.high is None else write_priority(query.high),
        "since": "" if query.since is None else write_moment(query.since),
        "until": "" if query.until is None else write_moment(query.until),
    }
    return {name: value for name, value in named.items() if value}


def parse_moment(text: str, now: datetime) -> datetime:
    """Read a moment as people type it: a length of time before now (15 min), or a date and perhaps a time in UTC."""
    text = text.strip()
    try:
        if length := _LENGTH.fullmatch(text):
            return max(now - int(length[1]) * _UNITS[length[2].lower()], _EARLIEST)
        typed = datetime.fromisoformat(_with_offset(text))
        return typed.replace(tzinfo=UTC) if typed.tzinfo is None else typed.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadMoment(_("Give a length of time (15 min, 2 h, 3 d) or a moment in UTC (2026-11-21 14:00).")) from None


def _with_offset(text: str) -> str:
    """Put a zone as pages write it (UTC, UTC+8, UTC−3:30) as an offset that Python reads."""
    zone = _ZONE.search(text)
    if zone is None:
        return text
    sign = "-" if zone["sign"] in ("-", "−") else "+"
    return f"{text[: zone.start()]}{sign}{int(zone['hours'] or 0):02}:{int(zone['minutes'] or 0):02}"


def write_moment(at: datetime) -> str:
    """Write a moment so that `parse_moment` reads the same one."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_priority(priority: Priority) -> str:
    """Write a priority so that it is read as the same one."""
    return priority if isinstance(priority, str) else write.priority(priority)


class _Reading:
    """Reads fields one by one and notes what is wrong."""

    def __init__(self, fields: Mapping[str, str], queue: Queue | QueueStatus, now: datetime) -> None:
        self._fields = fields
        self._queue = queue
        self._now = now
        self.typed: dict[str, str] = {}
        self.wrong: dict[str, str] = {}

    def query(self, state: str, end: End) -> Query:
        """Return what is asked for of a state's items."""
        fifo, attached = self._queue.kind == "fifo", self._queue.attached
        query = Query(state=state, text=self._text(), item_id=self._id(attached=attached))
        if fifo:
            if any(self._fields.get(name) for name in ("low", "high", "from")):
                self.wrong["low"] = _("A FIFO queue has no priorities; the list begins at its end.")
        else:
            low, high = (
                self._take("low", _MAX_PRIORITY, self._priority),
                self._take("high", _MAX_PRIORITY, self._priority),
            )
            start = self._take("from", _MAX_PRIORITY, self._priority)
            if start is not None:
                # A place in the list: from there on, seen from its end.
                if end == "min":
                    low = start
                else:
                    high = start
                self.typed["low" if end == "min" else "high"] = self.typed.pop("from")
            query = replace(query, low=low, high=high)
        if attached:
            return query
        since, until, older = (self._take(name, _MAX_TIME, self._moment) for name in ("since", "until", "age"))
        if older is not None:
            until = older
            self.typed["until"] = self.typed.pop("age")
        return replace(query, since=since, until=until)

    def _text(self) -> str:
        self.typed["q"] = text = self._fields.get("q", "")
        if len(text) > MAX_TEXT:
            self.typed["q"] = text[:MAX_TEXT]
            self.wrong["q"] = _("One looks for at most %(n)s characters.") % {"n": write.number(MAX_TEXT)}
            return ""
        return text

    def _id(self, *, attached: bool) -> str:
        text = self._fields.get("id", "")[:_MAX_ID].strip().lower().removeprefix(write.ELLIPSIS)
        self.typed["id"] = text
        if text and not (_FOREIGN_ID if attached else _ID).fullmatch(text):
            self.wrong["id"] = _("An id, or a part of one, has digits and the letters a to f: at most 40 of them.")
            return ""
        return text

    def _take(self, name: str, longest: int, parse: Callable[[str], T]) -> T | None:
        text = self._fields.get(name, "")[:longest]
        self.typed[name] = text
        if not text.strip():
            return None
        try:
            return parse(text)
        except (BadPriority, BadMoment) as error:
            self.wrong[name] = said(error)
            return None

    def _priority(self, text: str) -> Priority:
        return parse_priority(text, self._queue.priority_type)

    def _moment(self, text: str) -> datetime:
        return parse_moment(text, self._now)
