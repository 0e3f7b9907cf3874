"""The charts of all queues together: a page, and a part that the overview opens."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.history import charts, overall
from pqadmin.dashboard.history.ranges import BadRange, Range, parse
from pqadmin.dashboard.history.series import series
from pqadmin.dashboard.history.views import no_store, range_context, ranged
from pqadmin.display.addresses import queue_url
from pqadmin.live.board.overviews import Overview
from pqadmin.live.monitor import get_monitor
from pqadmin.live.words import tab_words
from pqadmin.pages import visibility
from pqadmin.pages.reader_preferences import time_zone
from pqadmin.store import get_store, store_now
from queues import QueueStatus
from queues.admin import HISTORY_FLUSH


@require_safe
@require(Right.READ)
def all_charts(request: HttpRequest) -> HttpResponse:
    """Show what all queues that the person sees held and did together; a fragment's request gets the charts alone."""
    now = store_now()
    asked = ranged(request, now)
    if isinstance(asked, HttpResponse):
        return asked
    shown, fault = asked
    seen = _overview(request)
    statuses = [row.status for row in seen.rows]
    kinds, data = _drawn(request, seen, shown)
    most_used = overall.most_used(statuses)
    restricted = not visibility.scope(request).everything
    fragment = request.headers.get("HX-Request") == "true"
    context = {
        "section": "queues",
        "fragment": fragment,
        "now": now,
        "worst": tab_words(*seen.summary.worst),
        "ready": seen.summary.ready,
        "here": reverse("dashboard:charts"),
        "charts": kinds,
        "data": charts.packed(data),
        "movers": [
            {"mover": mover, "url": f"{queue_url(mover.name)}history/?{shown.query}"}
            for mover in overall.movers(get_store(), statuses, shown)
        ],
        "queues": len(most_used),
        "untold": "" if restricted else _untold(statuses, data, shown),
        "left_out": [one.name for one in statuses if restricted and one.unreadable and not one.attached],
        "attached": any(one.attached for one in statuses),
        "summed": overall.MAX_SUMMED if restricted and len(most_used) > overall.MAX_SUMMED else 0,
        "compared": overall.MAX_COMPARED if len(most_used) > overall.MAX_COMPARED else 0,
        **range_context(shown, fault),
    }
    return render(request, "charts/_overall.html" if fragment else "charts/overall.html", context)


@require_safe
@require(Right.READ)
def all_charts_data(request: HttpRequest) -> HttpResponse:
    """Hand out the numbers of the charts anew."""
    try:
        shown = parse(request.GET, store_now(), time_zone(request))
    except BadRange:
        return JsonResponse({}, status=400)
    return no_store(_drawn(request, _overview(request), shown)[1])


def _overview(request: HttpRequest) -> Overview:
    monitor = get_monitor()
    monitor.refresh()
    return monitor.overview(visibility.scope(request))


def _untold(statuses: list[QueueStatus], data: dict[str, Any], shown: Range) -> str:
    """Return the name of a queue that cannot be read and so keeps the sums from going on; empty: they do."""
    times = data["charts"]["depth"]["times"]
    if not shown.live or (times and times[-1] > shown.now - shown.resolution.step - HISTORY_FLUSH):
        return ""
    return next((status.name for status in statuses if status.unreadable), "")


def _drawn(request: HttpRequest, seen: Overview, shown: Range) -> tuple[list[charts.Kind], dict[str, Any]]:
    everything, statuses = visibility.scope(request).everything, [row.status for row in seen.rows]
    points = overall.summed(get_store(), statuses, shown, everything=everything, unread=seen.summary.unread)
    # The sums that the store keeps do not tell what came and went in the last seconds: the tile's rates do.
    latest = (seen.summary.rate_in, seen.summary.rate_out) if everything else None
    kinds = charts.depth_and_rates(series(points, shown, shown.resolution.step, latest=latest))
    return kinds, charts.data_of(kinds, shown)
