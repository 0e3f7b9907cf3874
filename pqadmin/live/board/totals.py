"""The sums of every scope in use, as JSON texts."""

from collections.abc import Iterable, Mapping

from pqadmin.accounts.scope import Scope
from pqadmin.live import frame_json
from pqadmin.live.board.board import Board
from pqadmin.live.board.overviews import Overview
from pqadmin.live.subscription import Shown
from pqadmin.live.ticks import Dated, Sum
from pqadmin.store import store_now


class Totals:
    """The sums of the scopes in use. Used under the monitor's reading lock."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._wanted: Mapping[Scope, frozenset[str]] = {}
        #: By scope, with the overview that a sum was made of.
        self._made: dict[Scope, tuple[Overview, Sum]] = {}
        #: The oldest reading in each sum as of now, milliseconds since the epoch; it grows though the sum stays.
        self.as_of: Mapping[Scope, int] = {}

    @property
    def sums(self) -> Mapping[Scope, Sum]:
        """The sums as last worked out."""
        return {sight: made for sight, (_, made) in self._made.items()}

    def want(self, screens: Iterable[Shown]) -> bool:
        """Note what is looked at; return whether a sum is missing."""
        wanted: dict[Scope, frozenset[str]] = {}
        for screen in screens:
            wanted[screen.sight] = wanted.get(screen.sight, frozenset()) | screen.labels
        self._wanted = wanted
        return any(not self._has(sight, labels) for sight, labels in wanted.items())

    def work_out(self, now: float, number: int) -> bool:
        """Bring the sums up to date for the tick of this number. Return whether a text differs or is new."""
        before, at = self._made, store_now()
        overviews = {sight: self._board.overview(now, at, sight) for sight in self._wanted}
        self._made = {sight: (overview, self._sum(sight, overview, number)) for sight, overview in overviews.items()}
        self.as_of = {sight: int(seen.summary.as_of.timestamp() * 1000) for sight, seen in overviews.items()}
        return any(sight not in before or made is not before[sight][1] for sight, (_, made) in self._made.items())

    def _has(self, sight: Scope, labels: frozenset[str]) -> bool:
        return sight in self._made and labels <= self._made[sight][1].groups.keys()

    def _sum(self, sight: Scope, overview: Overview, number: int) -> Sum:
        labels = self._wanted[sight]
        last, known = self._made.get(sight, (None, None))
        if known is not None and last is overview and self._has(sight, labels):
            return known
        texts = {label: frame_json.group(label, overview.groups.get(label) or overview.nothing) for label in labels}
        groups = {
            label: _dated(None if known is None else known.groups.get(label), text, number)
            for label, text in texts.items()
        }
        total = _dated(None if known is None else known.total, frame_json.total(overview.summary), number)
        if known is not None and (total, groups) == (known.total, known.groups):
            return known
        level, queues = overview.summary.worst
        standing = frame_json.Standing(ready=overview.summary.ready, level=level, queues=queues)
        return Sum(total=total, groups=groups, standing=standing)


def _dated(known: Dated | None, text: str, number: int) -> Dated:
    return known if known is not None and known.text == text else Dated(text, number)
