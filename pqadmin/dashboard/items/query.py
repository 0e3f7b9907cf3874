"""What the address of a queue's page asks for: a state, an end, and which items of it; and the address that asks so.

Everything typed is read here and only here, so that the list, acts on all that match and exports mean the same items.
A moment without an offset is one of the zone that the address names (`zone`: the form's own), else of UTC: a shared
address means the same to all readers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.moments import MAX_ZONE, BadMoment, BadZone, kept_zone, parse_past, write_moment
from pqadmin.store import store_now
from queues import Priority, Query, Queue, QueueStatus
from queues.admin import MAX_ERROR_GROUP, MAX_SEARCH_TEXT, STATES, End, parse_priority
from queues.errors import BadPriority

T = TypeVar("T")

TRASH, FINISHED = "trash", "finished"
_ENDS: dict[str, End] = {"min": "min", "max": "max", "head": "min", "tail": "max"}
#: The last ones that died come first.
_FIRST_END: dict[str, End] = {"dead": "max"}
#: Characters of what is read; ids of attached items are their keys, up to 10,000 bytes.
_MAX_PRIORITY, _MAX_ID, _MAX_TIME, MAX_CURSOR = 2_000, 20_100, 60, 14_000
#: A field and its text: neither the beginning of an address (http://) nor of an error (KeyError: …).
_FIELD = re.compile(r"(?P<path>[^\W\d][\w-]*(?:\.[\w-]+)*)(?P<sign>[:~])(?!//)(?P<text>\S.*)", re.DOTALL)
#: Fields by which an address means items of the state that it names, or of the ready ones.
_SEARCH = {"q", "id", "low", "high", "from", "since", "until", "age", "after", "end"}
_ID = re.compile(r"[0-9a-f]{1,40}")
_FOREIGN_ID = re.compile(r"(key-)?[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one address asks for."""

    #: ready, delayed, leased, dead, finished or trash.
    state: str
    end: End
    #: A cursor, as it came.
    after: str | None
    query: Query
    #: What the form's fields show: as typed, or as it reads now.
    typed: Mapping[str, str]
    #: What is wrong, by field.
    wrong: Mapping[str, str]
    #: The zone of a moment that is wrong, until it is right; empty: the reader's.
    zone: str
    #: All items of the page are to be selected.
    selected: bool

    @property
    def searching(self) -> bool:
        """Say whether items are left out."""
        return self.of_items and self.query.filters

    @property
    def of_items(self) -> bool:
        """Say whether items of the queue are asked for: neither records of finished ones nor the trash."""
        return self.state in STATES

    @property
    def pinned(self) -> dict[str, str]:
        """The query as an address's fields, exact: times are moments, however they were typed."""
        return fields_of(self.query) | {"state": self.state}

    def address(self, **more: str) -> str:
        """Return the address of the same items, from the same end."""
        return "?" + urlencode({**self.pinned, "end": self.end, **more})


def asked(
    fields: Mapping[str, str], queue: Queue | QueueStatus, *, now: datetime | None = None, first: str = "ready"
) -> Asked:
    """Read an address for a queue; `first` is the state of one that names none.

    What is wrong in it is told, and asks for nothing.
    """
    now = now or store_now()
    state = fields.get("state", "") or ("" if _SEARCH & fields.keys() else first)
    if state not in (*STATES, FINISHED, TRASH) or (queue.attached and state not in ("ready", TRASH)):
        state = "ready"
    end = _ENDS.get(fields.get("end", "")) or _FIRST_END.get(state, "min")
    reading = _Reading(fields, queue, now)
    query = reading.query(state, end) if state in STATES else Query()
    return Asked(
        state=state,
        end=end,
        after=fields.get("after", "")[:MAX_CURSOR] or None,
        query=query,
        typed=reading.typed,
        wrong=reading.wrong,
        zone=reading.zone,
        selected=fields.get("select") == "page",
    )


def fields_of(query: Query) -> dict[str, str]:
    """Return the fields of an address that asks for a query."""

    named = {
        "state": query.state,
        "q": write_text(query),
        "error": query.error,
        "worker": query.worker,
        "id": query.item_id,
        "low": "" if query.low is None else write_priority(query.low),
        "high": "" if query.high is None else write_priority(query.high),
        "since": "" if query.since is None else write_moment(query.since),
        "until": "" if query.until is None else write_moment(query.until),
    }
    return {name: value for name, value in named.items() if value}


def read_text(text: str) -> Query:
    """Read what is typed: `customer.id:4711` is the whole field, `customer.id~47` a part of it, "…" text as it is."""
    if len(text) > 1 and text[0] == text[-1] == '"' and _FIELD.fullmatch(text[1:-1]):
        return Query(text=text[1:-1])
    field = _FIELD.fullmatch(text)
    if field is None:
        return Query(text=text)
    return Query(text=field["text"], field=field["path"], exact=field["sign"] == ":")


def too_long() -> str:
    """Say why a text that is too long is not looked for."""
    return _("One looks for at most %(n)s characters.") % {"n": write.number(MAX_SEARCH_TEXT)}


def write_text(query: Query) -> str:
    """Write a text or a field as it is typed."""
    if query.field:
        return f"{query.field}{':' if query.exact else '~'}{query.text}"
    return f'"{query.text}"' if _FIELD.fullmatch(query.text) else query.text


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
        self.zone = ""

    def query(self, state: str, end: End) -> Query:
        """Return what is asked for of a state's items."""
        fifo, attached = self._queue.kind == "fifo", self._queue.attached
        error = self._fields.get("error", "")[:MAX_ERROR_GROUP] if state == "dead" else ""
        worker = self._fields.get("worker", "")[:MAX_SEARCH_TEXT] if state == "leased" else ""
        query = replace(self._text(), state=state, item_id=self._id(attached=attached), error=error, worker=worker)
        if not fifo:
            low, high, start = (self._take(name, _MAX_PRIORITY, self._priority) for name in ("low", "high", "from"))
            if start is not None:
                # A place in the list: from there on, seen from its end.
                low, high = (start, high) if end == "min" else (low, start)
                self.typed["low" if end == "min" else "high"] = self.typed.pop("from")
            query = replace(query, low=low, high=high)
        elif any(self._fields.get(name) for name in ("low", "high", "from")):
            self.wrong["low"] = _("A FIFO queue has no priorities; the list begins at its end.")
        if attached:
            return query
        since, until, older = (self._moment(name) for name in ("since", "until", "age"))
        if older is not None:
            until = older
            self.typed["until"] = self.typed.pop("age")
        return replace(query, since=since, until=until)

    def _text(self) -> Query:
        self.typed["q"] = text = self._fields.get("q", "")
        if len(text) > MAX_SEARCH_TEXT:
            self.typed["q"] = text[:MAX_SEARCH_TEXT]
            self.wrong["q"] = too_long()
            return Query()
        return read_text(text)

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
        except (BadPriority, BadMoment, BadZone) as error:
            self.wrong[name] = said(error)
            return None

    def _moment(self, name: str) -> datetime | None:
        """Read a moment of the zone that the address names, and show it with its offset in the reader's."""
        zone = self._fields.get("zone", "")[:MAX_ZONE]
        found = self._take(name, _MAX_TIME, lambda text: parse_past(text, self._now, zone))
        if found is None:
            self.zone = kept_zone(zone) if name in self.wrong else self.zone
            return None
        at, self.typed[name] = found
        return at

    def _priority(self, text: str) -> Priority:
        return parse_priority(text, self._queue.priority_type)
