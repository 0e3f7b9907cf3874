"""The sums of every scope in use, as JSON texts."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from pqadmin.accounts.scope import Scope
from pqadmin.live import frame_json
from pqadmin.live.board.board import Board
from pqadmin.live.board.matching import Matching
from pqadmin.live.board.overviews import Overview
from pqadmin.live.subscription import Shown
from pqadmin.live.ticks import Dated, Matches, Sum
from pqadmin.store import store_now

#: Filters that are followed at once. Pages with a further one ask for what matches.
MAX_FILTERS = 64


class Totals:
    """The sums of the scopes in use. Used under the monitor's reading lock."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._wanted: Mapping[Scope, frozenset[str]] = {}
        self._filters: Mapping[Scope, Collection[str]] = {}
        self._matching: dict[Scope, Matching] = {}
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
        filters: dict[Scope, set[str]] = {}
        for screen in screens:
            wanted[screen.sight] = wanted.get(screen.sight, frozenset()) | screen.labels
            if screen.wanted:
                filters.setdefault(screen.sight, set()).add(screen.wanted)
        self._wanted, self._filters = wanted, filters
        return any(not self._has(sight, labels) for sight, labels in wanted.items())

    def work_out(self, now: float, number: int) -> bool:
        """Bring the sums up to date for the tick of this number. Return whether a text differs or is new."""
        before, at = self._made, store_now()
        overviews = {sight: self._board.overview(now, at, sight) for sight in self._wanted}
        matches = self._match(overviews, at, number)
        self._made = {
            sight: (overview, self._sum(sight, overview, matches.get(sight, {}), number))
            for sight, overview in overviews.items()
        }
        self.as_of = {sight: int(seen.summary.as_of.timestamp() * 1000) for sight, seen in overviews.items()}
        return any(sight not in before or made is not before[sight][1] for sight, (_, made) in self._made.items())

    def _has(self, sight: Scope, labels: frozenset[str]) -> bool:
        if sight not in self._made:
            return False
        made = self._made[sight][1]
        return labels <= made.groups.keys() and made.matches.keys() >= set(self._filters.get(sight, ()))

    def _match(self, overviews: Mapping[Scope, Overview], at: datetime, number: int) -> dict[Scope, dict[str, Matches]]:
        """Return what passes the filters, by scope; of the filters that are too many, that they are not followed."""
        self._matching = {sight: self._matching.get(sight) or Matching() for sight in self._filters}
        room, found = MAX_FILTERS, {}
        for sight, texts in self._filters.items():
            before = self._made[sight][1].matches if sight in self._made else {}
            ordered = sorted(texts, key=lambda text: (text not in before, text))
            followed, rest = ordered[:room], ordered[room:]
            room -= len(followed)
            found[sight] = {
                **self._matching[sight].look(overviews[sight].rows, followed, at, number),
                **{text: _unfollowed(before.get(text), number) for text in rest},
            }
        return found

    def _sum(self, sight: Scope, overview: Overview, matches: Mapping[str, Matches], number: int) -> Sum:
        labels = self._wanted[sight]
        last, known = self._made.get(sight, (None, None))
        if known is not None and last is overview and known.matches == matches and self._has(sight, labels):
            return known
        texts = {label: frame_json.group(label, overview.groups.get(label) or overview.nothing) for label in labels}
        groups = {
            label: _dated(None if known is None else known.groups.get(label), text, number)
            for label, text in texts.items()
        }
        total = _dated(None if known is None else known.total, frame_json.total(overview.summary), number)
        if known is not None and (total, groups, matches) == (known.total, known.groups, known.matches):
            return known
        level, queues = overview.summary.worst
        standing = frame_json.Standing(ready=overview.summary.ready, level=level, queues=queues)
        return Sum(total=total, groups=groups, standing=standing, matches=matches)


def _unfollowed(known: Matches | None, number: int) -> Matches:
    return known if known is not None and known.ids is None else Matches(None, number)


def _dated(known: Dated | None, text: str, number: int) -> Dated:
    return known if known is not None and known.text == text else Dated(text, number)
