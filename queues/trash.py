"""The trash: what operators' acts removed, kept with a deadline so that every one of them can be undone.

A deleted queue stays where it is: only its name and config go, into its trash record, so that deleting and
restoring cost the same at any depth. A popped item's record holds its whole key and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from queues import directory, ids, ready, records
from queues.backing import Backing
from queues.config import Config
from queues.errors import AlreadyRestored, BadCursor, QueueNotFound, TrashNotFound
from queues.item import Item
from queues.kv.port import ReadTransaction, Transaction
from queues.tally import wake

#: A week: an operator who comes back from a long weekend can still undo.
KEPT_MS = 7 * 24 * 3600 * 1000
MAX_PAGE = 1_000
#: Reads of one page before it is handed out as it is, when most of the trash was restored.
_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashEntry:
    """Something that an act removed."""

    id: str
    what: Literal["queue", "item"]
    #: The queue's number, the same through renames.
    queue_id: int
    #: The queue's name when it was removed.
    queue: str
    #: The item; None for a queue.
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
        self._put(tr, trash_id, header, item.value)

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
            entries: list[TrashEntry] = []
            seen = before
            for _ in range(_STEPS):
                pairs = tr.get_range(*keyspace.all_trash(seen), limit=limit, reverse=True).wait()
                for key, record in pairs:
                    seen = keyspace.last_id(key)
                    header, value = records.decode(record)
                    if not header["restored"]:
                        entries.append(_entry(seen, header, value))
                    if len(entries) == limit:
                        break
                else:
                    if len(pairs) == limit:
                        continue
                break
            more = seen is not None and tr.get_key(*keyspace.all_trash(seen)).wait() is not None
            return TrashPage(entries=tuple(entries), cursor=seen.hex() if seen is not None and more else None)

        return self._backing.read(look, tr)

    def restore(self, tr: Transaction, trash_id: str) -> tuple[Config, Item | None]:
        """Bring back what an entry holds: an item under its same key, or a whole queue under its name.

        Returns the queue's config and the item. Raises `TrashNotFound`, `AlreadyRestored`, `QueueNotFound` (the
        item's queue is gone), `QueueExists` (another queue has taken the name).
        """
        rand = _parse(trash_id)
        header, value = self._read(tr, rand)
        if header["restored"]:
            raise AlreadyRestored("This was restored already.")
        config, item = (
            self._restore_queue(tr, header)
            if header["what"] == "queue"
            else self._restore_item(tr, rand, header, value)
        )
        tr.use_reserve()  # the value moves, it does not come in
        # The record stays until its deadline, without the value, so that a second restore is told the truth.
        tr.set(self._backing.keyspace.trash(rand), records.encode(header | {"restored": True}))
        return config, item

    def _restore_queue(self, tr: Transaction, header: dict[str, Any]) -> tuple[Config, None]:
        keyspace = self._backing.keyspace
        config = Config.from_header(header["config"])
        directory.add(tr, keyspace, config)
        wake(tr, keyspace.queue(config.id))
        return config, None

    def _restore_item(
        self, tr: Transaction, trash_id: bytes, header: dict[str, Any], value: bytes
    ) -> tuple[Config, Item]:
        keyspace = self._backing.keyspace
        record = tr.get(keyspace.config(header["queue_id"])).wait()
        if record is None:
            raise QueueNotFound(header["queue"])
        config = Config.decode(record)
        item = _item(header, value)
        ready.put_back(tr, keyspace.queue(config.id), config, item)
        return config, item

    def _read(self, tr: ReadTransaction, trash_id: bytes) -> tuple[dict[str, Any], bytes]:
        record = tr.get(self._backing.keyspace.trash(trash_id)).wait()
        if record is None:
            raise TrashNotFound("Nothing of this id is in the trash; its time may have run out.")
        return records.decode(record)


def _parse(trash_id: str) -> bytes:
    rand = ids.parse(trash_id)
    if rand is None:
        raise TrashNotFound("This is no id of anything in the trash.")
    return rand


def _item(header: dict[str, Any], value: bytes) -> Item:
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
