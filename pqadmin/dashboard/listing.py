"""Which rows the overview shows and in what order: filter, grouping, sorting, one window of rows at a time.

The next window begins after the sort key of the last row, not after a number of rows: nothing is counted or
skipped, and rows that come or go in between do not shift the rest.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pqadmin.dashboard.filters import Filter
from pqadmin.dashboard.templatetags.dashboard import split
from pqadmin.live.outlook import Problem, State
from pqadmin.live.rows import Attached, Row, attached_of

WINDOW = 100
GROUPINGS = ("problems", "name", "group")
#: Fields by which the table can be sorted, and whether the first click shows the largest first.
SORTS = {"name": False, "ready": True, "in": True, "out": True, "oldest": True}

Key = tuple[Any, ...]
_NONE_ATTACHED = Attached()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How rows are put in order; `sort` is empty for the grouping's own order."""

    grouping: str = "problems"
    sort: str = ""
    descending: bool = False

    @classmethod
    def parse(cls, grouping: str, sort: str) -> Order:
        """Read an order from an address; what is unknown is the default."""
        field = sort.removeprefix("-")
        return cls(
            grouping=grouping if grouping in GROUPINGS else "problems",
            sort=field if field in SORTS else "",
            descending=field in SORTS and sort.startswith("-"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows under one heading. `label` is None for a table without headings; sums cover the whole group."""

    label: str | None
    rows: Sequence[Row]
    queues: int = 0
    #: Attached queues included, as far as they were counted.
    ready: int = 0
    attached: Attached = _NONE_ATTACHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One window of the overview. `matching` counts all rows that pass the filter."""

    groups: Sequence[Group]
    shown: int
    matching: int
    cursor: str | None
    #: The cursor in the address was not one of ours; the first window is shown.
    foreign_cursor: bool


def arrange(rows: Sequence[Row], *, order: Order, wanted: Filter, after: str, now: datetime) -> Listing:
    """Return the window of rows that the address asks for."""
    matching = [row for row in rows if wanted.passes(row, now)] if wanted else list(rows)
    key = _key(order, now)
    keyed = sorted(((key(row), row) for row in matching), key=lambda pair: pair[0])
    first, foreign = 0, False
    if after:
        try:
            last = _decode(after)
            first = _first_after(keyed, last)
        except (ValueError, TypeError, RecursionError):  # the last: nested deeper than any cursor of ours
            foreign = True
    window = keyed[first : first + WINDOW]
    more = first + WINDOW < len(keyed)
    return Listing(
        groups=_groups([row for _, row in window], matching, order),
        shown=len(window),
        matching=len(matching),
        cursor=_encode(window[-1][0]) if more else None,
        foreign_cursor=foreign,
    )


def _key(order: Order, now: datetime) -> Callable[[Row], Key]:
    sort = _sort_value(order, now)
    if order.grouping == "problems":
        return lambda row: (_rank(row), *sort(row), row.status.name)
    if order.grouping == "group":
        return lambda row: (split(row.status.name)[0], *sort(row), row.status.name)
    return lambda row: (*sort(row), row.status.name)


def _sort_value(order: Order, now: datetime) -> Callable[[Row], Key]:
    sign = -1.0 if order.descending else 1.0
    if order.sort == "name" and order.descending:
        return lambda row: ([-ord(c) for c in row.status.name] + [1],)
    if order.sort in ("", "name"):
        # Among the queues in trouble the deepest comes first.
        if order.grouping == "problems" and not order.sort:
            return lambda row: (-row.status.totals.ready if row.problem else 0,)
        return lambda row: ()
    if order.sort == "ready":
        return lambda row: (int(sign) * row.status.totals.ready,)
    if order.sort == "in":
        return lambda row: (sign * (-1.0 if row.rate_in is None else row.rate_in),)
    if order.sort == "out":
        return lambda row: (sign * (-1.0 if row.rate_out is None else row.rate_out),)
    return lambda row: (sign * (-1.0 if row.status.oldest is None else -row.status.oldest.timestamp() + 4e9),)


def _rank(row: Row) -> int:
    if row.problem == Problem.STALLED:
        return 0
    if row.problem == Problem.GROWING:
        return 1
    if row.problem:
        return 2
    return 3 if row.state is State.PAUSED else 4


def _first_after(keyed: Sequence[tuple[Key, Row]], last: Key) -> int:
    low, high = 0, len(keyed)
    while low < high:
        middle = (low + high) // 2
        if keyed[middle][0] <= last:
            low = middle + 1
        else:
            high = middle
    return low


def _groups(window: Sequence[Row], matching: Sequence[Row], order: Order) -> Sequence[Group]:
    if order.grouping != "group":
        return (Group(label=None, rows=window),)
    whole, members = _by_label(matching), _by_label(window)
    return [
        Group(
            label=label,
            rows=rows,
            queues=len(whole[label]),
            ready=sum(row.ready or 0 for row in whole[label]),
            attached=attached_of(whole[label]),
        )
        for label, rows in members.items()
    ]


def _by_label(rows: Sequence[Row]) -> dict[str, list[Row]]:
    members: dict[str, list[Row]] = {}
    for row in rows:
        members.setdefault(split(row.status.name)[0], []).append(row)
    return members


def _encode(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _decode(cursor: str) -> Key:
    if len(cursor) > 4_000:
        raise ValueError("too long for a cursor")
    key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    if not isinstance(key, list) or not key or not isinstance(key[-1], str):
        raise ValueError("not a cursor")
    return tuple(key)
