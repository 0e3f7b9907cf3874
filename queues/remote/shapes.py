"""Items, leases and configs from the JSON of the HTTP API."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from queues.items.stored_item import StoredItem
from queues.keys.queue_keys import ready_suffix
from queues.model.attempts import LOG, Entry, entry
from queues.model.codec import Codec
from queues.model.config import Config, Pause
from queues.model.ids import to_ms
from queues.model.item import Item

Shape = Mapping[str, Any]


def time_of(text: str | None) -> datetime | None:
    """Return a time."""
    return None if text is None else datetime.fromisoformat(text)


def value_of(shape: Shape) -> bytes:
    """Return the value of an item, as far as it is told: rules of redaction may hide parts of it."""
    if "value_base64" in shape:
        return base64.b64decode(shape["value_base64"])
    return str(shape.get("value", shape.get("value_redacted", ""))).encode()


def item_of(shape: Shape, codec: Codec | None, raw: bytes | None = None) -> Item:
    """Return an item; `raw` is its value where that is not told."""
    value = value_of(shape) if raw is None else raw
    lease = str(shape.get("lease") or "")
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
        reason=shape.get("reason") or "",
        codec=codec,
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
    """Return the config of a queue, as far as this caller is told of it."""
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


def pause_of(shape: Shape | None) -> Pause | None:
    """Return a pause."""
    if shape is None:
        return None
    since = datetime.fromisoformat(shape["since"])
    return Pause(reason=shape["reason"], by=shape["by"] or "", since=since, until=time_of(shape["until"]))
