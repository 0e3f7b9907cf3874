"""All queues together over a range of time, as far as a person sees them: their sums, and which changed most.

For people that see every queue the store keeps the sums. For restricted people they are added up from a bounded
number of histories.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import add

from pqadmin.dashboard.history.ranges import Range
from pqadmin.dashboard.history.series import course
from queues import QueueStatus, Store
from queues.admin import ALL_QUEUES, HISTORY_FLUSH, HISTORY_STATES, HistoryPoint, as_history_point

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


def summed(store: Store, statuses: Sequence[QueueStatus], shown: Range, *, everything: bool) -> list[HistoryPoint]:
    """Return the points of the sums over queues; of `everything` as the store keeps them, else of the most used."""
    kept, step = store.history, shown.resolution.step
    recorded = kept.is_recorded()
    if everything:
        stretch = kept.of(ALL_QUEUES, shown.resolution.name, since=shown.since, until=shown.now)
        points = [*([] if stretch.before is None else [stretch.before]), *stretch.points]
        known = points and recorded and not any(start > points[-1].at for start in stretch.damaged)
        if known and shown.now - points[-1].at > step + HISTORY_FLUSH:
            points.append(replace(points[-1], at=shown.now, gap=False))
        return points
    chosen = most_used(statuses)[:MAX_SUMMED]
    found = kept.of_many([one.id for one in chosen], shown.resolution.name, since=shown.since, until=shown.now)
    return added(
        [
            course(found[one.id], as_history_point(one, shown.now), shown.resolution, recorded=recorded)
            for one in chosen
        ],
        step,
    )


def added(courses: Iterable[Sequence[HistoryPoint]], step: int) -> list[HistoryPoint]:
    """Add up the points of queues; where one of them is unknown, the sum has a gap."""
    events: list[tuple[int, int, HistoryPoint | None]] = []
    for number, points in enumerate(courses):
        for n, point in enumerate(points):
            if point.gap and n:
                events.append((min(points[n - 1].at + step, point.at - 1), number, None))
            events.append((point.at, number, point))
    events.sort(key=lambda event: event[:2])
    last: dict[int, HistoryPoint | None] = {}
    known: dict[int, tuple[int, ...]] = {}
    sums = [0] * len(HISTORY_STATES)
    found: list[HistoryPoint] = []
    gap = False
    for n, (at, number, now) in enumerate(events):
        last[number] = now
        if now is not None:
            before = known.get(number, (0, 0, 0, 0, now.arrived, now.left))
            known[number] = now.counts
            grown = [after - was for after, was in zip(now.counts, before, strict=True)]
            sums = [*map(add, sums, [*grown[:4], *(max(0, more) for more in grown[4:])])]
        if n + 1 < len(events) and events[n + 1][0] == at:
            continue
        if None in last.values():
            gap = True
            continue
        found.append(HistoryPoint(at=at, **dict(zip(HISTORY_STATES, sums, strict=True)), gap=gap))  # type: ignore[arg-type]
        gap = False
    return found


def movers(store: Store, statuses: Sequence[QueueStatus], shown: Range) -> list[Mover]:
    """Return the queues whose ready items changed most in a range, the greatest change first.

    No queue changed by more items than ever came or went, so the most used ones are looked up first.
    """
    kept, kind = store.history, shown.resolution.name
    was_recorded = bool(kept.at([ALL_QUEUES], kind, shown.since))
    found: list[Mover] = []
    compared = most_used(statuses)[:MAX_COMPARED]
    for first in range(0, len(compared), _CHUNK):
        chunk = compared[first : first + _CHUNK]
        if len(found) >= SHOWN and abs(found[SHOWN - 1].change) >= _use(chunk[0]):
            break
        ids = [one.id for one in chunk]
        before = kept.at(ids, kind, shown.since)
        after = {} if shown.live else kept.at(ids, kind, shown.until)
        for one in chunk:
            # A queue without a history then was empty, if there was a process to record it.
            start = before.get(one.id) or (_EMPTY if was_recorded else None)
            end = as_history_point(one, shown.now) if shown.live else after.get(one.id)
            if start is not None and end is not None and end.counts != start.counts:
                found.append(_mover(one.name, start, end))
        found.sort(key=lambda mover: (-abs(mover.change), mover.name))
    return [mover for mover in found[:SHOWN] if mover.change]


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
