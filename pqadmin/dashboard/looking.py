"""Reading one queue for its pages: one read transaction, so that everything on the page fits together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from pqadmin.accounts.roles import Right, can
from pqadmin.dashboard import format as write
from pqadmin.dashboard.addresses import queue_url
from pqadmin.dashboard.listed import PREVIEW_BYTES as PREVIEW_BYTES
from pqadmin.dashboard.listed import Listed, list_items
from pqadmin.dashboard.looking_for import Asked
from pqadmin.dashboard.looking_for import asked as asked_for
from pqadmin.dashboard.redaction import rules_of
from pqadmin.dashboard.seen import what_searchers_see
from pqadmin.dashboard.templatetags.dashboard import split
from pqadmin.dashboard.words import attached_title
from pqadmin.live.monitor import get_monitor, problem_rules
from pqadmin.live.outlook import Known, judge
from pqadmin.live.rows import Row, attached_row
from pqadmin.live.wire import END_ITEMS
from pqadmin.server.store import get_store, store_now
from queues import Band, Item, Page, Queue, QueueStatus, ReadTransaction
from queues.ids import to_ms
from queues.lookalikes import described, lookalikes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One queue at one moment, and the items of it that were asked for."""

    status: QueueStatus
    row: Row
    min: Sequence[Item]
    max: Sequence[Item]
    asked: Asked
    listed: Listed
    now: datetime


def see(name: str, fields: Mapping[str, str]) -> Seen:
    """Read a queue for its page, with the items that an address asks for; raise `QueueNotFound`.

    All of it is of one version, but for what a search finds: that goes by steps.
    """
    store, now = get_store(), store_now()

    def look(tr: ReadTransaction) -> tuple[Queue, QueueStatus, Page, Page, Asked, Listed | None]:
        queue = store.queue(name, tr=tr)
        asked = asked_for(fields, queue, now=now)
        return (
            queue,
            queue.status(tr=tr, preview=PREVIEW_BYTES),
            queue.items(end="min", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr),
            queue.items(end="max", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr),
            asked,
            None if asked.searching else list_items(queue, asked, tr=tr),
        )

    with store.suggesting():
        queue, status, low, high, asked, listed = store.read(look)
    now = store_now()
    return Seen(
        status=status,
        row=row_of(status, now),
        min=low.items,
        max=high.items,
        asked=asked,
        listed=list_items(queue, asked, shown=what_searchers_see(queue.config)) if listed is None else listed,
        now=now,
    )


def row_of(status: QueueStatus, now: datetime) -> Row:
    """Return a queue's row with the rates that the monitor knows, or without any if it never watched the queue."""
    row = get_monitor().board.row(status.id, time.monotonic(), status)
    if row is not None:
        return row
    if status.attached:
        return attached_row(status, now)
    verdict = judge(
        Known(
            ready=status.totals.ready,
            paused=paused(status, now),
            drift=status.drift,
            dead=status.totals.dead,
            oldest_for=None if status.oldest is None else (now - status.oldest).total_seconds(),
        ),
        problem_rules(),
    )
    return Row(
        status=status,
        rate_in=None,
        rate_out=None,
        state=verdict.state,
        outlook=verdict.outlook,
        problem=verdict.problem,
        more=verdict.more,
        clears_in=verdict.clears_in,
        grows_by=verdict.grows_by,
        quiet_since=None,
        as_of=now,
    )


def paused(status: QueueStatus, now: datetime) -> bool:
    """Say whether a queue is paused: a pause that has run out is none, though its record stays until the next act."""
    return status.pause is not None and status.pause.holds(to_ms(now))


def mix(bands: Sequence[Band]) -> list[dict[str, Any]]:
    """Return the bands of a queue for its mix."""
    levels = write.mix_levels([band.depth for band in bands])
    return [
        {
            "label": write.shorten(write.visible(band.label), 80),
            "short": write.band(band.low, band.high),
            "depth": band.depth,
            "level": level,
        }
        for band, level in zip(bands, levels, strict=True)
    ]


def about(request: HttpRequest, status: QueueStatus, **more: Any) -> dict[str, Any]:
    """Return what every page of one queue shows of it."""
    group, rest = split(status.name)
    return {
        "section": "queues",
        "status": status,
        "paused": paused(status, store_now()),
        "url": queue_url(status.name),
        "name_group": group,
        "name_rest": rest,
        "fifo": status.kind == "fifo",
        "lookalikes": described(lookalikes(status.name)),
        "attached_title": attached_title(status.prefix) if status.attached else "",
        "can_act": can(request.user, Right.ACT, status.name),
        "rules": rules_of(status.redact),
        **more,
    }


def status_of(name: str) -> QueueStatus:
    """Read a queue's status alone; raise `QueueNotFound`."""
    with get_store().suggesting():
        return get_store().read(lambda tr: get_store().queue(name, tr=tr).status(tr=tr, preview=PREVIEW_BYTES))
