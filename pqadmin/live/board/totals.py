"""The sums of every scope in use, as JSON texts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pqadmin.accounts.scope import Scope
from pqadmin.live import wire
from pqadmin.live.board.board import Board
from pqadmin.live.board.overviews import Overview
from pqadmin.live.frames import Dated, Sum
from pqadmin.live.hub import Shown
from pqadmin.store import store_now

#: With more queues than this the sums are worked out once a second, not with every frame.
QUICK_TOTAL = 1_000


class Totals:
    """The sums of the scopes in use. Used under the monitor's reading lock."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._wanted: Mapping[Scope, frozenset[str]] = {}
        self._made: dict[Scope, Overview] = {}
        self.sums: Mapping[Scope, Sum] = {}
        #: The oldest reading in each sum as of now, milliseconds since the epoch; it grows though the sum stays.
        self.as_of: Mapping[Scope, int] = {}

    def want(self, screens: Iterable[Shown]) -> bool:
        """Note what is looked at; return whether a sum is missing."""
        wanted: dict[Scope, frozenset[str]] = {}
        for screen in screens:
            known = wanted.get(screen.sight)
            wanted[screen.sight] = screen.labels if not known else known | screen.labels
        self._wanted = wanted
        return any(
            sight not in self.sums or not labels <= self.sums[sight].groups.keys() for sight, labels in wanted.items()
        )

    def work_out(self, now: float, number: int, *, derive: bool) -> bool:
        """Bring the sums up to date for the tick of this number; return whether a text differs or is new."""
        slow = len(self._board.ids) > QUICK_TOTAL and not derive
        sums: dict[Scope, Sum] = {}
        as_of: dict[Scope, int] = {}
        fresh = False
        for sight, labels in self._wanted.items():
            known = self.sums.get(sight)
            if slow and known is not None and labels <= known.groups.keys():
                sums[sight], as_of[sight] = known, self.as_of[sight]
                continue
            overview = self._board.overview(now, store_now(), sight)
            as_of[sight] = int(overview.summary.as_of.timestamp() * 1000)
            sums[sight] = self._sum(sight, overview, labels, number, as_of[sight])
            fresh = fresh or known is None or known is not sums[sight]
        self.sums, self.as_of = sums, as_of
        for unused in self._made.keys() - sums.keys():
            del self._made[unused]
        return fresh

    def _sum(self, sight: Scope, overview: Overview, labels: frozenset[str], number: int, as_of: int) -> Sum:
        known, before = self.sums.get(sight), self._made.get(sight)
        if known is not None and before is overview and labels <= known.groups.keys():
            return known
        summary = overview.summary
        was = None if before is None else before.summary
        same = known is not None and was is not None and replace(summary, as_of=was.as_of) == was
        total = known.total if known is not None and same else Dated(wire.total(summary), number)
        groups: dict[str, Dated] = {}
        for label in labels:
            text = wire.group(label, overview.groups.get(label) or overview.nothing)
            old = known.groups.get(label) if known is not None else None
            groups[label] = old if old is not None and old.text == text else Dated(text, number)
        self._made[sight] = overview
        if known is not None and same and all(known.groups.get(label) is dated for label, dated in groups.items()):
            return known
        return Sum(total=total, groups=groups, ready=summary.ready, as_of=as_of)
