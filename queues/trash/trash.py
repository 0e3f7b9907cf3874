"""The trash: what actions removed or changed, kept until a deadline, so that every action can be undone.

A deleted queue stays in place: only its name and config are moved into its trash record, so that deleting and restoring
cost the same at any depth; so does a purged generation. The record of one item holds its whole key and value. Changes
of several items lie beside their record, and so does a value too large for it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import (
    AlreadyRestored,
    BadTime,
    KeyTooLarge,
    QueueNotFound,
    TrashNotFound,
)
from queues.items.equal_ids import minted_before
from queues.items.state_machine import AnyChange, Change
from queues.items.stored_item import ATTACHED, StoredItem
from queues.keys.keyspace import Keyspace
from queues.kv.port import MAX_KEY_SIZE, ReadTransaction, Transaction
from queues.model import ids, paging, records
from queues.model.attempt_log import LOG
from queues.model.config import Config
from queues.model.duration import KEEP, Duration, seconds_of
from queues.model.item import Item
from queues.model.paging import RecordPage
from queues.trash.entries import KEPT_MS, PLACES, VALUE, Looking, TrashEntry, suffix_of, telling
from queues.trash.restore import Restored, Restoring

__all__ = ["KEPT_MS", "Restored", "Trash", "TrashEntry"]

#: Bytes of a value that a record holds itself, beside the log of its attempts and the rules of its queue.
_INLINE = 80_000


#: Milliseconds after which the deadline of a job that goes on is put off.
_RENEWED_MS = 3_600_000


class Trash:
    """The trash of one store."""

    def __init__(self, context: StoreContext, *, keep: Duration | None = None) -> None:
        """`keep` is how long it keeps what is put into it, at most and by default 7 days; raise `BadTime`."""
        seconds = KEPT_MS / 1000 if keep is None else seconds_of(keep, KEEP, endless=True)
        if seconds > KEPT_MS / 1000:
            raise BadTime(
                "The trash keeps things for 0 seconds to {days} days.",
                days=KEPT_MS // 86_400_000,
            )
        self._context = context
        #: Milliseconds for which it keeps what this object puts into it.
        self.keep_ms = int(seconds * 1000)

    @property
    def keeps(self) -> bool:
        """Whether it keeps what this object puts into it."""
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
        checked: bool = False,
    ) -> None:
        """Record an item that `tr` removes, and its place, unless nothing is kept; `checked`: the id is unused."""
        more: dict[str, Any] = {"priority": item.priority, "count": item.count, "attempts": item.attempts}
        if there is not None and there.state != ATTACHED:
            more["place"] = there.header_of_place()
        else:
            more |= {LOG: list(item.attempt_records)} if item.attempt_records else {}
            more |= {} if item.ready_at in (None, item.pushed_at) else {"since": ids.to_ms(item.ready_at)}
        if config.prefix is not None and self.keeps:
            more |= _foreign(config, item)
        if config.redact:
            more["redact"] = list(config.redact)  # for when the queue is gone
        more |= {"what": "item", "item": item.id}
        self._put(tr, trash_id, config, 1, more, act=act, by=by, value=item.raw, checked=checked)

    def put_each(
        self, tr: Transaction, trash_ids: Sequence[bytes], config: Config, items: Sequence[Item], *, by: str
    ) -> None:
        """Record popped items that `tr` removes, each by itself, unless nothing is kept."""
        used = trash_ids[: len(items)]
        reads = [tr.get(self._context.keyspace.trash.key(trash_id)) for trash_id in used if self.keeps]
        if any(read.wait() is not None for read in reads):
            raise minted_before()
        for trash_id, item in zip(used, items, strict=True):
            self.put_item(tr, trash_id, config, item, by=by, checked=True)

    def put_changes(
        self,
        tr: Transaction,
        trash_id: bytes,
        config: Config,
        changes: Sequence[AnyChange],
        *,
        by: str,
        act: str,
        to: Config | None = None,
    ) -> None:
        """Record what `tr` changes about items of a queue, where it moves them, or pushes, unless nothing is kept."""
        more = {"from": _reference(config), "to": None if to is None else _reference(to)}
        if self._put(tr, trash_id, config, len(changes), more, act=act, by=by):
            _log(tr, self._context.keyspace, trash_id, changes)

    def put_part(
        self,
        tr: Transaction,
        job_id: bytes,
        config: Config,
        changes: Sequence[AnyChange],
        *,
        first: int,
        at_ms: int,
        by: str,
        act: str,
        to: Config | None,
    ) -> None:
        """Add what a chunk of a bulk job changes to the record of the job, at this time; `first` were there before.

        Undoing the record is undoing the job. It is kept as long after its last chunk as that of any other action.
        """
        if not self.keeps:
            return
        keyspace, deadline_ms = self._context.keyspace, at_ms + self.keep_ms
        key = keyspace.trash.key(job_id)
        record = tr.get(key).wait() if first else None
        if record is None:
            target = None if to is None else _reference(to)
            more = {"from": _reference(config), "to": target, "job": True}
            self._put(tr, job_id, config, first + len(changes), more, act=act, by=by, deadline_ms=deadline_ms)
        else:
            tr.use_reserve()
            header, value = records.decode(record)
            header["items"] = first + len(changes)
            header.pop("deleting", None)  # the job was resumed so late: what is left of it and what comes is kept
            if deadline_ms - header["deadline"] > _RENEWED_MS:
                tr.clear(keyspace.deadlines.key(header["deadline"], job_id))
                header["deadline"] = deadline_ms
                tr.set(keyspace.deadlines.key(deadline_ms, job_id), b"")
            tr.set(key, records.encode(header, value))
        _log(tr, keyspace, job_id, changes, first=first)

    def put_generation(
        self, tr: Transaction, trash_id: bytes, config: Config, generation: int, *, depth: int, by: str
    ) -> None:
        """Record a generation that `tr` removes from a queue: a sweep clears it, at once if nothing is kept."""
        self._put(tr, trash_id, config, depth, {"generation": generation}, act="purge", by=by, always=True)

    def put_queue(self, tr: Transaction, trash_id: bytes, config: Config, *, depth: int, by: str) -> None:
        """Record a queue of which `tr` removes name and config: a sweep clears it, at once if nothing is kept."""
        more = {"what": "queue", "config": config.header()}
        self._put(tr, trash_id, config, depth, more, act="delete_queue", by=by, always=True)

    def _put(
        self,
        tr: Transaction,
        trash_id: bytes,
        of: Config,
        items: int,
        more: dict[str, Any],
        *,
        act: str,
        by: str,
        value: bytes = b"",
        always: bool = False,
        checked: bool = False,
        deadline_ms: int | None = None,
    ) -> bool:
        """Write a record, unless nothing is kept; say whether it was written. Raises `IdTaken`.

        It is kept until the deadline; by default counted from the time of its id.
        """
        if not (self.keeps or always):
            return False
        tr.use_reserve()  # a full store can still be emptied by hand
        keyspace = self._context.keyspace
        if not checked and tr.get(keyspace.trash.key(trash_id)).wait() is not None:
            raise minted_before()
        if deadline_ms is None:
            deadline_ms = ids.minted_ms(trash_id) + self.keep_ms
        header = {
            "what": "items",
            "act": act,
            "queue_id": of.id,
            "queue": of.name,
            "items": items,
            "by": by,
            "deadline": deadline_ms,
            "restored": False,
            **more,
        }
        if len(value) > _INLINE:
            tr.set(keyspace.trash_parts.key(trash_id, 0, VALUE), value)
            header, value = header | {"apart": True}, b""
        tr.set(keyspace.trash.key(trash_id), records.encode(header, value))
        tr.set(keyspace.deadlines.key(deadline_ms, trash_id), b"")
        return True

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
    ) -> RecordPage[TrashEntry]:
        """Return a page of what can still be restored, newest first. It may have fewer than `limit`.

        `queue` keeps entries of the queue that has this name or had it when they were written, `by` those of one
        person, `act` those of one action, `but` all except those of one, `visible` those of queues by their names then.
        They are looked for in bounded steps, so such a page may be empty and have a cursor; `looked` says how many were
        read, `certain` whether the next page has an entry. Unreadable entries are listed where nothing is chosen.
        """
        before, everything = paging.before_of(after), (queue, by, act, but, visible) == (None,) * 5

        def look(tr: ReadTransaction) -> RecordPage[TrashEntry]:
            queue_id: int | None = None
            with suppress(QueueNotFound, KeyTooLarge):
                queue_id = None if queue is None else directory.find_id(tr, self._context.keyspace, queue)

            def fits(header: dict[str, Any]) -> bool:
                return (
                    by in (None, header["by"])
                    and act in (None, header.get("act"))
                    and (but is None or but != header.get("act"))
                    and (visible is None or visible(header["queue"]))
                    and (queue is None or header["queue_id"] == queue_id or header["queue"] == queue)
                )

            return Looking(tr, self._context.keyspace).page(fits, unreadable=everything, before=before, limit=limit)

        return self._context.read(look, tr)

    def restore(
        self,
        tr: Transaction,
        trash_id: str,
        *,
        partial: bool = False,
        by: str = "",
        at_ms: int = 0,
        into: bytes | None = None,
        first: int | None = None,
    ) -> Restored:
        """Undo an entry: items are under their same keys again, or a whole queue under its name.

        `partial` leaves out items that were taken or changed since; a second undo is told of `by` and `at_ms`. Items
        that were pushed are moved into a new entry of the id `into`, if given. Of a bulk job's entry, all from the
        number `first` on is undone; with 0 it is undone whole. Raises `TrashNotFound`, `Unreadable`, `AlreadyRestored`,
        `QueueNotFound` (the items' queue is gone), `QueueExists` (another queue has the name now), `PlaceTaken` (other
        programs wrote an item at the same key of an attached queue), `ItemGoneOn`, `StillMerging`.
        """
        rand, keyspace = _parse(trash_id), self._context.keyspace
        with telling():
            header, value = Looking(tr, keyspace).record(rand)
            if header["restored"]:
                raise _already(header)
            if header.get("job") and first is None:  # a runner does it, chunk by chunk
                raise TrashNotFound(
                    "A bulk job is undone as a whole, by store.actions(...).undo, until its time runs out."
                )
            tr.use_reserve()  # values are moved, the store does not grow
            restored = Restoring(tr, keyspace).run(rand, header, value, partial=partial, first=first or 0)
        if partial and first is None and not restored.count and restored.skipped:
            raise TrashNotFound("All of these items have gone on since: there is nothing left to undo.")
        if restored.lifted and into is not None:
            lifted = [Change(there, None) for there in restored.lifted]
            self.put_changes(tr, into, restored.config, lifted, by=by, act="delete")
        tr.clear_range(*keyspace.trash_parts_from(rand, first or 0))
        # The record stays until its deadline, without the value, so that a second restore is refused with the reason.
        whole = {"restored": True} | ({"restored_by": by, "restored_at": at_ms} if by else {})
        tr.set(keyspace.trash.key(rand), records.encode(header | ({"items": first} if first else whole)))
        return restored


def _log(
    tr: Transaction,
    keyspace: Keyspace,
    trash_id: bytes,
    changes: Sequence[AnyChange],
    *,
    first: int = 0,
) -> None:
    """Write changes, each before and after, beside a trash record, from a number on. Before is None for an arrival."""
    parts = keyspace.trash_parts.sub(trash_id)
    for n, (before, after) in enumerate(changes, first):
        header: dict[str, Any] = {"before": None if before is None else before.header_of_place(), "after": None}
        if after is not None:
            # Its record is not needed, and would take the bytes of its log twice.
            header["after"] = {**after.header_of_place(record=False), "digest": after.digest()}
        tr.set(parts.key(n, PLACES), records.encode(header))
        if before is not None and (after is None or after.value != before.value):
            tr.set(parts.key(n, VALUE), before.value)


def _foreign(config: Config, item: Item) -> dict[str, Any]:
    """Return what a record says of an attached queue. Raise `KeyTooLarge` for an item that could not be put back."""
    prefix = config.attached_prefix
    if len(prefix) + len(suffix_of(item.id)) > MAX_KEY_SIZE:
        raise KeyTooLarge(
            "This item's key has more than {most} bytes: it could not be put back, so it is not taken by hand.",
            most=MAX_KEY_SIZE,
        )
    return {"foreign": {"prefix": prefix.hex(), "fifo": config.fifo}}


def _reference(config: Config) -> dict[str, Any]:
    return {"id": config.id, "name": config.name, "prefix": None if config.prefix is None else config.prefix.hex()}


def _already(header: dict[str, Any]) -> AlreadyRestored:
    if "restored_by" not in header:
        return AlreadyRestored("This was restored already.")
    return already_restored(header["restored_by"], header["restored_at"])


def already_restored(by: str, at_ms: int) -> AlreadyRestored:
    """Build the error of a second undo, with the actor and the time of the first."""
    when = ids.at(at_ms).strftime("%Y-%m-%d %H:%M:%S UTC")
    return AlreadyRestored("This was restored already, by {by} at {when}.", by=by, when=when)


def _parse(trash_id: str) -> bytes:
    rand = ids.parse(trash_id)
    if rand is None:
        raise TrashNotFound("This is no id of anything in the trash.")
    return rand
