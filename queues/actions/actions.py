"""Acts: what a person does to queues. Each is one transaction: the verb, its trash record, its audit record.

Tools that only push and pop use `Queue`; whatever has a person's name on it (pages, the command line) acts here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from queues.actions.actor import Note, Popped, Pushed, shown
from queues.actions.items import RevealActs
from queues.actions.push import PushJobs
from queues.actions.queue import PurgeActs, SettingsActs
from queues.actions.states import StateActs
from queues.attached_queue import open_queue
from queues.errors import (
    ConfirmationMismatch,
    DepthChanged,
    HeadChanged,
    NotForAttached,
    TrashNotFound,
    WrongKind,
    display_name,
)
from queues.items import locate
from queues.kv.port import Transaction
from queues.model.duration import Duration
from queues.model.item import Item
from queues.model.names import canonical
from queues.model.priority import Priority
from queues.queue import Queue

T = TypeVar("T")

__all__ = ["Acts", "Popped", "Pushed"]


class Acts(PushJobs, StateActs, PurgeActs, RevealActs, SettingsActs):
    """The acts of one person, come in by one way (web, api, cli)."""

    def create_queue(
        self,
        name: str,
        *,
        kind: str = "priority",
        priority_type: str = "int",
        bands: Sequence[Priority] | None = None,
    ) -> Queue:
        """Create a queue; raise `QueueExists`."""

        def act(tr: Transaction, audit: Note) -> Queue:
            queue = self._catalog.create_queue(name, kind=kind, priority_type=priority_type, bands=bands, tr=tr)
            audit(queue, "create", count=0, after={"kind": kind, "priority_type": priority_type})
            return queue

        return self._act(act)

    def push(
        self,
        queue_name: str,
        value: bytes,
        *,
        priority: Priority | None = None,
        delay: Duration | None = None,
        due: datetime | None = None,
        expect_id: int | None = None,
    ) -> Item:
        """Push one item (FIFO: enqueue it), at once or delayed."""
        return self._push(queue_name, [(value, priority)], delay, due, expect_id, "", None, lambda pushed: pushed[0])

    def push_many(
        self,
        queue_name: str,
        items: Sequence[tuple[bytes, Priority | None]],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        expect_id: int | None = None,
        reason: str = "",
    ) -> list[Item]:
        """Push at most 1,000 items and 5 MB as one, with one audit record; `delay` or `due` hold for all of them."""
        return self._push(queue_name, items, delay, due, expect_id, reason, None, lambda pushed: pushed)

    def push_undoably(
        self,
        queue_name: str,
        items: Sequence[tuple[bytes, Priority | None]],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        expect_id: int | None = None,
        reason: str = "",
    ) -> Pushed:
        """Push as `push_many` does, with an entry in the trash: to `undo` it takes out what is still as it came in."""
        trash_id = self._context.id_generator.new_id()
        return self._push(
            queue_name,
            items,
            delay,
            due,
            expect_id,
            reason,
            trash_id,
            lambda pushed: Pushed(items=pushed, trash_id=trash_id.hex()),
        )

    def _push(
        self,
        queue_name: str,
        items: Sequence[tuple[bytes, Priority | None]],
        delay: Duration | None,
        due: datetime | None,
        expect_id: int | None,
        reason: str,
        trash_id: bytes | None,
        answer: Callable[[list[Item]], T],
    ) -> T:
        def act(tr: Transaction, audit: Note) -> T:
            queue = self._queue(tr, queue_name, expect_id)
            pushed = _push(queue, items, delay, due, tr)
            if trash_id is not None:
                there = locate.arrived(tr, self._context.keyspace, queue.config, pushed)
                self._trash.put_arrivals(tr, trash_id, queue.config, there, by=self._actor)
            one = pushed[0] if len(pushed) == 1 else None
            audit(
                queue,
                "enqueue" if queue.kind == "fifo" else "push",
                count=len(pushed),
                item=None if one is None else one.id,
                items=[item.id for item in pushed],
                reason=reason,
                after=None if one is None else shown(one),
            )
            return answer(pushed)

        return self._act(act)

    def pop(self, queue_name: str, *, end: str = "min", reason: str = "", expect: str | None = None) -> Popped | None:
        """Take the item at one end into the trash and return it; None when nothing is ready.

        `expect` is the id of the item that was confirmed: another one at that end raises `HeadChanged`.
        """
        return self._pop(queue_name, 1, end, reason, expect, lambda popped: next(iter(popped), None))

    def pop_many(
        self, queue_name: str, n: int, *, end: str = "min", reason: str = "", expect: str | None = None
    ) -> list[Popped]:
        """Take at most `n` items (1 to 1,000) from one end into the trash as one, with one audit record."""
        return self._pop(queue_name, n, end, reason, expect, lambda popped: popped)

    def _pop(
        self,
        queue_name: str,
        n: int,
        end: str,
        reason: str,
        expect: str | None,
        answer: Callable[[list[Popped]], T],
    ) -> T:
        trash_ids = self._context.id_generator.new_ids(max(n, 1))

        def act(tr: Transaction, audit: Note) -> T:
            queue = self._catalog.queue(queue_name, tr=tr)
            fifo = queue.kind == "fifo"
            if fifo and end in ("max", "tail"):
                raise WrongKind(
                    "{queue} is a fifo queue: items leave at its head only.", queue=display_name(queue.name)
                )
            taken = queue.dequeue_many(n, tr=tr) if fifo else queue.pop_many(n, end=end, tr=tr)
            if expect is not None and (not taken or taken[0].id != expect):
                if not taken:
                    raise HeadChanged("Nothing is ready here any more: nothing was taken.", None)
                raise HeadChanged(
                    "Another item stands at this end now than the one you confirmed: nothing was taken.", taken[0]
                )
            self._trash.put_each(tr, trash_ids, queue.config, taken, by=self._actor)
            if taken:
                audit(
                    queue,
                    "dequeue" if fifo else f"pop_{end}",
                    count=len(taken),
                    item=taken[0].id if len(taken) == 1 else None,
                    items=[item.id for item in taken],
                    reason=reason,
                    before=shown(taken[0]) if len(taken) == 1 else None,
                )
            popped = [
                Popped(item=item, trash_id=self._kept(trash_id))
                for trash_id, item in zip(trash_ids, taken, strict=False)
            ]
            return answer(popped)

        return self._act(act)

    def put_back(self, trash_id: str, *, queue_name: str | None = None) -> Item:
        """Put an item that was taken back under its same key; raise `AlreadyRestored` the second time.

        With `queue_name` only an item of that queue, else `TrashNotFound`.
        """
        now_ms = self._context.now_ms()

        def act(tr: Transaction, audit: Note) -> Item:
            restored = self._trash.restore(tr, trash_id, by=self._actor, at_ms=now_ms)
            config, item = restored.config, restored.item
            if item is None:
                raise TrashNotFound("This is no single item: restore it from the trash.")
            if queue_name is not None and canonical(queue_name) != config.name:
                raise TrashNotFound(
                    "This item was taken from {queue}: put it back there.", queue=display_name(config.name)
                )
            audit(open_queue(self._context, config), "put_back", item=item.id, after=shown(item))
            return item

        return self._act(act)

    def pause(
        self, queue_name: str, *, reason: str, until: datetime | None = None, expect_id: int | None = None
    ) -> None:
        """Stop taking from a queue, saying why; `until` resumes by itself."""

        def act(tr: Transaction, audit: Note) -> None:
            queue = self._queue(tr, queue_name, expect_id)
            queue.pause(reason=reason, until=until, by=self._actor, tr=tr)
            after = None if until is None else {"until": until.isoformat()}
            audit(queue, "pause", count=0, reason=reason, after=after)

        self._act(act)

    def resume(self, queue_name: str, *, reason: str = "", expect_id: int | None = None) -> None:
        """Let items of a queue be taken again; resuming one that is not paused is no act."""

        def act(tr: Transaction, audit: Note) -> None:
            queue = self._queue(tr, queue_name, expect_id)
            pause = queue.config.pause
            if pause is None:
                return
            queue.resume(tr=tr)
            before = {"paused_by": pause.by, "reason": pause.reason}
            audit(queue, "resume", count=0, reason=reason, before=before)

        self._act(act)

    def rename_queue(self, old: str, new: str, *, expect_id: int | None = None) -> Queue:
        """Give a queue another name; giving it its own is no act."""

        def act(tr: Transaction, audit: Note) -> Queue:
            before = self._queue(tr, old, expect_id)
            queue = self._catalog.rename_queue(old, new, tr=tr)
            if queue.name != before.name:
                audit(queue, "rename", count=0, before={"name": before.name}, after={"name": queue.name})
            return queue

        return self._act(act)

    def delete_queue(
        self,
        name: str,
        *,
        confirm: str,
        expect_depth: int | None = None,
        tolerance: int = 0,
        expect_id: int | None = None,
        reason: str = "",
    ) -> str:
        """Put a queue into the trash and return the trash id.

        `confirm` is the name as typed, else `ConfirmationMismatch`; a depth further than `tolerance` from
        `expect_depth` raises `DepthChanged`.
        """
        if canonical(confirm) != canonical(name):
            raise ConfirmationMismatch(
                "To delete this queue, type its name: {queue}. Nothing was deleted.", queue=display_name(name)
            )

        def act(tr: Transaction, audit: Note) -> str:
            queue = self._queue(tr, name, expect_id)
            if queue.attached:
                raise NotForAttached(queue.name, "detach it instead, its items stay where they are.")
            # A depth that nobody confirmed is told only: whoever pushes or pops meanwhile is not in the way.
            depth = queue.depth(tr=tr.snapshot if expect_depth is None else tr)
            if expect_depth is not None and abs(depth - expect_depth) > tolerance:
                raise DepthChanged(
                    "{queue} holds {depth:,} items now, not the {seen:,} you confirmed: nothing was deleted.",
                    depth,
                    queue=display_name(name),
                    depth=depth,
                    seen=expect_depth,
                )
            trash_id = self._catalog.delete_queue(name, by=self._actor, tr=tr)
            audit(queue, "delete_queue", count=depth, reason=reason, before={"depth": depth})
            return trash_id

        return self._act(act)

    def restore_queue(self, trash_id: str) -> Queue:
        """Bring back a deleted queue with all its items; raise `AlreadyRestored` the second time."""
        now_ms = self._context.now_ms()

        def act(tr: Transaction, audit: Note) -> Queue:
            restored = self._trash.restore(tr, trash_id, by=self._actor, at_ms=now_ms)
            if restored.item is not None:
                raise TrashNotFound("This is an item, not a queue: put it back instead.")
            queue = open_queue(self._context, restored.config)
            audit(queue, "restore_queue", count=queue.depth(tr=tr))
            return queue

        return self._act(act)


def _push(
    queue: Queue,
    items: Sequence[tuple[bytes, Priority | None]],
    delay: Duration | None,
    due: datetime | None,
    tr: Transaction,
) -> list[Item]:
    if queue.kind == "fifo":
        return queue.enqueue_many([value for value, _ in items], delay=delay, due=due, tr=tr)
    # A missing priority is refused by the queue's own rule, in its own words.
    return queue.push_many([(value, priority) for value, priority in items], delay=delay, due=due, tr=tr)  # type: ignore[misc]
