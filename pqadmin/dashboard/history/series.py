"""A queue's history as charts and tables show it: columns over the same moments, the newest one unfinished."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils.translation import gettext_lazy as _

from pqadmin.accounts.scope import Scope
from pqadmin.pages import visibility
from queues import AuditEntry, QueueStatus, Store
from queues.admin import (
    EPOCH,
    HOURS,
    MINUTES,
    SECONDS,
    HistoryPoint,
    HistoryResolution,
    HistoryStretch,
    as_history_point,
    history_mix,
)

#: Actions that are marked on the charts, at most.
MAX_MARKS = 100
#: Actions on single items would hide these.
_UNMARKED = frozenset(
    {"push", "enqueue", "pop_min", "pop_max", "dequeue", "put_back", "reveal", "lease", "ack", "edit"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a person can ask to see: how far back, in which resolution."""

    name: str
    label: object
    seconds: int
    resolution: HistoryResolution


SPANS = {
    span.name: span
    for span in (
        Span(name="10m", label=_("10 minutes"), seconds=600, resolution=SECONDS),
        Span(name="6h", label=_("6 hours"), seconds=6 * 3600, resolution=MINUTES),
        Span(name="48h", label=_("48 hours"), seconds=48 * 3600, resolution=MINUTES),
        Span(name="90d", label=_("90 days"), seconds=90 * 86_400, resolution=HOURS),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Charted:
    """Columns of one queue; each has one number, or None where nothing is known, for each of `times`."""

    span: Span
    #: Seconds since the epoch: where the window begins, moments at which something changed, now; and, where items
    #: wait for longer, the last moments before a change, as until then ages grew.
    times: Sequence[float]
    #: Ready, delayed, leased, dead.
    depth: Sequence[Sequence[int | None]]
    #: In and out: items a second since the moment before.
    rates: Sequence[Sequence[float | None]]
    #: Seconds.
    oldest: Sequence[float | None]
    waits: Sequence[Sequence[float | None]]
    #: One column a band: percent of the ready items.
    mix: Sequence[Sequence[float | None]]
    #: From here to the end the resolution's step is not over.
    unfinished: float
    #: Nothing is known but how the queue is now.
    empty: bool


def charted(store: Store, status: QueueStatus, span: Span, now: datetime) -> Charted:
    """Read the history of a queue over a span, up to its status now."""
    until = (now - EPOCH) / timedelta(seconds=1)
    since = until - span.seconds
    stretch = store.history.of(status.id, span.resolution.name, since=int(since), until=int(until))
    changes = _within(stretch, int(since), int(until), status)
    points = with_ages(changes, span.resolution.step)
    return Charted(
        span=span,
        times=[point.at for point in points],
        depth=[[getattr(point, state) for point in points] for state in ("ready", "delayed", "leased", "dead")],
        rates=[
            _at(points, changes, _rates([(change.at, getattr(change, total)) for change in changes]))
            for total in ("arrived", "left")
        ],
        oldest=[None if point.oldest_at is None else max(0, point.at - point.oldest_at) for point in points],
        waits=[[None if point.waits_ms is None else point.waits_ms[n] / 1000 for point in points] for n in range(3)],
        mix=_mix(points, len(status.bands)),
        empty=not stretch.points and stretch.before is None,
        unfinished=until // span.resolution.step * span.resolution.step,
    )


def marks(store: Store, status: QueueStatus, span: Span, now: datetime, may: Scope) -> list[AuditEntry]:
    """Return what people did to the queue as a whole in a span, as far as `may` sees it, the newest first."""
    found: list[AuditEntry] = []
    after, since = None, now - timedelta(seconds=span.seconds)
    for _round in range(10):
        page = store.audit.entries(queue=status.name, since=since, limit=MAX_MARKS, after=after)
        found += [
            entry
            for entry in visibility.seen_entries(may, page.entries)
            if entry.verb not in _UNMARKED or entry.count > 1
        ]
        after = page.cursor
        if after is None or len(found) >= MAX_MARKS:
            break
    return found[:MAX_MARKS]


def _within(stretch: HistoryStretch, since: int, until: int, status: QueueStatus) -> list[HistoryPoint]:
    """Return the points of a window from its beginning to now: between two of them nothing changed."""
    points = list(stretch.points)
    if stretch.before is not None and (not points or points[0].at > since):
        points.insert(0, replace(stretch.before, at=since, waits_ms=None))
    last = as_history_point(status, until)
    if points and points[-1].at >= until:
        points.pop()
    waits = points[-1].waits_ms if points and points[-1].counts == last.counts else None
    return [*points, replace(last, mix=history_mix(status), waits_ms=waits)]


def with_ages(changes: Sequence[HistoryPoint], step: int) -> list[HistoryPoint]:
    """Add how the queue was a step before a change, where something waited for longer: all was the same, but older."""
    points = []
    for before, change in pairwise(changes):
        points.append(before)
        if before.oldest_at is not None and change.at - before.at > step:
            points.append(replace(before, at=change.at - step))
    return [*points, *changes[-1:]]


def _at(
    points: Sequence[HistoryPoint], changes: Sequence[HistoryPoint], rates: Sequence[float | None]
) -> list[float | None]:
    """Return the rates up to these points: between changes, what it was up to the later one."""
    moments = [change.at for change in changes]
    return [rates[bisect_left(moments, point.at)] for point in points]


def _rates(totals: Sequence[tuple[int, int]]) -> list[float | None]:
    """Return the rate up to each point; None for the first, and over a purge, which begins to count anew."""
    rises = [(after - before, at - since) for (since, before), (at, after) in pairwise(totals)]
    return [None, *(None if rise < 0 else rise / seconds for rise, seconds in rises)]


def _mix(points: Sequence[HistoryPoint], bands: int) -> list[list[float | None]]:
    def percent(point: HistoryPoint, band: int) -> float | None:
        return round(100 * point.mix[band] / max(sum(point.mix), 1), 1) if band < len(point.mix) else None

    return [[percent(point, band) for point in points] for band in range(bands)]
