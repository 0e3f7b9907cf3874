"""JSON of the messages to clients: frames, rows, beats, errors. See docs/reference/live-protocol.md and schema.json.

A row is serialized once per change for all sockets; a frame joins finished texts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from pqadmin.display import format as write
from pqadmin.display import items
from pqadmin.display.addresses import queue_url
from pqadmin.display.errors import in_languages
from pqadmin.display.prefixes import prefix_text
from pqadmin.display.redaction import Redaction, rules_of
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Summary
from queues import Item
from queues.admin import HealthReason, described_name, lookalikes, to_ms
from queues.errors import display_name

#: The version of this format; a client that expects another one loads its page anew.
PROTOCOL = 1
#: Above this JavaScript's numbers lose digits: sent as text.
_SAFE = 2**53 - 1
#: Characters of a value in a row.
_ROW_WIDTH = 64
#: Items of each end that the page of one queue shows live.
END_ITEMS = 5

_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The first items of both ends of a queue, and its consumers, at its status's read version.

    Both ends are empty where they cannot be read: `unreadable` says why.
    """

    min: Sequence[Item]
    max: Sequence[Item]
    #: The queue's own rules of redaction.
    redact: tuple[str, ...]
    consumers: Json
    unreadable: str = ""

    @cached_property
    def text(self) -> str:
        """These as JSON text."""
        rules = rules_of(self.redact)
        low, high = ([item(i, rules) for i in items] for items in (self.min, self.max))
        told: Json = {"min": low, "max": high, "consumers": self.consumers}
        if self.unreadable:
            told |= {"unreadable": write.visible(self.unreadable), "said": in_languages(self.unreadable)}
        return _text(told)


def hello(*, now: float, beat: float, stale_after: float, release: str, protocol: int = PROTOCOL) -> str:
    """Return the first message: the limits of freshness, and the release of the server's pages.

    `now` is in seconds since the epoch.
    """
    return _text(
        {
            "t": "hello",
            "protocol": protocol,
            "now": _ms(now),
            "beat": beat,
            "stale_after": stale_after,
            "release": release,
        }
    )


def error(code: str, message: str, *, fatal: bool = False) -> str:
    """What was wrong with a message of the client."""
    return _text({"t": "error", "code": code, "message": message, "fatal": fatal})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the title of a hidden tab says: the depth, the worst level, and how many queues have it."""

    ready: int | None
    level: str | None
    queues: int = 1


def beat(seq: int, *, now: float, checked: float, version: int, standing: Standing, as_of: int) -> str:
    """Nothing changed until `checked`; `as_of` (ms) is the oldest reading in the sum over all queues."""
    return _text(
        {
            "t": "beat",
            "seq": seq,
            "now": _ms(now),
            "checked": _ms(checked),
            "version": whole(version),
            "ready": None if standing.ready is None else whole(standing.ready),
            "level": standing.level,
            "queues": standing.queues,
            "as_of": as_of,
        }
    )


def trouble(seq: int, *, now: float, since: float, message: str) -> str:
    """The store cannot be read since `since`; what is on the screen is old."""
    times = {"now": _ms(now), "since": _ms(since)}
    return _text(
        {"t": "store", "seq": seq, "reachable": False, **times, "message": message, "said": in_languages(message)}
    )


def head(seq: int, *, now: float, as_of: int) -> bytes:
    """Begin a frame: what differs from socket to socket. The rest is a tick's, the same for many."""
    return b'{"t":"frame","seq":%d,"now":%d,"as_of":%d' % (seq, _ms(now), as_of)


def row(row: Row) -> str:
    """Serialize one queue's row."""
    status, totals, pause = row.status, row.status.totals, row.status.pause
    depths = [band.depth for band in status.bands]
    rules = rules_of(status.redact)
    said: dict[str, Any] = {"said": in_languages(status.unreadable)} if status.unreadable else {}
    if letters := lookalikes(status.name):
        said["alike"] = described_name(letters)
    return _text(
        {
            "id": str(status.id),
            "name": status.name,
            "shown": display_name(status.name),
            "url": queue_url(status.name),
            "kind": status.kind,
            "type": status.priority_type if status.kind == "priority" else None,
            "change": whole(status.change),
            "level": row.level,
            "mark": row.mark,
            "rank": row.rank,
            "reasons": [_reason(reason) for reason in row.verdict.reasons],
            "trend": row.trend,
            "unreadable": write.visible(status.unreadable),
            **said,
            "ready": None if row.ready is None else whole(row.ready),
            "delayed": whole(totals.delayed),
            "leased": whole(totals.leased),
            "dead": whole(totals.dead),
            "in": row.rate_in,
            "out": row.rate_out,
            "clears_in": row.verdict.clears_in,
            "grows_by": row.verdict.grows_by,
            "oldest": _maybe(status.oldest),
            "min": item(status.min, rules, width=_ROW_WIDTH, fields=status.preview),
            "max": item(status.max, rules, width=_ROW_WIDTH, fields=status.preview),
            "mix": [
                {"level": level, "label": band.label, "depth": whole(band.depth)}
                for band, level in zip(status.bands, write.mix_levels(depths), strict=True)
            ],
            "pause": None
            if pause is None
            else {
                "reason": write.visible(pause.reason),
                "by": write.visible(pause.by),
                "since": to_ms(pause.since),
                "until": _maybe(pause.until),
            },
            "closed": status.closed,
            "due": _maybe(status.next_due),
            "expiry": _maybe(status.next_expiry),
            "drift": status.drift,
            "staging": status.staging,
            "attached": {"prefix": prefix_text(status.prefix), "counted": _maybe(status.counted_at)}
            if status.attached
            else None,
        }
    )


def _reason(reason: HealthReason) -> Json:
    return {
        "code": reason.code,
        "level": reason.level.name.lower(),
        "since": int(reason.since) * 1000,
        "value": reason.value,
        "limit": reason.limit,
        "until": None if reason.until is None else int(reason.until) * 1000,
    }


def item(
    item: Item | None, rules: Redaction, *, width: int = write.PREVIEW_WIDTH, fields: tuple[str, ...] = ()
) -> Json | None:
    """Describe one item as safe text, with its value, or these fields of it, cut and redacted."""
    if item is None:
        return None
    return {
        "id": item.id,
        "priority": items.priority_short(item),
        "text": items.preview(item, rules, width, fields=fields),
        "size": item.size,
        "cut": item.truncated,
        "since": _maybe(item.since),
        "attempts": item.attempts,
    }


def group(label: str, summary: Summary) -> str:
    """Serialize the sum over a group of queues."""
    return _text({"label": label, **_sums(summary), "worst": _worst(summary.worst_row)})


def _worst(row: Row | None) -> Json | None:
    if row is None:
        return None
    return {"rank": row.rank, "level": row.level, "mark": row.mark, "shown": display_name(row.status.name)}


def total(summary: Summary) -> str:
    """Serialize the sum over all queues."""
    return _text(
        {
            **_sums(summary),
            "oldest_queue": None if summary.oldest_queue is None else display_name(summary.oldest_queue),
            "due": _maybe(summary.next_due),
            "expiry": _maybe(summary.next_expiry),
            "unread": summary.unread,
            "attached": {
                "queues": summary.attached.queues,
                "ready": whole(summary.attached.ready),
                "counted": _maybe(summary.attached.counted_at),
                "uncounted": summary.attached.uncounted,
            },
        }
    )


def _sums(summary: Summary) -> Json:
    return {
        "queues": summary.queues,
        "ready": whole(summary.ready),
        "delayed": whole(summary.delayed),
        "leased": whole(summary.leased),
        "dead": whole(summary.dead),
        "in": summary.rate_in,
        "out": summary.rate_out,
        "oldest": _maybe(summary.oldest),
        "levels": dict(summary.levels),
    }


def whole(n: int) -> int | str:
    """Return the number as JavaScript can keep it: as text where it would lose digits."""
    return n if -_SAFE <= n <= _SAFE else str(n)


def whole_text(n: int) -> str:
    """Return the JSON text of a whole number."""
    return json.dumps(whole(n))


def _maybe(at: datetime | None) -> int | None:
    return None if at is None else to_ms(at)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
