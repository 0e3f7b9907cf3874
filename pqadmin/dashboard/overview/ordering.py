"""Which rows the overview shows and in what order: filter, grouping, sorting, one window of rows at a time.

The next window begins after the sort key of the last row, not after a number of rows: nothing is counted or
skipped, and rows that come or go in between do not shift the rest.
"""

import base64
import json
from bisect import bisect_right
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from pqadmin.live.board.filters import Filter
from pqadmin.live.board.overviews import Overview
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Summary, groups_of, label_of
from queues.admin import to_ms

WINDOW = 100
#: Fields by which the table can be sorted, and whether the first click shows the largest first.
SORTS = {"name": False, "ready": True, "in": True, "out": True, "oldest": True}

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How rows are put in order; `sort` is empty for the grouping's own order."""

    grouping: str = "problems"
    sort: str = ""
    descending: bool = False
    #: The reader's favorites come first.
    favorites: bool = False

    @classmethod
    def parse(cls, grouping: str, sort: str, first: str = "") -> "Order":
        """Read an order from an address; what is unknown is the default."""
        field = sort.removeprefix("-")
        return cls(
            grouping=grouping if grouping in _GROUPINGS else "problems",
            sort=field if field in SORTS else "",
            descending=field in SORTS and sort.startswith("-"),
            favorites=first == "favorites" and grouping != "group",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows under one heading. `label` is None for a table without headings."""

    label: str | None
    rows: Sequence[Row]
    #: Of the whole group, as far as it passes the filter.
    sum: Summary | None = None
    #: Its rows are hidden.
    shut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One window of the overview. `matching` counts all rows that pass the filter."""

    groups: Sequence[Group]
    shown: int
    matching: int
    cursor: str | None
    #: The cursor in the address was not one of ours; the first window is shown.
    foreign_cursor: bool


def arrange(
    seen: Overview,
    *,
    order: Order,
    wanted: Filter,
    after: str,
    favorites: frozenset[int] = frozenset(),
    shut: frozenset[str] = frozenset(),
) -> Listing:
    """Return the window of rows that the address asks for; of groups that are `shut`, the headings.

    Equal requests share one sorted list.
    """
    mine = favorites if wanted.personal or order.favorites else frozenset()
    key, passes = _key(order, mine, seen), partial(wanted.passes, now=seen.at)
    keyed: Sequence[tuple[Key, Row]] = seen.keep(
        ("order", wanted.text, order, mine),
        lambda: sorted(
            ((key(row), row) for row in (filter(passes, seen.rows) if wanted else seen.rows)), key=itemgetter(0)
        ),
    )
    listed = _folded(keyed, shut) if shut and order.grouping == "group" else keyed
    first, foreign = 0, False
    if after:
        try:
            first = bisect_right(listed, _decode(after), key=itemgetter(0))
        except (ValueError, TypeError, RecursionError):  # the last: nested deeper than any cursor of ours
            foreign = True
    window = listed[first : first + WINDOW]
    more = first + WINDOW < len(listed)
    groups = _groups([row for _, row in window], keyed, order, wanted, seen, mine, shut)
    return Listing(
        groups=groups,
        shown=sum(len(group.rows) for group in groups),
        matching=len(keyed),
        cursor=_encode(window[-1][0]) if more else None,
        foreign_cursor=foreign,
    )


def _folded(keyed: Sequence[tuple[Key, Row]], shut: frozenset[str]) -> Sequence[tuple[Key, Row]]:
    """Return the rows without those of groups that are shut, but for the first of each, which keeps its place."""
    listed, headed = [], set()
    for entry in keyed:
        label = label_of(entry[1].status.name)
        if label not in headed:
            listed.append(entry)
        if label in shut:
            headed.add(label)
    return listed


def _key(order: Order, favorites: Container[int], seen: Overview) -> Callable[[Row], Key]:
    """Return what rows are sorted by: favorites, groups, trouble unless a field is chosen, the field, the name, the id.

    `static/pqadmin/js/order.js` compares by the same, as frames carry it.
    """
    grouped, ranked = order.grouping == "group", order.grouping != "name" and not order.sort
    sign, field = -1.0 if order.descending else 1.0, _FIELDS[order.sort]
    backwards = order.sort == "name" and order.descending

    def key(row: Row) -> Key:
        starred = (row.status.id not in favorites,) if order.favorites else ()
        group = _place(seen, row) if grouped else ()
        rank = (row.rank,) if ranked else ()
        value = [-ord(c) for c in row.status.name] + [1] if backwards else sign * field(row)
        return (*starred, *group, *rank, value, row.status.name, row.status.id)

    return key


def _place(seen: Overview, row: Row) -> Key:
    """Return the place of the row's group: that of its worst member, then its name."""
    label = label_of(row.status.name)
    worst = seen.groups[label].worst_row
    return (row.rank if worst is None else worst.rank, label)


_GROUPINGS = ("problems", "name", "group")
_FIELDS: dict[str, Callable[[Row], float]] = {
    "": lambda row: 0,
    "name": lambda row: 0,
    "ready": lambda row: row.ready or 0,
    "in": lambda row: -1.0 if row.rate_in is None else row.rate_in,
    "out": lambda row: -1.0 if row.rate_out is None else row.rate_out,
    "oldest": lambda row: -1.0 if row.status.oldest is None else 4e12 - to_ms(row.status.oldest),
}


def _groups(
    window: Sequence[Row],
    keyed: Sequence[tuple[Key, Row]],
    order: Order,
    wanted: Filter,
    seen: Overview,
    mine: frozenset[int],
    shut: frozenset[str],
) -> Sequence[Group]:
    if order.grouping != "group":
        return (Group(label=None, rows=window),)
    sums = (
        seen.keep(("groups", wanted.text, mine), lambda: groups_of([row for _, row in keyed], now=seen.at))
        if wanted
        else seen.groups
    )
    members: dict[str, list[Row]] = {}
    for row in window:
        members.setdefault(label_of(row.status.name), []).append(row)
    return [
        Group(label=label, rows=() if label in shut else rows, sum=sums[label], shut=label in shut)
        for label, rows in members.items()
    ]


def _encode(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _decode(cursor: str) -> Key:
    if len(cursor) > 4_000:
        raise ValueError("too long for a cursor")
    key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    if not isinstance(key, list) or [type(part) for part in key[-2:]] != [str, int]:
        raise ValueError("not a cursor")
    return tuple(key)
