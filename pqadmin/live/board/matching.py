"""Which queues pass the filters of overviews: each filter looks at a queue once for each of its changes."""

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from pqadmin.live.board.filters import Filter, parse
from pqadmin.live.board.rows import Row
from pqadmin.live.ticks import Matches

#: Ages grow without a change: seconds between two looks of filters by age at all queues, and how many times as long as
#: these took.
AGES_EVERY, AGES_SHARE = 1.0, 20.0


class Matching:
    """The queues of one sight that pass each of the filters in use. Used under the monitor's reading lock."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._seen: Sequence[Row] = ()
        self._filters: dict[str, Filter] = {}
        self._found: dict[str, Matches] = {}
        self._ages_due = 0.0

    def look(self, rows: Sequence[Row], texts: Collection[str], at: datetime, number: int) -> Mapping[str, Matches]:
        """Return what passes each filter, for the tick of this number."""
        changed: Sequence[Row] = ()
        gone: frozenset[int] = frozenset()
        if rows is not self._seen:
            changed = [row for row in rows if self._rows.get(row.status.id) is not row]
            now = {row.status.id: row for row in rows}
            gone = frozenset(self._rows.keys() - now.keys())
            self._rows, self._seen = now, rows
        began = time.monotonic()
        ages = began >= self._ages_due
        self._filters = {text: self._filters.get(text) or parse(text) for text in texts}
        found = {}
        for text, wanted in self._filters.items():
            known = self._found.get(text)
            whole = known is None or (wanted.ages and ages)
            found[text] = _look(wanted, known, rows if whole else changed, gone, at, number)
        if ages:
            done = time.monotonic()
            self._ages_due = done + max(AGES_EVERY, AGES_SHARE * (done - began))
        self._found = found
        return found


def _look(
    wanted: Filter, known: Matches | None, rows: Sequence[Row], gone: frozenset[int], at: datetime, number: int
) -> Matches:
    """Return what passes by now, the very same as before where nothing differs."""
    if wanted.personal:
        return known or Matches(None, number)
    before = frozenset[int]() if known is None or known.ids is None else known.ids
    passing = {row.status.id for row in rows if wanted.passes(row, at)}
    ids = (before - {row.status.id for row in rows} - gone) | passing if rows or gone else before
    return known if known is not None and ids == before else Matches(ids, number)
