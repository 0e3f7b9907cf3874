"""The page of a queue's history: charts, the same numbers as tables, and what people did meanwhile."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.history.series import SPANS, Charted, Span, charted, marks
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
    row = row_of(status, now)
    if status.attached:
        return render(request, "dashboard/history.html", about(request, status, row=row, now=now))
    chart, acts = _read(request, status, span, now)
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
        charts=[
            {"kind": kind, "rows": _rows(chart.times, kind), "cut": len(chart.times) > MAX_ROWS}
            for kind in _kinds(chart, status)
        ],
        acts=[_mark(entry) for entry in acts],
        size=get_store().history.size(status.id),
        whole=64 * 1024,
    )
    return render(request, "dashboard/history.html", context)


@require_safe
@require(Right.READ)
def history_data(request: HttpRequest, name: str) -> HttpResponse:
    """Hand out the numbers of the charts anew."""
    status = status_of(name)
    if status.attached:
        return JsonResponse({}, status=404)
    chart, acts = _read(request, status, _span(request), store_now())
    return JsonResponse(_data(chart, status, acts), headers={"Cache-Control": "private, no-store"})


def _span(request: HttpRequest) -> Span:
    return SPANS.get(request.GET.get("span", ""), SPANS["10m"])


def _read(request: HttpRequest, status: QueueStatus, span: Span, now: datetime) -> tuple[Charted, list[AuditEntry]]:
    store = get_store()
    return charted(store, status, span, now), marks(store, status, span, now, visibility.scope(request))


#: How numbers are written here; charts.js writes them alike by the same names.
_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "number": write.number,
    "rate": write.rate,
    "age": write.age,
    "percent": lambda share: f"{share:.0f} %",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One chart: its columns with their labels, and by which name a number of them is written."""

    name: str
    title: str
    unit: str
    written: str
    labels: Sequence[str]
    columns: Sequence[Sequence[Any]]

    @property
    def sloping(self) -> bool:
        """Say whether a number goes over into the next one, as ages do; or else jumps there."""
        return self.name == "oldest"


def _kinds(chart: Charted, status: QueueStatus) -> list[Kind]:
    states, ways = [_("ready"), _("delayed"), _("leased"), _("dead")], [_("in"), _("out")]
    kinds = [
        Kind("depth", _("Depth"), _("items by state"), "number", states, chart.depth),
        Kind("rates", _("In and out"), _("items a second"), "rate", ways, chart.rates),
        Kind("oldest", _("Oldest claimable"), _("the longest wait then"), "age", [_("oldest")], [chart.oldest]),
    ]
    if any(value is not None for value in chart.waits[0]):
        labels = [_("half"), _("95 of 100"), _("99 of 100")]
        kinds.append(Kind("waits", _("Waits"), _("of what was taken, at most"), "age", labels, chart.waits))
    if any(sum(value is not None for value in column) > 1 for column in chart.mix):
        labels = [write.shorten(band["label"], 40) for band in mix(status.bands)]
        kinds.append(Kind("mix", _("Priority mix"), _("percent of what is ready"), "percent", labels, chart.mix))
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


def _rows(times: Sequence[float], kind: Kind) -> list[dict[str, Any]]:
    """Return the table of a chart, the newest moments first."""
    written = _WRITERS[kind.written]
    return [
        {
            "at": datetime.fromtimestamp(times[n], UTC),
            "cells": ["–" if column[n] is None else written(column[n]) for column in kind.columns],
        }
        for n in range(len(times) - 1, max(-1, len(times) - 1 - MAX_ROWS), -1)
    ]
