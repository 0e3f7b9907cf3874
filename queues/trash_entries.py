"""Entries of the trash as they are read: what each says, as far as it can be read and may be shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from queues import changes, ids, standing
from queues.attached import items as attached_items
from queues.config import Config
from queues.errors import NewerFormat, QueueError, StoreError, Unreadable
from queues.foreign import parse_id
from queues.item import Item
from queues.unreadable import UNREADABLE, why

#: A week: an operator who comes back from a long weekend can still undo.
KEPT_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashEntry:
    """Something that an act removed or changed."""

    id: str
    #: `items`: what an act did to one or more items, to be undone as one. Of what is `unreadable` no more is known than
    #: its id, when it came in, when it is to go and why it can not be read.
    what: Literal["queue", "item", "items", "unreadable"]
    #: The queue's number, the same through renames.
    queue_id: int
    #: The queue's name when it was removed.
    queue: str
    #: The item; None for a queue or a chunk.
    item: Item | None
    #: Items concerned.
    count: int
    by: str
    at: datetime
    #: It may be swept afterwards.
    deadline: datetime
    restored: bool
    #: What was done: pop, delete, move, reprioritise, edit, purge, push, delete_queue.
    act: str = ""
    #: The name of the queue that items were moved to.
    to: str | None = None
    #: The numbers of the queues that undoing it changes, as of now: an attached one may have been attached anew.
    reaches: tuple[int, ...] = ()
    #: The queue's rules of redaction as they are now; of a deleted queue as they were.
    redact: tuple[str, ...] = ()
    #: Why it can not be read; empty: it can.
    damage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashPage:
    """Trash entries, newest first."""

    entries: tuple[TrashEntry, ...]
    #: Pass it as `after=` for older entries; None when these are the oldest.
    cursor: str | None
    #: Entries that were looked at for this page.
    looked: int = 0
    #: Whether the page after the cursor holds something; else there are older ones, and nobody has looked at them.
    certain: bool = True


def readable(
    trash_id: bytes,
    header: dict[str, Any] | Exception,
    value: bytes,
    rules: Mapping[int, bytes | None],
    reaches: tuple[int, ...] = (),
) -> TrashEntry:
    """Return an entry; what of it can not be read, or not be hidden as its queue's rules say, is left out."""
    if isinstance(header, Exception):
        return _damaged(trash_id, header)
    try:
        return entry_of(trash_id, header, value, rules_of(header, rules[header["queue_id"]]), reaches)
    except UNREADABLE as error:
        return _damaged(trash_id, error)


def _damaged(trash_id: bytes, error: Exception) -> TrashEntry:
    came_ms = ids.minted_ms(trash_id)
    return TrashEntry(
        id=trash_id.hex(),
        what="unreadable",
        queue_id=0,
        queue="",
        item=None,
        count=0,
        by="",
        at=ids.at(came_ms),
        deadline=ids.at(came_ms + KEPT_MS),
        restored=False,
        damage=why(error),
    )


@contextmanager
def telling() -> Iterator[None]:
    """Raise `Unreadable` for an entry that can not be read."""
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, (QueueError, StoreError)) and not isinstance(error, NewerFormat):
            raise
        raise Unreadable("This entry of the trash can not be read. {why}", why=why(error)) from error


def entry_of(
    trash_id: bytes, header: dict[str, Any], value: bytes, redact: tuple[str, ...], reaches: tuple[int, ...] = ()
) -> TrashEntry:
    """Return an entry as its record says it."""
    return TrashEntry(
        id=trash_id.hex(),
        what=header["what"],
        queue_id=header["queue_id"],
        queue=header["queue"],
        item=item_of(header, value) if header["what"] == "item" else None,
        count=header["items"],
        by=header["by"],
        at=ids.at(ids.minted_ms(trash_id)),
        deadline=ids.at(header["deadline"]),
        restored=header["restored"],
        act=header.get("act", ""),
        to=header["to"]["name"] if header.get("to") else None,
        reaches=reaches,
        redact=redact,
    )


def item_of(header: dict[str, Any], value: bytes) -> Item:
    """Return the item that a record is about."""
    if "foreign" in header:
        return attached_items.as_item(suffix_of(header["item"]), value, fifo=header["foreign"]["fifo"])
    if "place" in header and header["place"]["state"] != "ready":
        there = changes.standing_of(header["place"], changes.stored_of(header["record"], value))
        return replace(standing.as_item(there, fifo=header["priority"] is None), priority=header["priority"])
    return Item(
        id=header["item"],
        priority=header["priority"],
        count=header["count"],
        value=value,
        pushed_at=ids.minted_at(bytes.fromhex(header["item"])),
        size=len(value),
        attempts=header["attempts"],
    )


def rules_of(header: dict[str, Any], config: bytes | None) -> tuple[str, ...]:
    """Return the rules of an entry's queue: by its config, or by the one that lies in the trash with it."""
    if config is not None:
        return Config.decode(config).redact
    return tuple(header.get("config", {}).get("redact", ())) or tuple(header.get("redact", ()))


def suffix_of(item_id: str) -> bytes:
    """Return the key of an item of an attached queue behind its prefix."""
    suffix = parse_id(item_id)
    assert suffix is not None
    return suffix
