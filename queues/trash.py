"""The trash: what operators' acts removed, kept with a deadline so that every one of them can be undone.

A deleted queue stays where it is: only its name and config go, into its trash record, so that deleting and
restoring cost the same at any depth. A popped item's record holds its whole key and value. A chunk of a purge has one
record, and each of its items lies beside it; so does a value that is too large for a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from queues import directory, ids, ready, records
from queues.attached import items as attached_items
from queues.attached import prefix as prefixes
from queues.backing import Backing
from queues.config import Config
from queues.errors import AlreadyRestored, BadCursor, KeyTooLarge, QueueNotFound, TrashNotFound
from queues.foreign import parse_id
from queues.item import Item
from queues.keyspace import AttachedKeys
from queues.kv.port import MAX_KEY_SIZE, KeyValue, ReadTransaction, Result, Transaction
from queues.kv.results import Ready
from queues.tally import wake

#: A week: an operator who comes back from a long weekend can still undo.
KEPT_MS = 7 * 24 * 3600 * 1000
MAX_PAGE = 1_000
#: Bytes of a value that a record holds itself; others write larger ones than we do.
_INLINE = 90_000
#: Reads of one page before it is handed out as it is, when most of the trash was restored.
_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashEntry:
    """Something that an act removed."""

    id: str
    #: `items`: a chunk of a purge.
    what: Literal["queue", "item", "items"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashPage:
    """Trash entries, newest first."""

    entries: tuple[TrashEntry, ...]
    #: Pass it as `after=` for older entries; None when these are the oldest.
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came back from the trash."""

    #: Of the queue that came back, or that holds what came back.
    config: Config
    #: The item; None for a queue or a chunk.
    item: Item | None
    #: Items that came back.
    count: int


class Trash:
    """The trash of one store."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def put_item(self, tr: Transaction, trash_id: bytes, config: Config, item: Item, *, by: str) -> None:
        """Record an item that `tr` takes."""
        header = {
            "what": "item",
            "queue_id": config.id,
            "queue": config.name,
            "item": item.id,
            "priority": item.priority,
            "count": item.count,
            "attempts": item.attempts,
            "items": 1,
            "by": by,
        }
        if config.prefix is not None:
            header |= _foreign(config, [item])
        self._put(tr, trash_id, header, item.value)

    def put_items(self, tr: Transaction, trash_id: bytes, config: Config, items: Sequence[Item], *, by: str) -> None:
        """Record the items of an attached queue that `tr` takes at once."""
        keyspace = self._backing.keyspace
        header = {"what": "items", "queue_id": config.id, "queue": config.name, "items": len(items), "by": by}
        for n, item in enumerate(items):
            tr.set(keyspace.trash_part(trash_id, n, _KEY), _suffix(item.id))
            tr.set(keyspace.trash_part(trash_id, n, _VALUE), item.value)
        self._put(tr, trash_id, header | _foreign(config, items), b"")

    def put_queue(self, tr: Transaction, trash_id: bytes, config: Config, *, depth: int, by: str) -> None:
        """Record a queue whose name and config `tr` removes."""
        header = {
            "what": "queue",
            "queue_id": config.id,
            "queue": config.name,
            "config": config.header(),
            "items": depth,
            "by": by,
        }
        self._put(tr, trash_id, header, b"")

    def _put(self, tr: Transaction, trash_id: bytes, header: dict[str, Any], value: bytes) -> None:
        tr.use_reserve()  # a full store can still be emptied by hand
        keyspace = self._backing.keyspace
        deadline_ms = ids.minted_ms(trash_id) + KEPT_MS
        header |= {"deadline": deadline_ms, "restored": False}
        if len(value) > _INLINE:
            tr.set(keyspace.trash_part(trash_id, 0, _VALUE), value)
            header, value = header | {"apart": True}, b""
        tr.set(keyspace.trash(trash_id), records.encode(header, value))
        tr.set(keyspace.trash_deadline(deadline_ms, trash_id), b"")

    def get(self, trash_id: str, *, tr: ReadTransaction | None = None) -> TrashEntry:
        """Return one entry; raise `TrashNotFound`."""
        rand = _parse(trash_id)
        return self._backing.read(lambda tr: _entry(rand, *self._read(tr, rand)), tr)

    def entries(self, *, limit: int = 50, after: str | None = None, tr: ReadTransaction | None = None) -> TrashPage:
        """Return a page of what can still be restored, newest first; it may hold fewer than `limit`."""
        before = None if after is None else ids.parse(after)
        if after is not None and before is None:
            raise BadCursor("This page address is damaged; start again from the first page.")
        limit = max(1, min(limit, MAX_PAGE))
        keyspace = self._backing.keyspace

        def look(tr: ReadTransaction) -> TrashPage:
            found: list[tuple[bytes, dict[str, Any], Result[bytes | None]]] = []
            seen = before
            for _ in range(_STEPS):
                pairs = tr.get_range(*keyspace.all_trash(seen), limit=limit, reverse=True).wait()
                for key, record in pairs:
                    seen = keyspace.last_id(key)
                    header, value = records.decode(record)
                    if not header["restored"]:
                        found.append((seen, header, self._value(tr, seen, header, value)))
                    if len(found) == limit:
                        break
                else:
                    if len(pairs) == limit:
                        continue
                break
            entries = tuple(_entry(trash_id, header, read.wait() or b"") for trash_id, header, read in found)
            more = seen is not None and tr.get_key(*keyspace.all_trash(seen)).wait() is not None
            return TrashPage(entries=entries, cursor=seen.hex() if seen is not None and more else None)

        return self._backing.read(look, tr)

    def restore(self, tr: Transaction, trash_id: str) -> Restored:
        """Bring back what an entry holds: items under their same keys, or a whole queue under its name.

        Raises `TrashNotFound`, `AlreadyRestored`, `QueueNotFound` (the item's queue is gone), `QueueExists` (another
        queue has taken the name), `PlaceTaken` (others wrote another item at the same key of an attached queue).
        """
        rand = _parse(trash_id)
        header, value = self._read(tr, rand)
        if header["restored"]:
            raise AlreadyRestored("This was restored already.")
        restored = (
            self._restore_queue(tr, header)
            if header["what"] == "queue"
            else self._restore_items(tr, rand, header, value)
            if "foreign" in header
            else self._restore_item(tr, header, value)
        )
        tr.clear_range(*self._backing.keyspace.trash_parts(rand))
        tr.use_reserve()  # the value moves, it does not come in
        # The record stays until its deadline, without the value, so that a second restore is told the truth.
        tr.set(self._backing.keyspace.trash(rand), records.encode(header | {"restored": True}))
        return restored

    def _restore_queue(self, tr: Transaction, header: dict[str, Any]) -> Restored:
        keyspace = self._backing.keyspace
        config = Config.from_header(header["config"])
        directory.add(tr, keyspace, config)
        wake(tr, keyspace.queue(config.id))
        return Restored(config=config, item=None, count=header["items"])

    def _restore_item(self, tr: Transaction, header: dict[str, Any], value: bytes) -> Restored:
        keyspace = self._backing.keyspace
        record = tr.get(keyspace.config(header["queue_id"])).wait()
        if record is None:
            raise QueueNotFound(header["queue"])
        config = Config.decode(record)
        item = _item(header, value)
        ready.put_back(tr, keyspace.queue(config.id), config, item)
        return Restored(config=config, item=item, count=1)

    def _restore_items(self, tr: Transaction, trash_id: bytes, header: dict[str, Any], value: bytes) -> Restored:
        """Write items of an attached queue back; one that was detached may be attached under another name by now."""
        keyspace, prefix = self._backing.keyspace, bytes.fromhex(header["foreign"]["prefix"])
        config = prefixes.owner(tr, keyspace, prefix)
        if config is None:
            raise QueueNotFound(header["queue"])
        one = header["what"] == "item"
        pairs = [(_suffix(header["item"]), value)] if one else self._parts(tr, trash_id)
        attached_items.put_back(tr, keyspace.queue(config.id), AttachedKeys(prefix), pairs)
        return Restored(config=config, item=_item(header, value) if one else None, count=len(pairs))

    def _parts(self, tr: ReadTransaction, trash_id: bytes) -> list[KeyValue]:
        begin, end = self._backing.keyspace.trash_parts(trash_id)
        pairs = tr.get_range(begin, end, limit=2 * ready.MAX_ITEMS).wait()
        # By number, then by part: each key is followed by its value.
        return [(suffix, value) for (_, suffix), (_, value) in zip(pairs[::2], pairs[1::2], strict=True)]

    def _value(
        self, tr: ReadTransaction, trash_id: bytes, header: dict[str, Any], value: bytes
    ) -> Result[bytes | None]:
        if header.get("apart"):
            return tr.get(self._backing.keyspace.trash_part(trash_id, 0, _VALUE))
        return Ready(value)

    def _read(self, tr: ReadTransaction, trash_id: bytes) -> tuple[dict[str, Any], bytes]:
        record = tr.get(self._backing.keyspace.trash(trash_id)).wait()
        if record is None:
            raise TrashNotFound("Nothing of this id is in the trash; its time may have run out.")
        header, value = records.decode(record)
        return header, self._value(tr, trash_id, header, value).wait() or b""


#: Parts of what lies beside a record; the names sort so.
_KEY, _VALUE = "k", "v"


def _foreign(config: Config, items: Sequence[Item]) -> dict[str, Any]:
    """Return what a record says of an attached queue; raise `KeyTooLarge` for what could not be put back."""
    assert config.prefix is not None
    if any(len(config.prefix) + len(_suffix(item.id)) > MAX_KEY_SIZE for item in items):
        raise KeyTooLarge(
            f"This item's key has more than {MAX_KEY_SIZE} bytes: it could not be put back, so it is not taken by hand."
        )
    return {"foreign": {"prefix": config.prefix.hex(), "fifo": config.fifo}}


def _suffix(item_id: str) -> bytes:
    suffix = parse_id(item_id)
    assert suffix is not None
    return suffix


def _parse(trash_id: str) -> bytes:
    rand = ids.parse(trash_id)
    if rand is None:
        raise TrashNotFound("This is no id of anything in the trash.")
    return rand


def _item(header: dict[str, Any], value: bytes) -> Item:
    if "foreign" in header:
        return attached_items.as_item(_suffix(header["item"]), value, fifo=header["foreign"]["fifo"])
    return Item(
        id=header["item"],
        priority=header["priority"],
        count=header["count"],
        value=value,
        pushed_at=ids.minted_at(bytes.fromhex(header["item"])),
        size=len(value),
        attempts=header["attempts"],
    )


def _entry(trash_id: bytes, header: dict[str, Any], value: bytes) -> TrashEntry:
    return TrashEntry(
        id=trash_id.hex(),
        what=header["what"],
        queue_id=header["queue_id"],
        queue=header["queue"],
        item=_item(header, value) if header["what"] == "item" else None,
        count=header["items"],
        by=header["by"],
        at=ids.at(ids.minted_ms(trash_id)),
        deadline=ids.at(header["deadline"]),
        restored=header["restored"],
    )
