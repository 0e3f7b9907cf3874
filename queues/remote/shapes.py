"""Items, leases and configs from the JSON of the HTTP API."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues.bulk.bulk_job import Job
from queues.consumers.consumer import Consumer, Consumers
from queues.errors import Words
from queues.health import Code, Level, Reason, TargetRules, Trend, Verdict
from queues.items.scan import Query
from queues.items.stored_item import StoredItem
from queues.keys.queue_keys import STATES, ready_suffix
from queues.model import foreign_tuples
from queues.model.attempt_log import LOG, Entry, entry
from queues.model.config import Config, Pause
from queues.model.foreign_tuples import ForeignKey
from queues.model.ids import to_ms
from queues.model.item import Item
from queues.model.limits import check_limits
from queues.status.site_protocol import JudgedQueue, QueueLook
from queues.status.status import QueueStatus, Totals, unreadable_status

Shape = Mapping[str, Any]


def time_of(text: str | None) -> datetime | None:
    """Return a time."""
    return None if text is None else datetime.fromisoformat(text)


def text_of(moment: datetime | None) -> str | None:
    """Return a time as the API has it."""
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def shape_of_query(query: Query) -> dict[str, Any]:
    """Return what is looked for, as the API names it."""
    names = {"text": "match", "item_id": "id"}
    return {
        names.get(name, name): value.isoformat() if isinstance(value, datetime) else value
        for name, value in query.named.items()
    }


def value_of(shape: Shape) -> bytes:
    """Return the value of an item. Rules of redaction may hide parts of it."""
    if "value_base64" in shape:
        return base64.b64decode(shape["value_base64"])
    return str(shape.get("value", shape.get("value_redacted", ""))).encode()


def item_of(shape: Shape, config: Config, raw: bytes | None = None) -> Item:
    """Return an item of a queue; `raw` is its value where that is not told."""
    value = value_of(shape) if raw is None else raw
    lease = str(shape.get("lease") or "")
    key = foreign_tuples.parse_id(shape["id"]) if config.prefix is not None else None
    return Item(
        id=shape["id"],
        priority=shape["priority"],
        count=shape["count"],
        raw=value,
        pushed_at=time_of(shape["pushed_at"]),
        size=shape.get("size", len(value)),
        state=shape["state"],
        ready_at=time_of(shape.get("ready_at")),
        attempts=shape.get("attempts", 0),
        attempt_records=entries_of(shape),
        due_at=time_of(shape.get("due_at")),
        leased_at=time_of(shape.get("leased_at")),
        expires_at=time_of(shape.get("expires_at")),
        lease=lease.partition("-")[2][:8],
        worker=shape.get("worker") or "",
        died_at=time_of(shape.get("died_at")),
        finished_at=time_of(shape.get("finished_at")),
        reason=shape.get("reason") or "",
        hidden=raw is None and "value_redacted" in shape,
        foreign=None if key is None else ForeignKey(key, config.kind == "fifo"),
        codec=config.values,
    )


def entries_of(shape: Shape) -> tuple[Entry, ...]:
    """Return the log of attempts as stores keep it."""
    return tuple(
        entry(
            number=one["number"],
            worker=one["worker"] or "",
            began_ms=to_ms(datetime.fromisoformat(one["began_at"])),
            ended_ms=to_ms(datetime.fromisoformat(one["ended_at"])),
            expired=one["expired"],
            died=one["died"],
            error=one["error"] or "",
            traceback=one["traceback"] or "",
        )
        for one in shape.get("attempt_log", ())
    )


def leased_of(shape: Shape, token: str) -> StoredItem:
    """Return a leased item as a `LeaseRequest` is answered."""
    rand, nonce = (bytes.fromhex(part) for part in token.split("-"))
    times = {name: to_ms(datetime.fromisoformat(shape[f"{name}_at"])) for name in ("leased", "expires")}
    header: dict[str, Any] = {**times, "nonce": nonce.hex(), "worker": shape["worker"] or ""}
    log = entries_of(shape)
    return StoredItem(
        state="leased",
        rand=rand,
        generation=0,
        suffix=ready_suffix(shape["priority"], shape["count"], rand),
        attempts=shape["attempts"],
        value=value_of(shape),
        header=header | ({LOG: list(log)} if log else {}),
        nonce=nonce,
    )


def config_of(shape: Shape) -> Config:
    """Return the config of a queue, as far as this caller may read it."""
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in (shape.get("settings") or {}).items()
    }
    settings.setdefault("closed", bool(shape.get("closed")))
    prefix = shape["prefix"]
    return Config(
        id=shape["id"],
        name=shape["queue"],
        kind=shape["kind"],
        priority_type=shape["priority_type"] or "int",
        codec=shape["codec"],
        generations=(0,) if prefix is None else (),
        base=0,
        edges=tuple(shape.get("bands") or ()),
        pause=pause_of(shape["pause"]),
        created_ms=0,
        prefix=None if prefix is None else bytes.fromhex(prefix),
        **settings,
    )


def consumer_of(shape: Shape) -> Consumer:
    """Return a consumer."""
    times = {name: time_of(shape[name]) for name in ("since", "last_take", "heard")}
    return Consumer(**{**shape, **times, "worker": shape["worker"] or "", "id": ""})


def consumers_of(shape: Shape) -> Consumers:
    """Return the consumers of a queue, as far as they are known."""
    last = shape["last_consumer"]
    return Consumers(
        live=tuple(map(consumer_of, shape["consumers"] or ())), ended=None if last is None else consumer_of(last)
    )


def judged_of(shape: Shape) -> JudgedQueue:
    """Return the status of a queue with its verdict and rates."""
    return JudgedQueue(_status_of(shape), _verdict_of(shape["verdict"]), shape["rate_in"], shape["rate_out"])


def _status_of(shape: Shape) -> QueueStatus:
    if shape["unreadable"]:
        return unreadable_status(shape["id"], shape["queue"], shape["change"], shape["unreadable"])
    attached, config = shape["prefix"] is not None, config_of(shape)
    low, high = (None if shape[end] is None else item_of(shape[end], config) for end in ("min", "max"))
    counts = {state: shape[state] or 0 for state in STATES}
    return QueueStatus(
        id=shape["id"],
        name=shape["queue"],
        kind=shape["kind"],
        priority_type=shape["priority_type"] or "int",
        change=shape["change"],
        totals=Totals(**counts, traffic={} if attached else {"push": shape["arrived"]}),
        oldest=time_of(shape["oldest"]),
        min=low,
        max=high,
        pause=pause_of(shape["pause"]),
        closed=shape["closed"],
        next_due=time_of(shape["next_due"]),
        next_expiry=time_of(shape["next_expiry"]),
        drift=shape["drift"],
        staging=shape["staging"],
        note=shape["note"],
        runbook=shape["runbook"],
        consumers=consumers_of(shape),
        attached=attached,
        prefix=bytes.fromhex(shape["prefix"]) if attached else None,
        counted_at=time_of(shape["counted_at"]),
        codec=shape["codec"],
    )


def _verdict_of(shape: Shape) -> Verdict:
    reasons = tuple(
        Reason(
            code=Code(one["code"]),
            level=Level[one["level"].upper()],
            since=_seconds(one["since"]),
            value=one["value"],
            limit=one["limit"],
            until=None if one.get("until") is None else _seconds(one["until"]),
        )
        for one in shape["reasons"]
    )
    return Verdict(
        level=Level[shape["level"].upper()],
        since=_seconds(shape["since"]),
        reasons=reasons,
        trend=Trend(shape["trend"]),
        clears_in=shape["clears_in"],
        grows_by=shape["grows_by"],
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJob(Job):
    """A bulk job with the speed that a server tells."""

    told_speed: float | None
    told_seconds_left: float | None

    @property
    def speed(self) -> float | None:
        """Items met a second, lately; None when it is not known."""
        return self.told_speed

    def seconds_left(self) -> float | None:
        """Return in how many seconds it will have met all. None when that is not known."""
        return self.told_seconds_left


def job_of(shape: Shape) -> Job:
    """Return a bulk job."""
    alike = {name: shape[name] for name in Job.__slots__ if name in shape}
    other = {
        "id": shape["job"],
        "done": shape["items"],
        "started_ms": _ms(shape["started_at"]),
        "ended_ms": _ms(shape["ended_at"]),
        "runner": shape["runner"] or "",
        "failure": shape["failure"] or "",
        "of": shape["undoes"],
        "undo": shape["undone_by"],
    }
    return RemoteJob(**alike | other, told_speed=shape["speed"], told_seconds_left=shape["seconds_left"])


def _ms(text: str | None) -> int | None:
    return None if text is None else to_ms(datetime.fromisoformat(text))


def rules_of(shape: Shape) -> TargetRules:
    """Return the targets of queues by pattern."""
    patterns = {one["pattern"]: check_limits(one["targets"]) for one in shape["patterns"]}
    unreadable = [(one["pattern"], Words(one["reason"])) for one in shape["unreadable"]]
    return TargetRules(patterns, check_limits(shape["defaults"]), unreadable=unreadable)


def look_of(shape: Shape, config: Config) -> QueueLook | None:
    """Return a look at a queue; None: it is as it was."""
    if shape["items"] is None:
        return None
    return QueueLook(
        at=datetime.fromisoformat(shape["at"]),
        change=shape["change"],
        traffic=shape["traffic"],
        items={one["id"]: item_of(one, config) for one in shape["items"]},
        whole=shape["whole"],
        pause=pause_of(shape["pause"]),
    )


def pause_of(shape: Shape | None) -> Pause | None:
    """Return a pause."""
    if shape is None:
        return None
    since = datetime.fromisoformat(shape["since"])
    return Pause(reason=shape["reason"], by=shape["by"] or "", since=since, until=time_of(shape["until"]))
