"""The page of a queue's history: charts, the same numbers as tables, and what people did meanwhile."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.history.series import SPANS, Charted, Span, charted, marks, moment
from pqadmin.display import format as write
from pqadmin.display.words import verb_words
from pqadmin.live.words import state_words
from pqadmin.pages import visibility
from pqadmin.pages.queue_context import about, mix, row_of, status_of
from pqadmin.store import get_store, store_now
from queues import AuditEntry, QueueStatus

#: Rows of a table; the charts show all.
MAX_ROWS = 200


@require_safe
@require(Right.READ)
def history(request: HttpRequest, name: str) -> HttpResponse:
    """Show what a queue held and did, over ten minutes to ninety days."""
    status, now, span = status_of(name), store_now(), _span(request)
    if status.attached:
        return render(request, "dashboard/history.html", about(request, status, row=row_of(status, now), now=now))
    store = get_store()
    chart, acts = charted(store, status, span, now), marks(store, status, span, now, visibility.scope(request))
    row = row_of(status, now)
    context = about(
        request,
        status,
        row=row,
        words=state_words(row, now, whole=True),
        now=now,
        span=span,
        spans=SPANS.values(),
        chart=chart,
        data=json.dumps(_data(chart, status, acts)),
        charts=_charts(chart, status),
        acts=[_mark(entry) for entry in acts],
        size=store.history.size(status.id),
        whole=64 * 1024,
    )
    return render(request, "dashboard/history.html", context)


@require_safe
@require(Right.READ)
def history_data(request: HttpRequest, name: str) -> HttpResponse:
    """Hand out the numbers of the charts anew."""
    status, now, span = status_of(name), store_now(), _span(request)
    if status.attached:
        return JsonResponse({}, status=404)
    store = get_store()
    answer = JsonResponse(
        _data(charted(store, status, span, now), status, marks(store, status, span, now, visibility.scope(request)))
    )
    answer["Cache-Control"] = "private, no-store"
    return answer


def _span(request: HttpRequest) -> Span:
    return SPANS.get(request.GET.get("span", ""), SPANS["10m"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One chart: its columns with their labels, and how a number of them is written here and in charts.js."""

    name: str
    title: str
    unit: str
    labels: Sequence[str]
    columns: Sequence[Sequence[Any]]
    words: Callable[[Any], str]
    written: str
    #: Whether a number goes over into the next one, as ages do; or else jumps there.
    sloping: bool = False


def _kinds(chart: Charted, status: QueueStatus) -> list[Kind]:
    kinds = [
        Kind(
            name="depth",
            title=_("Depth"),
            unit=_("items by state"),
            labels=[_("ready"), _("delayed"), _("leased"), _("dead")],
            columns=[chart.ready, chart.delayed, chart.leased, chart.dead],
            words=write.number,
            written="number",
        ),
        Kind(
            name="rates",
            title=_("In and out"),
            unit=_("items a second"),
            labels=[_("in"), _("out")],
            columns=[chart.rate_in, chart.rate_out],
            words=write.rate,
            written="rate",
        ),
        Kind(
            name="oldest",
            title=_("Oldest claimable"),
            unit=_("the longest wait then"),
            labels=[_("oldest")],
            columns=[chart.oldest],
            words=write.age,
            written="age",
            sloping=True,
        ),
    ]
    if any(value is not None for value in chart.waits[0]):
        kinds.append(
            Kind(
                name="waits",
                title=_("Waits"),
                unit=_("of what was taken, at most"),
                labels=[_("half"), _("95 of 100"), _("99 of 100")],
                columns=chart.waits,
                words=write.age,
                written="age",
            )
        )
    if any(sum(value is not None for value in column) > 1 for column in chart.mix):
        kinds.append(
            Kind(
                name="mix",
                title=_("Priority mix"),
                unit=_("percent of what is ready"),
                labels=[write.shorten(band["label"], 40) for band in mix(status.bands)],
                columns=chart.mix,
                words=_percent,
                written="percent",
            )
        )
    return kinds


def _data(chart: Charted, status: QueueStatus, acts: Sequence[AuditEntry]) -> dict[str, Any]:
    """Return what charts.js draws."""
    return {
        "times": chart.times,
        "charts": {
            kind.name: {
                "labels": kind.labels,
                "columns": kind.columns,
                "written": kind.written,
                "sloping": kind.sloping,
            }
            for kind in _kinds(chart, status)
        },
        "unfinished": chart.unfinished,
        "marks": [{"at": entry.at.timestamp(), "label": _mark(entry)["label"]} for entry in acts],
    }


def _mark(entry: AuditEntry) -> dict[str, Any]:
    actor, verb = write.visible(entry.actor), verb_words(entry.verb)
    return {"entry": entry, "actor": actor, "verb": verb, "label": f"{verb} · {actor}"}


def _charts(chart: Charted, status: QueueStatus) -> list[dict[str, Any]]:
    """Return each chart with its table: the newest moments first."""
    return [
        {"kind": kind, "rows": _rows(chart.times, kind), "cut": len(chart.times) > MAX_ROWS}
        for kind in _kinds(chart, status)
    ]


def _rows(times: Sequence[float], kind: Kind) -> list[dict[str, Any]]:
    newest = range(len(times) - 1, max(-1, len(times) - 1 - MAX_ROWS), -1)
    return [
        {
            "at": moment(times[n]),
            "cells": ["–" if column[n] is None else kind.words(column[n]) for column in kind.columns],
        }
        for n in newest
    ]


def _percent(share: float) -> str:
    return f"{share:.0f} %"
