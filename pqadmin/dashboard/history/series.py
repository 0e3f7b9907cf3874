"""Series of a history: columns over the same moments, with gaps where nothing is known. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pqadmin.dashboard.history.ranges import Range
from queues.admin import HISTORY_FLUSH, HISTORY_STATES, HistoryPoint, HistoryResolution, HistoryStretch

#: Columns of a heat map, at most.
MAX_COLUMNS = 96
_DEPTHS = HISTORY_STATES[:4]
#: Items a second: in and out; None where that is unknown.
Rates = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class _Moment:
    """One moment of the columns; without a point nothing is known of it."""

    at: int
    point: HistoryPoint | None
    #: Items a second since the change before: in and out.
    rates: Rates = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Columns of one queue; each has one number, or None where nothing is known, for each of `times`."""

    #: Seconds since the epoch: where the range begins, moments at which something changed, where it ends; and, where
    #: items wait for longer, the last moments before a change, as until then ages grew.
    times: Sequence[int]
    #: Ready, delayed, leased, dead.
    depth: Sequence[Sequence[int | None]]
    #: In and out: items a second since the moment before.
    rates: Sequence[Sequence[float | None]]
    #: Seconds.
    oldest: Sequence[float | None]
    waits: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """The priority mix in columns of equal width: the ready items of each band at the end of a column."""

    #: When the columns begin, and when the last one ends.
    times: Sequence[int]
    #: By band: one number a column, or None where nothing is known.
    bands: Sequence[Sequence[int | None]]


def course(
    stretch: HistoryStretch, last: HistoryPoint, resolution: HistoryResolution, *, recorded: bool
) -> list[HistoryPoint]:
    """Return all points up to now, `last` being how the queue is; `recorded` says that a process records."""
    points = [*([] if stretch.before is None else [stretch.before]), *stretch.points]
    while points and points[-1].at >= last.at:
        points.pop()
    if points:
        newest = points[-1]
        same = newest.counts == last.counts
        lost = any(start > newest.at for start in stretch.damaged)
        late = not same and last.at - newest.at > resolution.step + HISTORY_FLUSH
        last = replace(last, gap=lost or (late and not recorded), waits_ms=newest.waits_ms if same else None)
        # What had changed by then is written by now.
        quiet_until = last.at - max(resolution.step, int(HISTORY_FLUSH) + 2)
        if late and not last.gap and quiet_until > newest.at:
            points.append(replace(newest, at=quiet_until, gap=False))
    return [*points, last]


def series(points: Sequence[HistoryPoint], shown: Range, step: int, *, latest: Rates | None = None) -> Series:
    """Return the columns of a range; points may go beyond it at both ends.

    `latest` are the rates up to now, where the points do not tell them.
    """
    moments: dict[int, _Moment] = {}
    for moment in _moments(points, shown, step, latest):
        if shown.since <= moment.at <= shown.until:
            moments[moment.at] = moment
    seen = [moments[at] for at in sorted(moments)]
    known = [moment.point for moment in seen]
    return Series(
        times=[moment.at for moment in seen],
        depth=[[None if point is None else getattr(point, state) for point in known] for state in _DEPTHS],
        rates=[[moment.rates[way] for moment in seen] for way in range(2)],
        oldest=[
            None if point is None or point.oldest_at is None else max(0, moment.at - point.oldest_at)
            for moment, point in zip(seen, known, strict=True)
        ],
        waits=[
            [None if point is None or point.waits_ms is None else point.waits_ms[n] / 1000 for point in known]
            for n in range(3)
        ],
    )


def _moments(points: Sequence[HistoryPoint], shown: Range, step: int, latest: Rates | None) -> Iterator[_Moment]:
    for point in points[:1]:
        yield _Moment(point.at, point)
    for before, point in pairwise(points):
        told = latest if point.at == shown.now else None
        if point.gap:
            yield _Moment(min(before.at + step, point.at - 1), None)
            yield _Moment(point.at, point, told or (None, None))
            continue
        rates = told or _rates(before, point)
        for edge in (shown.since, shown.until):
            if before.at < edge < point.at:
                yield _Moment(edge, before, rates)
        if before.oldest_at is not None and point.at - before.at > step:
            yield _Moment(point.at - step, before, rates)
        yield _Moment(point.at, point, rates)


def _rates(before: HistoryPoint, point: HistoryPoint) -> Rates:
    """Return the rates between two points; None over a purge, which begins to count anew."""
    seconds = max(1, point.at - before.at)
    came, went = point.arrived - before.arrived, point.left - before.left
    return (None if came < 0 else came / seconds, None if went < 0 else went / seconds)


def heat(points: Sequence[HistoryPoint], shown: Range, step: int, bands: int) -> Heat:
    """Return the mix of a range in columns; what is not known of a moment is as it was last known."""
    width = -(-max(shown.seconds, 1) // (MAX_COLUMNS * step)) * step
    first = shown.since - shown.since % width
    times = [*range(first, shown.until, width), shown.until]
    columns: list[Sequence[int | None]] = []
    ahead = iter(points)
    point, mix = next(ahead, None), None
    for end in times[1:]:
        while point is not None and point.at <= end:
            mix = _mix(point, mix, bands)
            point = next(ahead, None)
        columns.append([None] * bands if mix is None or (point is not None and point.gap) else mix)
    return Heat(times=times, bands=[[column[band] for column in columns] for band in range(bands)])


def _mix(point: HistoryPoint, before: Sequence[int] | None, bands: int) -> Sequence[int] | None:
    if not point.ready:
        return [0] * bands
    if point.mix:
        return (*point.mix, *[0] * bands)[:bands]
    return None if point.gap else before
