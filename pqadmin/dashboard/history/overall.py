"""All queues together over a range of time, as far as a person sees them: their sums, and which changed most.

For people that see every queue the store keeps the sums. For restricted people they are added up from a bounded
number of histories.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import add, itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from pqadmin.dashboard.history.ranges import Range
from pqadmin.dashboard.history.series import course
from queues import QueueStatus, ReadTransaction, Store
from queues.admin import (
    ALL_QUEUES,
    HISTORY_FLUSH,
    HISTORY_STATES,
    HOURS,
    MINUTES,
    SECONDS,
    HistoryPoint,
    HistoryStretch,
    as_history_point,
)
from queues.errors import QueueNotFound

#: Queues that are added up, and queues of which the change is looked up, at most; of these how many are shown.
MAX_SUMMED, MAX_COMPARED, SHOWN = 100, 300, 8
_CHUNK = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """How one queue changed in a range."""

    name: str
    before: int
    after: int
    #: Items that came and went; None where a purge began to count anew.
    came: int | None
    went: int | None

    @property
    def change(self) -> int:
        """By how many ready items it changed."""
        return self.after - self.before


def summed(
    store: Store, statuses: Sequence[QueueStatus], shown: Range, *, everything: bool, unread: int = 0
) -> list[HistoryPoint]:
    """Return the points of the sums over queues; of `everything` as the store keeps them, else of the most used.

    What came and went in the last seconds is not yet in the sums that the store keeps, so their last point tells
    depths only.
    """
    kept, recorded = store.history, store.history.is_recorded()
    readable = most_used(statuses)
    if not everything:
        return _of_some(store, readable[:MAX_SUMMED], shown, recorded=recorded)
    stretch = kept.of(ALL_QUEUES, shown.resolution.name, since=shown.since, until=shown.now)
    points = [*([] if stretch.before is None else [stretch.before]), *stretch.points]
    unreadable = any(one.unreadable for one in statuses)
    if points and recorded and not unreadable and not any(start > points[-1].at for start in stretch.damaged):
        newest = now = kept.at([ALL_QUEUES], SECONDS.name, shown.now).get(ALL_QUEUES, points[-1])
        lost = False
        if not unread:
            depths = {state: sum(getattr(one.totals, state) for one in readable) for state in HISTORY_STATES[:4]}
            # A process that was elected just now has not yet written what it missed.
            late = shown.now - newest.at > shown.resolution.step + HISTORY_FLUSH
            lost = late and any(getattr(newest, state) != depth for state, depth in depths.items())
            now = replace(newest, **depths)
        points = [point for point in points if point.at < shown.now]
        if newest.at < shown.now and (not points or newest.at > points[-1].at):
            points.append(newest)
        # What had changed by then is written by now.
        quiet_until = shown.now - int(HISTORY_FLUSH) - 2
        if not lost and points and quiet_until > points[-1].at:
            points.append(replace(newest, at=quiet_until, gap=False))
        points.append(replace(now, at=shown.now, gap=lost or (newest.at >= shown.now and newest.gap)))
    return points


def _of_some(store: Store, chosen: Sequence[QueueStatus], shown: Range, *, recorded: bool) -> list[HistoryPoint]:
    """Return the points of the sums over some queues; what cannot change any more is added up once."""
    resolution, ids = shown.resolution, [one.id for one in chosen]
    stored = _stored.setdefault(store, {})
    key = resolution.name, frozenset(ids)
    before = stored.pop(key, None)
    if before is None or not before.since <= shown.since <= before.until <= shown.now < before.made + _ANEW:
        before = _Stored(since=shown.since, until=-1, made=shown.now)
    begin = max(shown.since, before.until + 1)
    found = store.history.of_many(ids, resolution.name, since=begin, until=shown.now)
    if before.until < 0:
        found |= _earlier(store, found, shown)
    courses = {
        one.id: course(found[one.id], as_history_point(one, shown.now), resolution, recorded=recorded) for one in chosen
    }
    events = _events(courses, resolution.step, after=before.until)
    until = max(before.until, shown.now - resolution.step - 3 * int(HISTORY_FLUSH))
    split = bisect_right(events, until, key=itemgetter(0))
    adder = before.adder.copy()
    points = [*before.points, *adder.add(events[:split])]
    while len(stored) >= _MOST:
        stored.pop(next(iter(stored)), None)
    stored[key] = replace(before, until=until, points=points, adder=adder.copy())
    return [*points, *adder.add(events[split:])]


def _earlier(store: Store, found: Mapping[int, HistoryStretch], shown: Range) -> dict[int, HistoryStretch]:
    """Return the stretches of queues that rested since before what is kept of them, begun by their coarser points."""
    resting = [queue_id for queue_id, stretch in found.items() if stretch.before is None and not stretch.damaged]
    return {
        queue_id: replace(found[queue_id], before=point)
        for queue_id, point in _coarser_at(store, resting, shown, shown.since).items()
    }


def _coarser_at(store: Store, ids: Sequence[int], shown: Range, moment: int) -> dict[int, HistoryPoint]:
    """Return how queues were at a moment, by points that are coarser and kept for longer than those of the range."""
    found: dict[int, HistoryPoint] = {}
    for coarser in (MINUTES, HOURS):
        if coarser.step > shown.resolution.step:
            found |= store.history.at([each for each in ids if each not in found], coarser.name, moment)
    return found


def _at(store: Store, ids: Sequence[int], shown: Range, moment: int) -> dict[int, HistoryPoint]:
    """Return how queues were at a moment; of those that rested since before what is kept, by a coarser point."""
    found = store.history.at(ids, shown.resolution.name, moment)
    return found | _coarser_at(store, [each for each in ids if each not in found], shown, moment)


def added(courses: Iterable[Sequence[HistoryPoint]], step: int) -> list[HistoryPoint]:
    """Add up the points of queues; where one of them is unknown, the sum has a gap."""
    return _Adder().add(_events(dict(enumerate(courses)), step))


#: A queue at a moment, or None from a moment on at which it is unknown.
_Event = tuple[int, int, HistoryPoint | None]


def _events(courses: Mapping[int, Sequence[HistoryPoint]], step: int, *, after: int = -1) -> list[_Event]:
    """Return what happened to queues after a moment, in the order of time."""
    events: list[_Event] = []
    for number, points in courses.items():
        for n, point in enumerate(points):
            if point.at <= after:
                continue
            if point.gap and n:
                events.append((max(after + 1, min(points[n - 1].at + step, point.at - 1)), number, None))
            events.append((point.at, number, point))
    events.sort(key=itemgetter(0, 1))
    return events


class _Adder:
    """Sums over queues, brought up to date event by event."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, ...]] = {}
        self._unknown: set[int] = set()
        self._sums = [0] * len(HISTORY_STATES)
        self._gap = False

    def copy(self) -> "_Adder":
        """Return one that goes on from here by itself."""
        other = _Adder()
        other._known, other._unknown = dict(self._known), set(self._unknown)
        other._sums, other._gap = list(self._sums), self._gap
        return other

    def add(self, events: Sequence[_Event]) -> list[HistoryPoint]:
        """Take in what happened next, and return the points of the sums."""
        found: list[HistoryPoint] = []
        for n, (at, number, now) in enumerate(events):
            if now is None:
                self._unknown.add(number)
            else:
                self._unknown.discard(number)
                before = self._known.get(number, (0, 0, 0, 0, now.arrived, now.left))
                self._known[number] = now.counts
                grown = [after - was for after, was in zip(now.counts, before, strict=True)]
                self._sums = [*map(add, self._sums, [*grown[:4], *(max(0, more) for more in grown[4:])])]
            if n + 1 < len(events) and events[n + 1][0] == at:
                continue
            if self._unknown:
                self._gap = True
                continue
            sums: dict[str, Any] = dict(zip(HISTORY_STATES, self._sums, strict=True))
            found.append(HistoryPoint(at=at, **sums, gap=self._gap))
            self._gap = False
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Sums of some queues that were added up before, from one moment until another."""

    since: int
    until: int
    #: When they were added up from their beginning.
    made: int
    points: Sequence[HistoryPoint] = ()
    adder: _Adder = field(default_factory=_Adder)


#: By store: sums by resolution and queues; how many are kept, and after how many seconds they are made anew.
_stored: WeakKeyDictionary[Store, dict[tuple[str, frozenset[int]], _Stored]] = WeakKeyDictionary()
_MOST, _ANEW = 20, 3_600


def movers(store: Store, statuses: Sequence[QueueStatus], shown: Range) -> list[Mover]:
    """Return the queues with the most change of ready items in a range, the greatest first.

    No queue changed by more items than ever came or went, so the most used ones are looked up first.
    """
    kept, kind, since = store.history, shown.resolution.name, shown.since
    if not kept.at([ALL_QUEUES], kind, since):  # the store is younger than the range: from its first moment on
        first_points = kept.of(ALL_QUEUES, kind, since=since, until=shown.until).points[:1]
        if not first_points:
            return []
        since = first_points[0].at
    found: list[Mover] = []
    compared = most_used(statuses)[:MAX_COMPARED]
    for first in range(0, len(compared), _CHUNK):
        chunk = compared[first : first + _CHUNK]
        if len(found) >= SHOWN and abs(found[SHOWN - 1].change) >= _use(chunk[0]):
            break
        ids = [one.id for one in chunk]
        before = _at(store, ids, shown, since)
        made = _made_since(store, chunk, shown.since) if since > shown.since else frozenset()
        after = {} if shown.live else _at(store, ids, shown, shown.until)
        for one in chunk:
            # A queue without a history then was empty: a process recorded. One that was made in the range was, too.
            start = _EMPTY if one.id in made else before.get(one.id, _EMPTY)
            end = as_history_point(one, shown.now) if shown.live else after.get(one.id)
            if end is not None and end.counts != start.counts:
                found.append(_mover(one.name, start, end))
        found.sort(key=lambda mover: (-abs(mover.change), mover.name))
    return [mover for mover in found[:SHOWN] if mover.change]


def _made_since(store: Store, statuses: Sequence[QueueStatus], since: int) -> frozenset[int]:
    """Return the ids of the queues that were created at a moment or later."""

    def look(tr: ReadTransaction) -> frozenset[int]:
        made = set()
        for one in statuses:
            with suppress(QueueNotFound):  # deleted or renamed meanwhile
                if store.queue(one.name, tr=tr).config.created_ms >= since * 1_000:
                    made.add(one.id)
        return frozenset(made)

    return store.read(look)


def most_used(statuses: Iterable[QueueStatus]) -> list[QueueStatus]:
    """Return the queues that have histories, those first through which most items went."""
    return sorted((one for one in statuses if not one.attached and not one.unreadable), key=_use, reverse=True)


_EMPTY = HistoryPoint(at=0, ready=0, delayed=0, leased=0, dead=0, arrived=0, left=0)


def _use(status: QueueStatus) -> int:
    return max(status.arrived, status.left)


def _mover(name: str, start: HistoryPoint, end: HistoryPoint) -> Mover:
    came, went = end.arrived - start.arrived, end.left - start.left
    return Mover(
        name=name,
        before=start.ready,
        after=end.ready,
        came=None if came < 0 else came,
        went=None if went < 0 else went,
    )
