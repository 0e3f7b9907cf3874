"""Consumers of a queue as its page shows them: those that are live, or why there are none."""

from typing import Any
from urllib.parse import urlencode

from pqadmin.display.format import visible
from queues import Consumer, QueueStatus
from queues.admin import EPOCH, to_ms

#: Consumers that a page shows.
MOST = 100

Json = dict[str, Any]

_BLANK = Consumer(
    id="",
    pid=0,
    host="",
    program="",
    worker="",
    since=EPOCH,
    last_take=EPOCH,
    takes=0,
    rate=0.0,
    waiting=0,
    holds=0,
    heard=EPOCH,
)


def why_none(status: QueueStatus) -> str:
    """Return the code that says why no consumer is shown; empty where some are live.

    `closed`, `idle` or `lost` is how the last one ended. `unknown`: none ever told of itself. `untold`: items are taken
    by programs that do not.
    """
    consumers, health = status.consumers, status.health
    if consumers.live:
        return ""
    if health is not None and health.untold_takes:
        return "untold"
    if consumers.ended is None or status.attached:
        return "unknown"
    return consumers.ended.end or "lost"


def panel(status: QueueStatus) -> Json:
    """Return what the panel of a page shows; `blank` is a row that scripts fill in."""
    consumers = status.consumers
    return {
        "none": why_none(status),
        "count": len(consumers.live),
        "shown": consumers.live[:MOST],
        "most": MOST,
        "ended": consumers.ended or _BLANK,
        "blank": _BLANK,
    }


def held_address(worker: str) -> str:
    """Return where a queue's page lists what a worker holds; all leased items for a name that is no plain text."""
    named = {"worker": worker} if worker and worker == visible(worker) else {}
    return "?" + urlencode({"state": "leased", **named}) + "#items"


def described(status: QueueStatus) -> Json:
    """Describe the consumers of a queue for a frame."""
    live, ended = status.consumers.live, status.consumers.ended
    return {
        "live": [_consumer(each) for each in live[:MOST]],
        "count": len(live),
        "ended": None if ended is None else _consumer(ended),
        "none": why_none(status),
    }


def _consumer(consumer: Consumer) -> Json:
    return {
        "id": consumer.id,
        "pid": consumer.pid,
        "host": visible(consumer.host),
        "program": visible(consumer.program),
        "worker": visible(consumer.worker),
        "since": to_ms(consumer.since),
        "last": None if consumer.last_take is None else to_ms(consumer.last_take),
        "rate": round(consumer.rate, 2),
        "waiting": consumer.waiting,
        "holds": consumer.holds,
        "held": held_address(consumer.worker),
        "heard": to_ms(consumer.heard),
    }
