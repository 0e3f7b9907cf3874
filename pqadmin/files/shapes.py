"""The JSON that commands print with --json and the HTTP API answers; documented in docs/reference/command-line.md.

Whole numbers keep every digit. Times are ISO 8601 in UTC. A value is `value` when it is plain text, else
`value_base64`; what a codec decodes is `value_json` too, if JSON has all of it. A field that does not apply is null,
never left out.
"""

import base64
import json
import math
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from typing import Any

from pqadmin.files.entries import REDACTED
from pqadmin.files.plain_text import plain_text
from queues import Attempt, Changed, Consumer, Item, Job, Pause, Queue, QueueStatus, Totals
from queues.admin import (
    LIMIT_NAMES,
    NOTHING_KNOWN,
    STATES,
    Backup,
    Codec,
    HealthVerdict,
    Share,
    TargetRules,
    health_at,
    time_of_ms,
    to_ms,
)
from queues.errors import BadValue, Undecodable

Shape = dict[str, object]

#: What is told of attempts and of consumers.
OF_ATTEMPTS = tuple(field.name for field in fields(Attempt))
_OF_CONSUMERS = tuple(field.name for field in fields(Consumer) if field.name != "id")


def item_shape(item: Item) -> Shape:
    """Describe an item with its value, as much as the item has of it."""
    text = plain_text(item.raw)
    value: Shape = {"value": text} if text is not None else {"value_base64": base64.b64encode(item.raw).decode()}
    if item.hidden:
        value = {REDACTED: item.raw.decode("utf-8", "replace")}
    elif item.codec is not None and item.codec.name in ("json", "msgpack"):
        with suppress(Undecodable, BadValue, ValueError):  # some values are no JSON, or nested too deeply
            value["value_json"] = _as_json(item.value)
    return {
        "id": item.id,
        "priority": item.priority,
        "count": item.count,
        "state": item.state,
        "pushed_at": time_shape(item.pushed_at),
        "ready_at": time_shape(item.ready_at),
        "size": item.size,
        "attempts": item.attempts,
        "due_at": time_shape(item.due_at),
        "leased_at": time_shape(item.leased_at),
        "expires_at": time_shape(item.expires_at),
        "worker": item.worker or None,
        "died_at": time_shape(item.died_at),
        "reason": item.reason or None,
        "attempt_log": [attempt_shape(one) for one in item.attempt_log],
        "key": None if item.foreign is None else item.foreign.text,
        **value,
    }


def _as_json(value: Any) -> Any:
    """Return a decoded value as JSON has it. Raise `BadValue` or ValueError where JSON does not have all of it."""
    text = Codec("json", "").encode(value)
    if b"null" in text:  # what JSON has no number for is written so too
        inside = [value]
        while inside:
            one = inside.pop()
            if isinstance(one, dict):
                inside += (*one, *one.values())
            elif isinstance(one, list | tuple):
                inside += one
            elif isinstance(one, float) and not math.isfinite(one):
                raise ValueError
    return json.loads(text, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members := dict(pairs)) < len(pairs):  # as 1 and "1" are one name
        raise ValueError
    return members


def attempt_shape(attempt: Attempt) -> Shape:
    """Describe one attempt of an item."""
    shape = shape_of(attempt, *OF_ATTEMPTS)
    return {name: None if value == "" else value for name, value in shape.items()}


def depth_shape(name: str, totals: Totals, counted_at: datetime | None) -> Shape:
    """Describe the depths of a queue, by state; of an attached queue also the time of counting."""
    return {"queue": name, **shape_of(totals, *STATES), "counted_at": time_shape(counted_at)}


def changed_shape(queue: Queue, changed: Changed) -> Shape:
    """Describe what an action on items changed, and how it is undone."""
    return {"queue": queue.name, "items": changed.count, "skipped": changed.skipped, "trash_id": changed.trash_id}


def backup_shape(url: str, folder: str, made: Backup) -> Shape:
    """Describe a backup that was made of a store or restored to it."""
    return {"store": url, "backup": folder, "store_id": made.store_id, "format": made.format, "bytes": made.size}


def queue_shape(queue: Queue) -> Shape:
    """Describe a queue without its items."""
    return {
        "queue": queue.name,
        "id": queue.id,
        "kind": queue.kind,
        "priority_type": _type(queue.kind, queue.priority_type),
        "codec": queue.codec,
        "prefix": _prefix(queue.config.prefix),
    }


def status_shape(
    status: QueueStatus,
    verdict: HealthVerdict,
    now: datetime,
    *,
    rate_in: float | None = None,
    rate_out: float | None = None,
) -> Shape:
    """Describe a queue, its verdict and its ends, without their values."""
    uncounted = status.attached and status.counted_at is None
    shape: Shape = {
        "queue": status.name,
        "kind": status.kind,
        "priority_type": _type(status.kind, status.priority_type),
        "codec": status.codec,
        "ready": None if uncounted else status.totals.ready,
        "delayed": status.totals.delayed,
        "leased": status.totals.leased,
        "dead": status.totals.dead,
        "arrived": None if status.attached else status.totals.arrived,
        "left": None if status.attached else status.totals.left,
        "oldest": time_shape(status.oldest),
        "min_priority": None if status.min is None else status.min.priority,
        "max_priority": None if status.max is None else status.max.priority,
        "consumers": None
        if status.live_consumers is None
        else [consumer_shape(consumer) for consumer in status.consumers.live],
        "last_consumer": None if status.consumers.ended is None else consumer_shape(status.consumers.ended),
        "pause": pause_shape(status.pause, now),
        "closed": status.closed,
        "rate_in": rate_in,
        "rate_out": rate_out,
        "prefix": _prefix(status.prefix),
        "counted_at": time_shape(status.counted_at),
        "unreadable": status.unreadable or None,
    }
    judged = verdict_shape(verdict)
    known = ("queue", "unreadable")
    shape = {name: shape[name] if name in known else None for name in shape} if status.unreadable else shape
    return shape | {"verdict": judged}


def verdict_shape(verdict: HealthVerdict) -> Shape:
    """Describe the verdict on a queue: codes and numbers, no words."""
    return {
        "level": verdict.level.name.lower(),
        "since": time_shape(time_of_ms(round(verdict.since * 1000))),
        "reasons": [
            {
                "code": reason.code.value,
                "level": reason.level.name.lower(),
                "since": time_shape(time_of_ms(round(reason.since * 1000))),
                "value": reason.value,
                "limit": reason.limit,
                "until": None if reason.until is None else time_shape(time_of_ms(round(reason.until * 1000))),
            }
            for reason in verdict.reasons
        ],
        "trend": verdict.trend.value,
        "clears_in": verdict.clears_in,
        "grows_by": verdict.grows_by,
    }


def breach_shares(status: QueueStatus, rules: TargetRules, now: datetime) -> dict[str, Share]:
    """Return by limit how much of the last day a queue was beyond it."""
    health = health_at(status, rules.targets(status.name, status.limits), now)
    return {
        limit: NOTHING_KNOWN if health is None else health.breaches.share(limit, now.timestamp())
        for limit in LIMIT_NAMES
    }


def targets_shape(status: QueueStatus, rules: TargetRules, now: datetime) -> dict[str, Any]:
    """Describe the limits of a queue: where each comes from, and the share of the last day beyond it."""
    targets, days = rules.resolve(status.name, status.limits), breach_shares(status, rules, now)
    return {
        "queue": status.name,
        "targets": {
            limit: {
                "limit": target.limit,
                "from": target.origin.value,
                "pattern": target.pattern or None,
                "last_24_h": {
                    "in_breach": round(days[limit].beyond, 4),
                    "unknown": round(days[limit].unknown, 4),
                },
            }
            for limit, target in targets.items()
        },
    }


def pause_shape(pause: Pause | None, now: datetime) -> Shape | None:
    """Describe a pause; null when there is none, or it is over."""
    if pause is None or not pause.holds(to_ms(now)):
        return None
    return shape_of(pause, "reason", "by", "since", "until")


def consumer_shape(consumer: Consumer) -> Shape:
    """Describe a process that takes from a queue, as of its last heartbeat."""
    shape = shape_of(consumer, *_OF_CONSUMERS)
    return {**shape, "worker": consumer.worker or None, "rate": round(consumer.rate, 2)}


def job_shape(job: Job) -> Shape:
    """Describe a bulk job: its action, progress and last runner."""
    return {
        "job": job.id,
        **shape_of(job, "act", "state", "queue", "queue_id", "to", "to_id", "query", "status", "total", "met"),
        "items": job.done,
        **shape_of(job, "skipped", "by", "reason", "rate", "speed"),
        "seconds_left": job.seconds_left(),
        **shape_of(job, "began_at", "started_at", "ended_at"),
        "runner": job.runner or None,
        "failure": job.failure or None,
        "failed_at": job.failed_at,
        "undoes": job.of,
        "undone_by": job.undo,
    }


def time_shape(moment: datetime | None) -> str | None:
    """Write a time in ISO 8601, UTC, with milliseconds."""
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def shape_of(described: object, *names: str) -> Shape:
    """Return attributes of an object by name, times as `time_shape` writes them."""
    values = {name: getattr(described, name) for name in names}
    return {name: time_shape(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _prefix(prefix: bytes | None) -> str | None:
    """Write the prefix of an attached queue in hexadecimal digits."""
    return None if prefix is None else prefix.hex()


def _type(kind: str, priority_type: str) -> str | None:
    return None if kind == "fifo" else priority_type
