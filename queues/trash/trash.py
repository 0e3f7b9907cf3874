"""The trash: what operators' acts removed, kept with a deadline so that every one of them can be undone.

A deleted queue stays where it is: only its name and config go, into its trash record, so that deleting and
restoring cost the same at any depth; so does a purged generation. An item's record holds its whole key and value. What
acts changed about several items lies beside their record (see `queues.items.undo_log`); so does a value too large for
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from queues.context import StoreContext
from queues.errors import (
    AlreadyRestored,
    BadTime,
    KeyTooLarge,
    TrashNotFound,
)
from queues.items import undo_log
from queues.items.equal_ids import refuse_minted
from queues.items.stored_item import ATTACHED, StoredItem
from queues.items.transition import Change
from queues.kv.port import MAX_KEY_SIZE, ReadTransaction, Transaction
from queues.model import ids, paging, records
from queues.model.config import Config
from queues.model.duration import KEEP, Duration, seconds_of
from queues.model.item import Item
from queues.trash.entries import KEPT_MS, Asked, Looking, TrashEntry, TrashPage, suffix_of, telling
from queues.trash.restore import Restored, Restoring

__all__ = ["KEPT_MS", "Restored", "Trash", "TrashEntry", "TrashPage"]

#: Bytes of a value that a record holds itself; others write larger ones than we do.
_INLINE = records.MAX_VALUE_SIZE


class Trash:
    """The trash of one store."""

    def __init__(self, context: StoreContext, *, keep: Duration | None = None) -> None:
        """Raise `BadTime` for a time to keep things that is below zero or longer than the store's own."""
        seconds = KEPT_MS / 1000 if keep is None else seconds_of(keep, KEEP, endless=True)
        if seconds > KEPT_MS / 1000:
            raise BadTime(
                "The trash keeps things for 0 seconds to {days} days.",
                days=KEPT_MS // 86_400_000,
            )
        self._context = context
        #: Milliseconds for which it keeps what is put into it from here.
        self.keep_ms = int(seconds * 1000)

    @property
    def keeps(self) -> bool:
        """Say whether it keeps at all what is put into it from here."""
        return self.keep_ms > 0

    def put_item(
        self,
        tr: Transaction,
        trash_id: bytes,
        config: Config,
        item: Item,
        *,
        by: str,
        act: str = "pop",
        there: StoredItem | None = None,
    ) -> None:
        """Record an item that `tr` takes, and where it stood, unless nothing is kept."""
        if self.keeps:
            self._refuse_taken(tr, [trash_id])
            self._put_item(tr, trash_id, config, item, by=by, act=act, there=there)

    def put_each(
        self, tr: Transaction, trash_ids: Sequence[bytes], config: Config, items: Sequence[Item], *, by: str
    ) -> None:
        """Record items that `tr` takes, each by itself, unless nothing is kept."""
        if self.keeps:
            used = trash_ids[: len(items)]
            self._refuse_taken(tr, used)
            for trash_id, item in zip(used, items, strict=True):
                self._put_item(tr, trash_id, config, item, by=by, act="pop", there=None)

    def _put_item(
        self,
        tr: Transaction,
        trash_id: bytes,
        config: Config,
        item: Item,
        *,
        by: str,
        act: str,
        there: StoredItem | None,
    ) -> None:
        header = {
            "what": "item",
            "act": act,
            "queue_id": config.id,
            "queue": config.name,
            "item": item.id,
            "priority": item.priority,
            "count": item.count,
            "attempts": item.attempts,
            "items": 1,
            "by": by,
        }
        if there is not None and there.state != ATTACHED:
            header |= {"place": undo_log.place_of(there)}
        if config.prefix is not None:
            header |= _foreign(config, [item])
        if config.redact:
            header |= {"redact": list(config.redact)}  # for when the queue is gone
        self._put(tr, trash_id, header, item.raw)

    def put_changes(
        self,
        tr: Transaction,
        trash_id: bytes,
        config: Config,
        changed: Sequence[Change],
        *,
        by: str,
        act: str,
        to: Config | None = None,
    ) -> None:
        """Record what `tr` changes about items of a queue, or where it moves them, unless nothing is kept."""
        if not self.keeps:
            return
        header = {
            "what": "items",
            "act": act,
            "queue_id": config.id,
            "queue": config.name,
            "items": len(changed),
            "by": by,
            "from": _reference(config),
            "to": None if to is None else _reference(to),
        }
        self._refuse_taken(tr, [trash_id])
        undo_log.log(tr, self._context.keyspace, trash_id, [(one.before, one.after) for one in changed])
        self._put(tr, trash_id, header, b"")

    def put_arrivals(
        self, tr: Transaction, trash_id: bytes, config: Config, arrived: Sequence[StoredItem], *, by: str
    ) -> None:
        """Record items that `tr` pushes, unless nothing is kept; undoing it takes them out again."""
        if not self.keeps:
            return
        header = {
            "what": "items",
            "act": "push",
            "queue_id": config.id,
            "queue": config.name,
            "items": len(arrived),
            "by": by,
            "from": _reference(config),
            "to": None,
        }
        self._refuse_taken(tr, [trash_id])
        undo_log.log(tr, self._context.keyspace, trash_id, [(None, there) for there in arrived])
        self._put(tr, trash_id, header, b"")

    def put_generation(
        self, tr: Transaction, trash_id: bytes, config: Config, generation: int, *, depth: int, by: str
    ) -> None:
        """Record a generation that `tr` takes out of a queue: a sweep clears it, at once where nothing is kept."""
        header = {
            "what": "items",
            "act": "purge",
            "queue_id": config.id,
            "queue": config.name,
            "items": depth,
            "by": by,
            "generation": generation,
        }
        self._refuse_taken(tr, [trash_id])
        self._put(tr, trash_id, header, b"")

    def put_items(
        self,
        tr: Transaction,
        trash_id: bytes,
        config: Config,
        items: Sequence[Item],
        *,
        by: str,
        act: str = "purge",
    ) -> None:
        """Record the items of an attached queue that `tr` takes at once, unless nothing is kept."""
        if not self.keeps:
            return
        keyspace = self._context.keyspace
        header = {
            "what": "items",
            "act": act,
            "queue_id": config.id,
            "queue": config.name,
            "items": len(items),
            "by": by,
        }
        self._refuse_taken(tr, [trash_id])
        for n, item in enumerate(items):
            tr.set(keyspace.trash_part(trash_id, n, undo_log.KEY), suffix_of(item.id))
            tr.set(keyspace.trash_part(trash_id, n, undo_log.VALUE), item.raw)
        self._put(tr, trash_id, header | _foreign(config, items), b"")

    def put_queue(self, tr: Transaction, trash_id: bytes, config: Config, *, depth: int, by: str) -> None:
        """Record a queue whose name and config `tr` removes: a sweep clears it, at once where nothing is kept."""
        header = {
            "what": "queue",
            "act": "delete_queue",
            "queue_id": config.id,
            "queue": config.name,
            "config": config.header(),
            "items": depth,
            "by": by,
        }
        self._refuse_taken(tr, [trash_id])
        self._put(tr, trash_id, header, b"")

    def _refuse_taken(self, tr: Transaction, trash_ids: Sequence[bytes]) -> None:
        """Raise `IdTaken` when something lies in the trash under one of these new ids."""
        refuse_minted(tr, map(self._context.keyspace.trash, trash_ids))

    def _put(self, tr: Transaction, trash_id: bytes, header: dict[str, Any], value: bytes) -> None:
        tr.use_reserve()  # a full store can still be emptied by hand
        keyspace = self._context.keyspace
        deadline_ms = ids.minted_ms(trash_id) + self.keep_ms
        header |= {"deadline": deadline_ms, "restored": False}
        if len(value) > _INLINE:
            tr.set(keyspace.trash_part(trash_id, 0, undo_log.VALUE), value)
            header, value = header | {"apart": True}, b""
        tr.set(keyspace.trash(trash_id), records.encode(header, value))
        tr.set(keyspace.trash_deadline(deadline_ms, trash_id), b"")

    def get(self, trash_id: str, *, tr: ReadTransaction | None = None) -> TrashEntry:
        """Return one entry; raise `TrashNotFound`, `Unreadable`."""
        rand = _parse(trash_id)
        return self._context.read(lambda tr: Looking(tr, self._context.keyspace).entry(rand), tr)

    def entries(
        self,
        *,
        queue: str | None = None,
        by: str | None = None,
        act: str | None = None,
        but: str | None = None,
        limit: int = 50,
        after: str | None = None,
        visible: Callable[[str], bool] | None = None,
        tr: ReadTransaction | None = None,
    ) -> TrashPage:
        """Return a page of what can still be restored, newest first; it may hold fewer than `limit`.

        `queue` keeps entries of the queue that has this name or had it when they were written, `by` those of one
        person, `act` those of one act, `but` all except those of one; they are looked for in bounded steps, so such a
        page may be empty and have a cursor. `looked` is how many entries were looked at. What cannot be read is listed
        where nothing is asked for.
        After a full page the next entry that fits is looked for too, so that its cursor leads to something; `certain`
        says whether that was found. `visible` says by the name that a queue had whether it is listed.
        """
        before = paging.before_of(after)
        asked = Asked(queue=queue, by=by, act=act, but=but, visible=visible)
        return self._context.read(
            lambda tr: Looking(tr, self._context.keyspace).page(asked, before=before, limit=limit), tr
        )

    def restore(
        self,
        tr: Transaction,
        trash_id: str,
        *,
        partial: bool = False,
        by: str = "",
        at_ms: int = 0,
        into: bytes | None = None,
    ) -> Restored:
        """Undo what an entry holds: items stand under their same keys again, or a whole queue under its name.

        `partial` leaves out items that have gone on since; `by` and `at_ms` are told to whoever comes second. What an
        act had pushed goes into a new entry of the id `into`, if there is one. Raises `TrashNotFound`, `Unreadable`,
        `AlreadyRestored`, `QueueNotFound` (the items' queue is gone), `QueueExists` (another queue has taken the name),
        `PlaceTaken` (others wrote another item at the same key of an attached queue), `ItemGoneOn`, `StillMerging`.
        """
        rand = _parse(trash_id)
        with telling():
            header, value = Looking(tr, self._context.keyspace).record(rand)
            if header["restored"]:
                raise _already(header)
            tr.use_reserve()  # values move, they do not come in
            restored = Restoring(tr, self._context.keyspace).run(rand, header, value, partial=partial)
        if restored.lifted and into is not None:
            lifted = [Change(before=there, after=None) for there in restored.lifted]
            self.put_changes(tr, into, restored.config, lifted, by=by, act="delete")
        tr.clear_range(*self._context.keyspace.trash_parts(rand))
        # The record stays until its deadline, without the value, so that a second restore is told the truth.
        then = {"restored_by": by, "restored_at": at_ms} if by else {}
        tr.set(self._context.keyspace.trash(rand), records.encode(header | {"restored": True} | then))
        return restored


def _foreign(config: Config, items: Sequence[Item]) -> dict[str, Any]:
    """Return what a record says of an attached queue; raise `KeyTooLarge` for what could not be put back."""
    assert config.prefix is not None
    if any(len(config.prefix) + len(suffix_of(item.id)) > MAX_KEY_SIZE for item in items):
        raise KeyTooLarge(
            "This item's key has more than {most} bytes: it could not be put back, so it is not taken by hand.",
            most=MAX_KEY_SIZE,
        )
    return {"foreign": {"prefix": config.prefix.hex(), "fifo": config.fifo}}


def _reference(config: Config) -> dict[str, Any]:
    return {"id": config.id, "name": config.name, "prefix": None if config.prefix is None else config.prefix.hex()}


def _already(header: dict[str, Any]) -> AlreadyRestored:
    if "restored_by" not in header:
        return AlreadyRestored("This was restored already.")
    return already_restored(header["restored_by"], header["restored_at"])


def already_restored(by: str, at_ms: int) -> AlreadyRestored:
    """Say to whoever comes second who was first, and when."""
    when = ids.at(at_ms).strftime("%Y-%m-%d %H:%M:%S UTC")
    return AlreadyRestored("This was restored already, by {by} at {when}.", by=by, when=when)


def _parse(trash_id: str) -> bytes:
    rand = ids.parse(trash_id)
    if rand is None:
        raise TrashNotFound("This is no id of anything in the trash.")
    return rand
