"""Charts: columns with their labels, as scripts draw them and as tables show them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from pqadmin.dashboard.history.action_marks import Acts, as_mark
from pqadmin.dashboard.history.ranges import Range
from pqadmin.dashboard.history.series import Heat, Series
from pqadmin.display import format as write
from queues import Band

#: Rows of a table; the charts show all.
MAX_ROWS = 200
#: The share of a range behind now in which the forecast is drawn.
_AHEAD = 0.2

#: How numbers are written here; charts.js writes them alike by the same names.
_WRITERS: Mapping[str, Callable[[Any], str]] = {"number": write.number, "rate": write.rate, "age": write.age}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One chart: its columns with their labels, and by which name a number of them is written."""

    name: str
    title: str
    unit: str
    written: str
    labels: Sequence[str]
    times: Sequence[float]
    columns: Sequence[Sequence[Any]]

    @property
    def data(self) -> dict[str, Any]:
        """What charts.js draws of it."""
        return {
            "labels": self.labels,
            "times": self.times,
            "columns": self.columns,
            "written": self.written,
            # Ages go over into the next one; other numbers jump there.
            "sloping": self.name == "oldest",
        }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its table, the newest moments first."""
        written = _WRITERS[self.written]
        last = min(len(self.times), len(self.columns[0])) - 1
        return [
            {
                "at": datetime.fromtimestamp(self.times[n], UTC),
                "cells": ["–" if column[n] is None else written(column[n]) for column in self.columns],
            }
            for n in range(last, max(-1, last - MAX_ROWS), -1)
        ]

    @property
    def cut(self) -> bool:
        """Whether the table lacks moments."""
        return len(self.columns[0]) > MAX_ROWS


def depth_and_rates(drawn: Series) -> list[Kind]:
    """Return the charts that every queue has, and all queues together."""
    states, ways = [_("ready"), _("delayed"), _("leased"), _("dead")], [_("in"), _("out")]
    return [
        Kind(
            name="depth",
            title=_("Depth"),
            unit=_("items by state"),
            written="number",
            labels=states,
            times=drawn.times,
            columns=drawn.depth,
        ),
        Kind(
            name="rates",
            title=_("In and out"),
            unit=_("items a second"),
            written="rate",
            labels=ways,
            times=drawn.times,
            columns=drawn.rates,
        ),
    ]


def ages(drawn: Series) -> list[Kind]:
    """Return the charts of ages and waits."""
    kinds = [
        Kind(
            name="oldest",
            title=_("Oldest age"),
            unit=_("the longest wait then"),
            written="age",
            labels=[_("oldest age")],
            times=drawn.times,
            columns=[drawn.oldest],
        )
    ]
    if any(value is not None for value in drawn.waits[0]):
        kinds.append(
            Kind(
                name="waits",
                title=_("Waits"),
                unit=_("of what was taken, at most"),
                written="age",
                labels=[_("half"), _("95 of 100"), _("99 of 100")],
                times=drawn.times,
                columns=drawn.waits,
            )
        )
    return kinds


def mix(drawn: Heat, bands: Sequence[Band]) -> list[Kind]:
    """Return the heat map of the priority mix; of the bands between the first and the last that held anything."""
    used = [n for n, column in enumerate(drawn.bands) if any(column)]
    if not used:
        return []
    shown = range(used[0], used[-1] + 1)
    return [
        Kind(
            name="mix",
            title=_("Priority mix"),
            unit=_("ready items by priority band"),
            written="number",
            labels=[write.band(bands[n].low, bands[n].high) for n in shown],
            times=drawn.times,
            columns=[drawn.bands[n] for n in shown],
        )
    ]


def forecast(
    ready: int, shown: Range, *, clears_in: float | None, grows_by: float | None
) -> list[tuple[float, float]] | None:
    """Return the ends of the line on which the depth goes on, as the verdict says; None where it says nothing."""
    if not shown.live:
        return None
    ahead = shown.seconds * _AHEAD
    if clears_in:
        left = min(clears_in, ahead)
        return [(shown.until, ready), (shown.until + left, ready * (1 - left / clears_in))]
    if grows_by:
        return [(shown.until, ready), (shown.until + ahead, ready + grows_by * ahead)]
    return None


def data_of(
    kinds: Iterable[Kind],
    shown: Range,
    *,
    did: Acts | None = None,
    line: Sequence[tuple[float, float]] | None = None,
) -> dict[str, Any]:
    """Return what charts.js draws."""
    step = shown.resolution.step
    return {
        "since": shown.since,
        "until": shown.until,
        "end": line[-1][0] if line else shown.until,
        "live": shown.live,
        "unfinished": shown.until // step * step if shown.live else shown.until,
        "charts": {kind.name: kind.data for kind in kinds},
        "forecast": None if line is None else {"label": _("forecast"), "ends": line},
        "marks": [] if did is None else [{"at": e.at.timestamp(), "label": as_mark(e)["label"]} for e in did.marks],
        "pauses": [] if did is None else did.pauses,
    }


def packed(data: Mapping[str, Any]) -> str:
    """Return the data as a page carries it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)
