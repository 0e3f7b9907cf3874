"""The rows, sums and groups that one scope sees, updated by what changed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pqadmin.live.board.overviews import Overview, Pair
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Adder, Summary, label_of


class Roll:
    """One scope's rows in the order of their names. Used under the board's lock."""

    def __init__(self, seen: Sequence[int], names: Mapping[int, str], rows: Mapping[int, Row]) -> None:
        self._seen = seen
        self._names = names
        self._place = {queue_id: place for place, queue_id in enumerate(seen)}
        self._rows: list[Row | None] = [self._named(queue_id, rows) for queue_id in seen]
        self._sum = Adder(row for row in self._rows if row is not None)
        self._groups: dict[str, Adder] | None = None
        self._group_sums: Mapping[str, Summary] | None = None
        self._last: Overview | None = None

    def overview(
        self, changed: Iterable[int], rows: Mapping[int, Row], *, version: int, at: datetime, as_of: datetime
    ) -> Overview:
        """Return the overview after the rows of these queues may have changed."""
        pairs = self._take_in(changed, rows)
        last, unread = self._last, len(self._sum) < len(self._seen)
        if last is not None and not pairs:
            shown = last.rows
        else:
            shown = tuple([row for row in self._rows if row is not None]) if unread else tuple(self._rows)  # type: ignore[arg-type] # none is None
        self._sum_groups(pairs, at)
        made = Overview(
            snapshot_version=version,
            at=at,
            rows=shown,
            summary=self._sum.summary(queues=len(self._seen), as_of=as_of),
            group_sums=self._group_sums,
        )
        if last is not None:
            made.follow(last, pairs)
        self._last = made
        return made

    def _take_in(self, changed: Iterable[int], rows: Mapping[int, Row]) -> list[Pair]:
        pairs: list[Pair] = []
        for queue_id in changed:
            place = self._place.get(queue_id)
            if place is None:
                continue
            old, new = self._rows[place], self._named(queue_id, rows)
            if old is new:
                continue
            if old is not None:
                self._sum.take_out(old)
            if new is not None:
                self._sum.add(new)
            self._rows[place] = new
            pairs.append((old, new))
        return pairs

    def _named(self, queue_id: int, rows: Mapping[int, Row]) -> Row | None:
        """Return a queue's row; None while it was read under another name, which may be invisible."""
        row = rows.get(queue_id)
        return row if row is not None and row.status.name == self._names[queue_id] else None

    def _sum_groups(self, pairs: Sequence[Pair], at: datetime) -> None:
        """Keep the groups' sums up to date as long as they are used."""
        if self._last is None or not self._last.groups_asked:
            self._groups = self._group_sums = None
            return
        if self._groups is None:
            self._groups = {}
            for row in self._rows:
                if row is not None:
                    self._groups.setdefault(label_of(row.status.name), Adder()).add(row)
            self._group_sums = {label: _summary(adder, at) for label, adder in self._groups.items()}
            return
        labels = set()
        for old, new in pairs:
            if old is not None:
                label = label_of(old.status.name)
                self._groups[label].take_out(old)
                labels.add(label)
            if new is not None:
                label = label_of(new.status.name)
                self._groups.setdefault(label, Adder()).add(new)
                labels.add(label)
        if labels:
            sums = dict(self._group_sums or {})
            for label in labels:
                if len(self._groups[label]):
                    sums[label] = _summary(self._groups[label], at)
                else:
                    del self._groups[label]
                    sums.pop(label, None)
            self._group_sums = sums


def _summary(adder: Adder, at: datetime) -> Summary:
    return adder.summary(queues=len(adder), as_of=at)
