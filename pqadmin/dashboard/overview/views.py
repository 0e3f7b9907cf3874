"""The overview: every queue, what it holds and where it is heading. All of its state is in its address."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import scope_of
from pqadmin.dashboard.overview import favorites
from pqadmin.dashboard.overview.ordering import SORTS, WINDOW, Order, arrange
from pqadmin.live.board.filters import parse
from pqadmin.live.board.row_html import COLUMNS, render_blank_row, render_rows
from pqadmin.live.board.sparklines import SPARKS
from pqadmin.live.monitor import get_monitor
from pqadmin.live.words import attached_note, attached_words, levels_words, tab_words
from pqadmin.pages import reader_preferences, visibility
from pqadmin.store import get_store, store_now

#: Names of so many characters leave room for previews.
_SHORT = 20


@require_safe
@require(Right.READ)
def overview(request: HttpRequest) -> HttpResponse:
    """Show one window of the table of queues; a fragment's request gets the table alone."""
    monitor = get_monitor()
    monitor.refresh()
    may = scope_of(request.user)
    seen = monitor.overview(may)
    now = store_now()
    asked = {name: request.GET.get(name, "")[:4_000] for name in ("q", "group", "sort", "first", "after")}
    stars, shut = favorites.of(request.user)
    wanted = parse(asked["q"], stars)
    order = Order.parse(asked["group"], asked["sort"], asked["first"])
    listing = arrange(seen, order=order, wanted=wanted, after=asked["after"], favorites=stars, shut=shut)
    depths = {row.status.id: row.ready for group in listing.groups for row in group.rows if not row.status.attached}
    lines = SPARKS.of(get_store(), depths, now.timestamp())
    can_act = may.anywhere(Right.ACT)
    drawn: dict[str, Any] = {"now": now, "can_act": can_act, "acts_on": partial(may.can, Right.ACT), "stars": stars}
    state = {"q": wanted.text, "group": order.grouping if order.grouping != "problems" else "", "sort": asked["sort"]}
    if order.favorites:
        state["first"] = "favorites"
    context = {
        "section": "queues",
        "seen": seen,
        "summary": seen.summary,
        "worst": tab_words(*seen.summary.worst),
        "attached_words": attached_words(seen.summary.attached, now),
        "now": now,
        "wanted": wanted,
        "order": order,
        "listing": listing,
        "bodies": [
            {
                "group": group,
                "worst": seen.groups[group.label].worst_row if group.label is not None else None,
                "rows": render_rows(group.rows, lines=lines, **drawn),
                "attached": attached_note(group.sum.attached) if group.sum else "",
                "levels": levels_words(group.sum.levels) if group.sum else "",
            }
            for group in listing.groups
        ],
        "blank_row": render_blank_row(can_act=can_act, acts_on_all=may.role.has(Right.ACT)),
        "program_store": _program_store() if may.role.has(Right.ACT) else "",
        "seen_names": "" if may.everything else visibility.granted(may, Right.READ),
        "columns": COLUMNS + can_act,
        "short_names": max((len(row.status.name) for group in listing.groups for row in group.rows), default=0)
        <= _SHORT,
        "compact": reader_preferences.compact(request),
        "heads": _heads(order, state),
        "groupings": _groupings(order, state),
        "stars": stars,
        "stars_url": _address({**state, "first": None if order.favorites else "favorites"}),
        "next_url": _address(state | {"after": listing.cursor}) if listing.cursor else "",
        "first_url": _address(state),
        "window": WINDOW,
        "windowed": bool(asked["after"]),
        "complete": not asked["after"] and listing.cursor is None,
    }
    fragment = request.headers.get("HX-Target", "") == "section#queues"
    return render(request, "dashboard/_queues.html" if fragment else "dashboard/overview.html", context)


def _program_store() -> str:
    """Return the site's store as programs in any folder write it; empty where no other process can open it."""
    url: str = settings.PQADMIN_STORE
    engine, _colon, path = url.partition(":")
    if engine == "lmdb":
        url = f"lmdb:{Path(path).absolute()}"
    return "" if engine == "memory" else json.dumps(url, ensure_ascii=False)


def _address(state: Mapping[str, str | None]) -> str:
    query = urlencode({name: value for name, value in state.items() if value})
    return f"?{query}" if query else "?"


def _heads(order: Order, state: Mapping[str, str]) -> list[dict[str, str]]:
    labels = (_("Queue"), _("Ready"), _("In/s"), _("Out/s"), _("Oldest age"))
    heads = []
    for (field, descending_first), label in zip(SORTS.items(), labels, strict=True):
        active = order.sort == field
        down = (not order.descending) if active else descending_first
        aria = ("descending" if order.descending else "ascending") if active else ""
        sort = f"-{field}" if down else field
        title = _("last 10 s") if field in ("in", "out") else ""
        heads.append(
            {"field": field, "label": label, "title": title, "aria": aria, "url": _address({**state, "sort": sort})}
        )
    return heads


def _groupings(order: Order, state: Mapping[str, str]) -> list[dict[str, Any]]:
    asked = state["sort"]
    labels = {"problems": _("Problems first"), "name": _("By name"), "group": _("By group")}
    return [
        {
            "name": name,
            "label": label,
            "current": order.grouping == name and (name == "group" or not order.sort),
            "url": _address(
                {**state, "group": "" if name == "problems" else name, "sort": asked if name == "group" else ""}
            ),
        }
        for name, label in labels.items()
    ]
