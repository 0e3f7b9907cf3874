"""Reading one queue for its pages: one read transaction, so that everything on the page fits together."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from pqadmin.accounts.roles import Right, can
from pqadmin.display import format as write
from pqadmin.display.addresses import queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.live.board import rows
from pqadmin.live.board.health import Watch
from pqadmin.live.board.rows import Row
from pqadmin.live.monitor import get_monitor
from pqadmin.live.words import attached_title
from pqadmin.store import get_store, store_now
from queues import Band, QueueStatus
from queues.admin import described_name, lookalikes, to_ms

#: Bytes of a value that lists show.
PREVIEW_BYTES = 256


def row_of(status: QueueStatus, now: datetime) -> Row:
    """Return a queue's row with the rates that the monitor knows, or without any if it never watched the queue."""
    board = get_monitor().board
    row = board.row_as_read(status, time.monotonic(), now)
    if row is not None:
        return row
    return rows.row_of(status, now, Watch().look(status, now.timestamp(), board.targets_of(status)))


def paused(status: QueueStatus, now: datetime) -> bool:
    """Say whether a queue is paused. A pause that has run out is none; its record stays until the next act."""
    return status.pause is not None and status.pause.holds(to_ms(now))


def mix(bands: Sequence[Band]) -> list[dict[str, Any]]:
    """Return the bands of a queue for its mix."""
    levels = write.mix_levels([band.depth for band in bands])
    return [
        {
            "label": write.shorten(write.visible(band.label), 80),
            "short": write.band(band.low, band.high),
            "depth": band.depth,
            "level": write.mix_step(level),
        }
        for band, level in zip(bands, levels, strict=True)
    ]


def about(request: HttpRequest, status: QueueStatus, **more: Any) -> dict[str, Any]:
    """Return what every page of one queue shows of it."""
    group, rest = write.split_name(status.name)
    return {
        "section": "queues",
        "status": status,
        "paused": paused(status, store_now()),
        "url": queue_url(status.name),
        "name_group": group,
        "name_rest": rest,
        "fifo": status.kind == "fifo",
        "lookalikes": described_name(lookalikes(status.name)),
        "attached_title": attached_title(status.prefix) if status.attached else "",
        "can_act": can(request.user, Right.ACT, status.name),
        "rules": rules_of(status.redact),
        **more,
    }


def status_of(name: str) -> QueueStatus:
    """Read a queue's status alone; raise `QueueNotFound`."""
    with get_store().suggesting():
        return get_store().read(lambda tr: get_store().queue(name, tr=tr).status(tr=tr, preview=PREVIEW_BYTES))
