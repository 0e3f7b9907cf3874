"""A tile's words and numbers, for the first HTML. The browser writes the same with static/pqadmin/js/wall_tile.js."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display import items
from pqadmin.live.board.rows import Row
from pqadmin.live.words import level_word, levels_words, trend_words, verdict_words
from pqadmin.wall.layout import Layout
from pqadmin.wall.picture import Counts

#: Above this a depth is shown by its first three digits: six digits are the most that stay large.
_EXACT_BELOW = 100_000
_UNITS = ("", "k", "M", "G", "T", "P", "E")
#: Characters from here on are as wide as two.
_FIRST_WIDE = 0x2E80
#: A name is written the smaller the longer it is, in these steps; longer ones take two lines.
_NAMES = (12, 15, 18, 22)
#: The space between a number and its unit.
_AFTER_NUMBER = re.compile(r"(?<=\d) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place of a tile: how many share its row on wide and high screens, and whether that is the first."""

    wide: int
    high: int
    top_wide: bool
    top_high: bool


def compact(n: int) -> str:
    """Write a depth in at most six digits or three and a unit. Cut, never rounded up."""
    if n < _EXACT_BELOW:
        return write.number(n)
    digits = str(n)
    power = min((len(digits) - 1) // 3, len(_UNITS) - 1)
    whole, part = digits[: -3 * power], digits[-3 * power :]
    decimals = part[: max(0, 3 - len(whole))]
    return f"{write.number(int(whole))}{'.' if decimals else ''}{decimals}{write.THIN}{_UNITS[power]}"


def flow(per_second: float | None) -> str:
    """Write a rate, of which no more is written than of a depth."""
    if per_second is None or per_second < _EXACT_BELOW:
        return write.rate(per_second)
    return compact(int(per_second))


def depth(row: Row) -> str:
    """Write how many items are ready; of an attached queue as it was counted last."""
    if row.ready is None:
        return write.ELLIPSIS
    return f"≈{write.THIN}{compact(row.ready)}" if row.status.attached and row.ready > 1 else compact(row.ready)


def why(row: Row, now: datetime) -> str:
    """Describe the verdict on a queue; where there is nothing to say, its trend. No number ends a line."""
    if row.verdict.reasons:
        words = verdict_words(_without_actor(row), now)
    else:
        words = f"{level_word(row.level)} · {trend_words(row)}"
    return _AFTER_NUMBER.sub("\u00a0", words)


def _without_actor(row: Row) -> Row:
    """Return the row without the actor of a pause, which walls do not show."""
    pause = row.status.pause
    return row if pause is None else replace(row, status=replace(row.status, pause=replace(pause, by="")))


def tile(row: Row, now: datetime, place: Place) -> dict[str, Any]:
    """Describe one queue, for eyes across a room."""
    status, totals = row.status, row.status.totals
    group, rest = write.split_name(status.name)
    return {
        "queue_id": status.id,
        "level": row.level,
        "mark": row.mark,
        "group": group,
        "rest": rest,
        "name_size": name_size(group + rest),
        "depth": depth(row),
        "why": why(row, now),
        "rate_in": flow(row.rate_in),
        "rate_out": flow(row.rate_out),
        "oldest": write.age_since(status.oldest, now),
        "delayed": totals.delayed,
        "leased": totals.leased,
        "dead": totals.dead,
        "low": "" if status.min is None else items.priority_short(status.min),
        "high": "" if status.max is None else items.priority_short(status.max),
        "place": place,
    }


def name_size(name: str) -> str:
    """Say how large a name is written."""
    length = sum(1 if ord(character) < _FIRST_WIDE else 2 for character in name)
    return next((str(most) for most in _NAMES if length <= most), "long")


#: The tile that the page's script copies.
BLANK = {"level": "ok", "mark": "empty", "name_size": name_size(""), "delayed": 0, "leased": 0, "dead": 0}


def places(layout: Layout) -> Iterator[Place]:
    """Yield the place of each tile, in order."""
    for (wide, top_wide), (high, top_high) in zip(_each(layout.wide), _each(layout.high), strict=True):
        yield Place(wide=wide, high=high, top_wide=layout.stress and top_wide, top_high=layout.stress and top_high)


def _each(rows: Sequence[int]) -> Iterator[tuple[int, bool]]:
    for index, size in enumerate(rows):
        for _tile in range(size):
            yield size, index == 0 and len(rows) > 1


def counts_words(counts: Counts) -> str:
    """Say how many queues need attention, and how many were not read yet."""
    unread = _("%(n)s not read yet") % {"n": write.number(counts.unread)} if counts.unread else ""
    levels = levels_words(asdict(counts))
    return " · ".join([part for part in (levels if counts.worst != "ok" or not unread else "", unread) if part])
