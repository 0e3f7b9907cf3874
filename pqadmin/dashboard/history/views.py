"""The page of a queue's history: charts, the same numbers as tables, and what people did meanwhile."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.history import charts
from pqadmin.dashboard.history.action_marks import Acts, acts, as_mark
from pqadmin.dashboard.history.ranges import SPANS, BadRange, Range, is_local, parse, span_of
from pqadmin.dashboard.history.series import course, heat, series
from pqadmin.display import format as write
from pqadmin.display.addresses import queue_url
from pqadmin.live.board.rows import Row
from pqadmin.live.words import verdict_words
from pqadmin.pages import visibility
from pqadmin.pages.queue_context import about, row_of, status_of
from pqadmin.pages.reader_preferences import time_zone
from pqadmin.store import get_store, store_now
from queues import QueueStatus
from queues.admin import (
    MINUTES,
    SECONDS,
    HistoryPoint,
    HistoryResolution,
    HistoryStretch,
    as_history_point,
    history_mix,
)


@require_safe
@require(Right.READ)
def history(request: HttpRequest, name: str) -> HttpResponse:
    """Show what a queue held and did in a range of time."""
    status, now = status_of(name), store_now()
    row = row_of(status, now)
    if status.attached:
        return render(request, "dashboard/history.html", about(request, status, row=row, now=now))
    asked = ranged(request, now)
    if isinstance(asked, HttpResponse):
        return asked
    shown, fault = asked
    drawn = _Drawn(status, row, shown, visibility.scope(request))
    context = about(
        request,
        status,
        row=row,
        words=verdict_words(row, now, whole=True),
        now=now,
        here=f"{queue_url(status.name)}history/",
        charts=drawn.kinds,
        empty=drawn.empty,
        damaged=drawn.damaged,
        data=charts.packed(drawn.data),
        acts=[as_mark(entry) for entry in drawn.did.marks],
        size=get_store().history.size(status.id),
        whole=64 * 1024,
        **range_context(shown, fault),
    )
    return render(request, "dashboard/history.html", context)


@require_safe
@require(Right.READ)
def history_data(request: HttpRequest, name: str) -> HttpResponse:
    """Hand out the numbers of the charts anew; with `brief`, those of depth and rates alone."""
    status, now = status_of(name), store_now()
    if status.attached:
        return JsonResponse({}, status=404)
    try:
        shown = parse(request.GET, now, time_zone(request))
    except BadRange:
        return JsonResponse({}, status=400)
    row = row_of(status, now)
    if "brief" in request.GET:
        return no_store(_brief(status, row, shown)[1])
    return no_store(_Drawn(status, row, shown, visibility.scope(request)).data)


def last_hour(status: QueueStatus, row: Row, now: datetime) -> dict[str, Any]:
    """Return what `_last_hour.html` shows: depth, in and out of the last hour."""
    if status.attached:
        return {}
    shown = span_of("1h", now)
    kinds, data = _brief(status, row, shown)
    here = f"{queue_url(status.name)}history/"
    return {"charts": kinds, "data": charts.packed(data), "here": here, "query": shown.query}


def ranged(request: HttpRequest, now: datetime) -> tuple[Range, str] | HttpResponse:
    """Return the range that is asked for, and why it cannot be shown; a form is led to an address that all share."""
    try:
        shown = parse(request.GET, now, time_zone(request))
    except BadRange as error:
        return span_of("", now), str(error)
    if is_local(request.GET):
        return redirect(f"{request.path}?{shown.query}")
    return shown, ""


def range_context(shown: Range, fault: str) -> dict[str, Any]:
    """Return what `_ranges.html` shows."""
    spans = [{"name": name, "label": label, "current": name == shown.span} for name, (_s, label) in SPANS.items()]
    ends = {name: write.local(at).replace(tzinfo=None) for name, at in (("begins", shown.begins), ("ends", shown.ends))}
    return {
        "shown": shown,
        "spans": spans,
        "fault": fault,
        "picked": {name: at.isoformat(timespec="seconds") for name, at in ends.items()},
    }


def no_store(data: dict[str, Any]) -> JsonResponse:
    """Return numbers that no cache keeps."""
    return JsonResponse(data, headers={"Cache-Control": "private, no-store"})


class _Drawn:
    """All charts of a queue in a range."""

    def __init__(self, status: QueueStatus, row: Row, shown: Range, may: Scope) -> None:
        points, stretch = _course(status, shown, shown.resolution)
        self.damaged = bool(stretch.damaged)
        #: Nothing is known but how the queue is now.
        self.empty = not stretch.points and stretch.before is None and not self.damaged
        step = shown.resolution.step
        drawn = series(points, shown, step)
        self.kinds = [*charts.depth_and_rates(drawn), *charts.ages(drawn)]
        if status.bands:
            if shown.resolution is SECONDS:  # points of seconds have no mix
                points, stretch = _course(status, shown, MINUTES)
                self.damaged |= bool(stretch.damaged)
            self.kinds += charts.mix(heat(points, shown, max(step, MINUTES.step), len(status.bands)), status.bands)
        self.did: Acts = acts(get_store(), status, shown, may)
        self.data = charts.data_of(self.kinds, shown, did=self.did, line=_forecast(status, row, shown))


def _brief(status: QueueStatus, row: Row, shown: Range) -> tuple[list[charts.Kind], dict[str, Any]]:
    """Return the charts of depth and rates of a queue, and their data."""
    points, _stretch = _course(status, shown, shown.resolution)
    kinds = charts.depth_and_rates(series(points, shown, shown.resolution.step))
    return kinds, charts.data_of(kinds, shown, line=_forecast(status, row, shown))


def _forecast(status: QueueStatus, row: Row, shown: Range) -> list[tuple[float, float]] | None:
    return charts.forecast(status.totals.ready, shown, clears_in=row.verdict.clears_in, grows_by=row.verdict.grows_by)


def _course(
    status: QueueStatus, shown: Range, resolution: HistoryResolution
) -> tuple[Sequence[HistoryPoint], HistoryStretch]:
    """Return a queue's points from before a range up to now, and what was recorded of them."""
    kept = get_store().history
    stretch = kept.of(status.id, resolution.name, since=shown.since, until=shown.now)
    last = replace(as_history_point(status, shown.now), mix=history_mix(status))
    return course(stretch, last, resolution, recorded=kept.is_recorded()), stretch
