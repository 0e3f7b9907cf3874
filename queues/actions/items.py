"""Acts on particular items, one or a page of them: each one transaction, undone from its trash record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queues.actions.actor import Acting, Note, Popped, shown
from queues.actions.preview import Picks
from queues.attached_queue import open_queue
from queues.errors import BadPriority, ItemNotFound, SameQueue, TrashNotFound, display_name
from queues.items import edit, locate, undo_log
from queues.items.admission import check_value
from queues.items.edit import Place
from queues.items.transition import Change
from queues.kv.port import Transaction
from queues.model.item import Item
from queues.model.priority import Priority
from queues.queue import Queue


class RevealActs(Acting):
    """The acts of one person who looks."""

    def reveal(self, queue_name: str, item_id: str, *, reason: str = "", expect_id: int | None = None) -> Item:
        """Return one item with its whole value and note who saw it; raise `ItemNotFound`.

        The record holds the item's id and never a part of its value. Conflicts with nobody: an item that is taken
        meanwhile was seen as it was.
        """

        def act(tr: Transaction, audit: Note) -> Item:
            queue = self._queue(tr, queue_name, expect_id)
            item = queue.find(item_id, tr=tr.snapshot)
            if item is None:
                raise ItemNotFound("This item is not in the queue any more: nothing was revealed.")
            audit(queue, "reveal", item=item.id, reason=reason)
            return item

        return self._act(act)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What an act on items did."""

    #: Items that were changed.
    count: int
    #: Items that were not here any more, or were as asked already.
    skipped: int
    #: For `undo`; None when nothing was changed.
    trash_id: str | None
    #: Items among these that are dead now.
    died: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo brought back."""

    queue: Queue
    #: Items that are as they were.
    count: int
    #: Items that have gone on since, and were left alone.
    skipped: int
    #: Of a push: its items are here now, by which the undo is undone; else None.
    trash_id: str | None = None


class ItemActs(Picks):
    """The acts of one person on particular items.

    `expect` holds marks (`queues.items.locate`) of items as they were seen: `ItemChanged` when one is not so any more.
    """

    def delete_item(
        self,
        queue_name: str,
        item_id: str,
        *,
        reason: str = "",
        expect_id: int | None = None,
        expect: str | None = None,
    ) -> Popped:
        """Take one particular item into the trash, whatever its state; raise `ItemNotFound`.

        `expect` is its mark.
        """
        trash_id = self._context.id_generator.new_id()

        def act(tr: Transaction, audit: Note) -> Popped:
            queue = self._queue(tr, queue_name, expect_id)
            keyspace = self._context.keyspace
            marks = None if expect is None else {item_id: expect}
            found = locate.find(tr, keyspace, queue.config, [item_id], skip_missing=False, expect=marks).stored_items
            edit.delete(tr, keyspace, queue.config, found)
            item = locate.item_of(found[0], queue.config)
            self._trash.put_item(tr, trash_id, queue.config, item, by=self._actor, act="delete", there=found[0])
            audit(queue, "delete", item=item.id, reason=reason, before=shown(item))
            return Popped(item=item, trash_id=self._kept(trash_id))

        return self._act(act)

    def delete_items(
        self,
        queue_name: str,
        item_ids: Sequence[str],
        *,
        reason: str = "",
        expect_id: int | None = None,
        expect: Mapping[str, str] | None = None,
        skip_missing: bool = False,
    ) -> Changed:
        """Take up to 1,000 items (5 MB) into the trash as one, whatever their states.

        `ItemNotFound` when some are not here, unless they are to be skipped.
        """
        trash_id = self._trash_id(item_ids)

        def act(tr: Transaction, audit: Note) -> Changed:
            queue = self._queue(tr, queue_name, expect_id)
            found = locate.find(
                tr, self._context.keyspace, queue.config, item_ids, skip_missing=skip_missing, expect=expect
            )
            changed = edit.delete(tr, self._context.keyspace, queue.config, found.stored_items)
            self._trash.put_changes(tr, trash_id, queue.config, changed, by=self._actor, act="delete")
            return self._note(audit, queue, "delete", changed, trash_id, found.missing, reason)

        return self._act(act)

    def move_items(
        self,
        queue_name: str,
        item_ids: Sequence[str],
        to: str,
        *,
        priority: Priority | None = None,
        reason: str = "",
        expect_id: int | None = None,
        expect: Mapping[str, str] | None = None,
        skip_missing: bool = False,
    ) -> Changed:
        """Move up to 1,000 items (5 MB) to another queue as one: at every moment each is in exactly one of the two.

        They keep value and id (but from an attached queue, which has no ids of ours) and come in as newcomers, in the
        order of `item_ids`; what is delayed stays delayed. Their priority is kept where it fits the other queue, or
        `priority` given to them. Raises `ItemNotFound`, `ItemLeased`, `BadPriority`, `QueueClosed`, `SameQueue`.
        """
        trash_id = self._trash_id(item_ids)
        rands = self._context.id_generator.new_ids(len(item_ids))

        def act(tr: Transaction, audit: Note) -> Changed:
            queue, target = self._queue(tr, queue_name, expect_id), self._catalog.queue(to, tr=tr)
            if queue.id == target.id:
                raise SameQueue("The items are in {queue} already: name another queue.", queue=display_name(queue.name))
            keyspace = self._context.keyspace
            found = locate.find(tr, keyspace, queue.config, item_ids, skip_missing=skip_missing, expect=expect)
            changed = edit.move(
                tr,
                keyspace,
                queue.config,
                target.config,
                found.stored_items,
                priority=priority,
                rands=rands[: len(found.stored_items)],
            )
            self._trash.put_changes(tr, trash_id, queue.config, changed, by=self._actor, act="move", to=target.config)
            return self._note(audit, queue, "move", changed, trash_id, found.missing, reason, to=target)

        return self._act(act)

    def reprioritize(
        self,
        queue_name: str,
        item_ids: Sequence[str],
        *,
        priority: Priority | None = None,
        shift: Priority | None = None,
        place: Place | None = None,
        reason: str = "",
        expect_id: int | None = None,
        expect: Mapping[str, str] | None = None,
        skip_missing: bool = False,
    ) -> Changed:
        """Give up to 1,000 items (5 MB) another priority, one shifted by a number, or bring them to the front or back.

        Their push order is kept, but at the front and the back, where they stand one behind the other as they did.
        """
        if sum(given is not None for given in (priority, shift, place)) != 1:
            raise BadPriority("Say one of: the priority, by how much to shift it, or front or back.")
        trash_id = self._trash_id(item_ids)

        def act(tr: Transaction, audit: Note) -> Changed:
            queue = self._queue(tr, queue_name, expect_id)
            keyspace = self._context.keyspace
            found = locate.find(tr, keyspace, queue.config, item_ids, skip_missing=skip_missing, expect=expect)
            changed = edit.reprioritize(
                tr, keyspace, queue.config, found.stored_items, priority=priority, shift=shift, place=place
            )
            if changed:
                self._trash.put_changes(tr, trash_id, queue.config, changed, by=self._actor, act="reprioritize")
            skipped = found.missing + len(found.stored_items) - len(changed)
            return self._note(audit, queue, "reprioritize", changed, trash_id, skipped, reason)

        return self._act(act)

    def edit_item(
        self,
        queue_name: str,
        item_id: str,
        value: bytes,
        *,
        expect: bytes | str,
        reason: str = "",
        expect_id: int | None = None,
    ) -> Changed:
        """Give an item another value, its place kept; raise `ValueChanged` unless its value still is `expect`.

        `expect` is the value that was seen, or `queues.items.stored_item.digest` of it.
        """
        value = check_value(value)
        trash_id = self._trash_id([item_id])

        def act(tr: Transaction, audit: Note) -> Changed:
            queue = self._queue(tr, queue_name, expect_id)
            keyspace = self._context.keyspace
            found = locate.find(tr, keyspace, queue.config, [item_id], skip_missing=False).stored_items
            changed = edit.edit(tr, keyspace, queue.config, found[0], value, expect=expect)
            if changed:
                self._trash.put_changes(tr, trash_id, queue.config, changed, by=self._actor, act="edit")
            return self._note(audit, queue, "edit", changed, trash_id, 1 - len(changed), reason)

        return self._act(act)

    def undo(self, trash_id: str, *, partial: bool = False, reason: str = "") -> Undone:
        """Undo any act that has a trash entry: items and queues are again what they were, where they were.

        `ItemGoneOn` when items have gone on since; with `partial` those are left alone and the others undone. What was
        pushed goes to the trash.
        """
        now_ms, into = self._context.now_ms(), self._context.id_generator.new_id()

        def act(tr: Transaction, audit: Note) -> Undone:
            entry = self._trash.get(trash_id, tr=tr)
            restored = self._trash.restore(tr, trash_id, partial=partial, by=self._actor, at_ms=now_ms, into=into)
            queue = open_queue(self._context, restored.config)
            if partial and not restored.count and restored.skipped:
                raise TrashNotFound("All of these items have gone on since: there is nothing left to undo.")
            verb = "restore_queue" if entry.what == "queue" else "put_back" if entry.what == "item" else "undo"
            audit(
                queue,
                verb,
                count=restored.count,
                item=None if restored.item is None else restored.item.id,
                items=restored.items,
                reason=reason,
                before={"act": entry.act},
            )
            return Undone(
                queue=queue,
                count=restored.count,
                skipped=restored.skipped,
                trash_id=into.hex() if restored.lifted else None,
            )

        return self._act(act)

    def _trash_id(self, item_ids: Sequence[str]) -> bytes:
        locate.check_number(item_ids)
        return self._context.id_generator.new_id()

    def _note(
        self,
        audit: Note,
        queue: Queue,
        verb: str,
        changed: Sequence[Change],
        trash_id: bytes,
        skipped: int,
        reason: str,
        *,
        to: Queue | None = None,
    ) -> Changed:
        """Note an act in the audit, of one item with what it was and is, and return what it did."""
        if not changed:
            return Changed(count=0, skipped=skipped, trash_id=None)
        one = changed[0] if len(changed) == 1 else None
        before = None if one is None else locate.item_of(one.before, queue.config)
        after = None
        if one is not None and one.after is not None:
            after = shown(locate.item_of(one.after, (to or queue).config))
        if to is not None:
            after = {**(after or {}), "to": to.name}
        audit(
            queue,
            verb,
            count=len(changed),
            item=None if before is None else before.id,
            items=[undo_log.id_of(change.before) for change in changed],
            reason=reason,
            before=None if before is None else shown(before),
            after=after,
            also=None if to is None else to.id,
        )
        died = sum(
            each.after is not None and (each.before.state, each.after.state) == ("leased", "dead") for each in changed
        )
        return Changed(count=len(changed), skipped=skipped, trash_id=self._kept(trash_id), died=died)
