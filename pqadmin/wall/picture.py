"""The picture on a screen at one moment: its queues, their order and places, and the rest."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pqadmin.accounts.scope import Scope
from pqadmin.live.board.overviews import Overview, sight_of
from pqadmin.live.board.rows import Row
from pqadmin.live.monitor import Monitor
from pqadmin.wall.layout import GRIDS, Layout, lay_out
from pqadmin.wall.levels import deepest_first, worst_first
from pqadmin.wall.specs import ALWAYS, Part, Spec, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Queues together: all of a part, or those without a tile."""

    queues: int
    critical: int
    warning: int
    unknown: int
    #: Queues that exist and were not read yet.
    unread: int
    ready: int

    @property
    def worst(self) -> str:
        """The worst level among them."""
        return next((level for level in ("critical", "warning", "unknown") if getattr(self, level)), "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What a screen shows; equal to another one if all but the rows is."""

    part: Part
    turn: Turn = ALWAYS
    revision: str = ""
    counts: Counts
    #: Ids of the queues that have a tile, in their places.
    ids: tuple[int, ...]
    rest: Counts | None
    layout: Layout
    #: The rows that have a tile, in their places.
    rows: tuple[Row, ...] = field(compare=False)
    #: The oldest reading among all rows of the board.
    as_of: datetime = field(compare=False)


def choose(spec: Spec, monitor: Monitor, *, viewer: Scope, now: float) -> Picture:
    """Return a board's picture for this viewer at `now` (seconds since the epoch)."""
    turn = spec.turn(now)
    return replace(_look(spec.parts[turn.index], monitor, viewer), turn=turn, revision=spec.revision)


def cut(spec: Spec, monitor: Monitor, *, viewer: Scope) -> Spec | None:
    """Return the visible parts of a board for a user: those with visible queues."""
    if viewer.everything:
        return spec
    parts = tuple(part for part in spec.parts if _look(part, monitor, viewer).counts.queues)
    return replace(spec, parts=parts) if spec.parts[0] in parts else None


def _look(part: Part, monitor: Monitor, viewer: Scope) -> Picture:
    overview = monitor.overview(part.scope)
    # A hundred screens ask for the same every second: it is computed once for each overview.
    return overview.keep(
        ("wall", part, sight_of(viewer)),
        lambda: _picture(part, overview, monitor, viewer),
    )


def _picture(part: Part, overview: Overview, monitor: Monitor, viewer: Scope) -> Picture:
    rows: Sequence[Row] = overview.rows
    unread = overview.summary.unread
    if not viewer.everything:
        rows = [row for row in rows if viewer.sees(row.status.name)]
        in_sight = monitor.board.in_sight(part.scope) & monitor.board.in_sight(viewer)
        unread = len(in_sight - {row.status.id for row in rows})
    counts = _counted(rows, unread)
    stress = part.order == "worst" and counts.critical > 0
    room = GRIDS[part.density].capacity(stress=stress)
    all_fit = counts.queues <= room and not unread
    shown = arrange(rows, part.order, len(rows) if all_fit else min(len(rows), room - 1))
    ids = tuple(row.status.id for row in shown)
    taken = set(ids)
    rest = None if all_fit else _counted([row for row in rows if row.status.id not in taken], unread)
    return Picture(
        part=part,
        counts=counts,
        ids=ids,
        rest=rest,
        rows=tuple(shown),
        layout=lay_out(len(shown) + (rest is not None), density=part.density, stress=stress),
        as_of=overview.summary.as_of,
    )


def arrange(rows: Sequence[Row], order: str, room: int) -> list[Row]:
    """Return the rows that get a tile, in order. In every order, queues in trouble get one first."""
    shown = heapq.nsmallest(room, rows, key=worst_first)
    if order == "worst":
        return shown
    urgent = [row for row in shown if row.troubled]
    if order == "name":
        return sorted(_chosen(rows, urgent, room, lambda row: row.status.name), key=lambda row: row.status.name)
    return sorted(_chosen(rows, urgent, room, deepest_first), key=deepest_first)


def _chosen(rows: Sequence[Row], urgent: list[Row], room: int, key: Callable[[Row], Any]) -> list[Row]:
    taken = {row.status.id for row in urgent}
    others = (row for row in rows if row.status.id not in taken)
    return urgent + heapq.nsmallest(room - len(urgent), others, key=key)


def _counted(rows: Sequence[Row], unread: int) -> Counts:
    found = Counter([row.level for row in rows])
    return Counts(
        queues=len(rows) + unread,
        critical=found["critical"],
        warning=found["warning"],
        unknown=found["unknown"],
        unread=unread,
        ready=sum(row.ready or 0 for row in rows),
    )
