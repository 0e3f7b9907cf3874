"""Acts that bring particular items to another state: promote, reschedule, delay, retry, release; lease, ack.

Each is one transaction with its audit record and, but for leasing, a trash record that undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from queues.actions.actor import Note, Popped, shown
from queues.actions.items import Changed, ItemActs
from queues.errors import STATE_WORDS, BadTime, HeadChanged, ItemChanged, ItemLeased, NotForAttached
from queues.items import locate, state_changes
from queues.items.stored_item import StoredItem
from queues.items.transition import Change
from queues.kv.port import Transaction
from queues.model.config import MAX_REASON, check_text
from queues.model.duration import LEASE, Duration, seconds_of
from queues.operations.delay import due_ms, either
from queues.operations.lease import Lease
from queues.queue import Queue


class How(TypedDict, total=False):
    """What each act on particular items takes besides what it does."""

    reason: str
    #: The queue that is meant, whatever has its name by now.
    expect_id: int | None
    #: The marks of the items as they were shown, by their ids.
    expect: Mapping[str, str] | None
    #: Leave out what is not here any more, or in another state.
    skip_missing: bool


_Do = Callable[[Transaction, Queue, list[StoredItem]], list[Change]]


class StateActs(ItemActs):
    """The acts of one person on the states of items."""

    def promote(self, queue_name: str, item_ids: Sequence[str], **how: Unpack[How]) -> Changed:
        """Make up to 1,000 delayed items (5 MB) ready now, due or not; raise `WrongState` when some are not delayed."""
        keyspace = self._context.keyspace

        def do(tr: Transaction, queue: Queue, found: list[StoredItem]) -> list[Change]:
            return state_changes.promote(tr, keyspace, queue.config, found)

        return self._bring("promote", "delayed", do, queue_name, item_ids, **how)

    def reschedule(
        self,
        queue_name: str,
        item_ids: Sequence[str],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        **how: Unpack[How],
    ) -> Changed:
        """Let up to 1,000 delayed items (5 MB) be due at another time, now included."""
        keyspace, when = self._context.keyspace, either(delay, due)
        if when is None:
            raise BadTime("Say when the items shall be due: delay= or due=.")
        at_ms = due_ms(when, self._context.clock())

        def do(tr: Transaction, queue: Queue, found: list[StoredItem]) -> list[Change]:
            return state_changes.reschedule(tr, keyspace, queue.config, found, due_ms=at_ms)

        return self._bring("reschedule", "delayed", do, queue_name, item_ids, **how)

    def delay(
        self,
        queue_name: str,
        item_ids: Sequence[str],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        **how: Unpack[How],
    ) -> Changed:
        """Let up to 1,000 ready items (5 MB) wait until they are due; what is due by now stays as it is.

        Raises `WrongState` when some are not ready. Undone, each is back at its very place.
        """
        keyspace, when = self._context.keyspace, either(delay, due)
        if when is None:
            raise BadTime("Say when the items shall be due: delay= or due=.")
        at_ms = due_ms(when, self._context.clock())

        def do(tr: Transaction, queue: Queue, found: list[StoredItem]) -> list[Change]:
            return state_changes.delay(tr, keyspace, queue.config, found, due_ms=at_ms)

        return self._bring("delay", "ready", do, queue_name, item_ids, **how)

    def retry_dead(self, queue_name: str, item_ids: Sequence[str], **how: Unpack[How]) -> Changed:
        """Put up to 1,000 dead items (5 MB) back at their places, with all their attempts before them."""
        keyspace = self._context.keyspace

        def do(tr: Transaction, queue: Queue, found: list[StoredItem]) -> list[Change]:
            return state_changes.retry(tr, keyspace, queue.config, found)

        return self._bring("retry", "dead", do, queue_name, item_ids, **how)

    def release(self, queue_name: str, item_ids: Sequence[str], **how: Unpack[How]) -> Changed:
        """Take up to 1,000 leased items (5 MB) back from their workers, whose acknowledgements are refused from now on.

        An item whose last attempt this was is dead. With `expect` a lease that ended meanwhile is nobody else's loss.
        """
        keyspace, now_ms = self._context.keyspace, self._context.now_ms()
        why = check_text(how.get("reason", ""), MAX_REASON)

        def do(tr: Transaction, queue: Queue, found: list[StoredItem]) -> list[Change]:
            return state_changes.release(tr, keyspace, queue.config, found, now_ms=now_ms, reason=why)

        return self._bring("release", "leased", do, queue_name, item_ids, **how)

    def lease(
        self,
        queue_name: str,
        *,
        seconds: Duration,
        end: str = "min",
        reason: str = "",
        expect: str | None = None,
        mark: str | None = None,
        expect_id: int | None = None,
    ) -> Lease | None:
        """Hold the item at one end in this person's name; None when nothing is ready.

        `expect` is the id of the item that was confirmed: another one at that end raises `HeadChanged`. `mark` is its
        mark: the same item with another one raises `ItemChanged`.
        """

        def act(tr: Transaction, audit: Note) -> Lease | None:
            queue, keyspace = self._queue(tr, queue_name, expect_id), self._context.keyspace
            looked = None if mark is None or expect is None else locate.look(tr, keyspace, queue.config, [expect])
            lease = queue.lease(seconds=seconds, end=end, worker=self._actor, tr=tr)
            if expect is not None and (lease is None or lease.item.id != expect):
                if lease is None:
                    raise HeadChanged("Nothing is ready here any more: nothing was taken.", None)
                raise HeadChanged(
                    "Another item stands at this end now than the one you confirmed: nothing was taken.",
                    lease.item,
                )
            if lease is None:
                return None
            if looked is not None and any(each.mark != mark for each in looked.picked):
                raise ItemChanged("The item is not as you saw it any more: somebody changed it. Nothing was taken.")
            audit(
                queue,
                "lease",
                item=lease.item.id,
                reason=reason,
                before=shown(lease.item),
                after={"seconds": seconds_of(seconds, LEASE, above_zero=True), "worker": self._actor},
            )
            return lease

        return self._act(act)

    def ack(
        self,
        queue_name: str,
        item_id: str,
        *,
        reason: str = "",
        expect_id: int | None = None,
        expect: str | None = None,
    ) -> Popped:
        """Say that an item is done that this person leased: it goes into the trash, as an item that is popped does.

        `expect` is its mark. Raises `ItemLeased` when another worker holds it, `WrongState` when nobody does.
        """
        trash_id = self._context.id_generator.new_id()

        def act(tr: Transaction, audit: Note) -> Popped:
            queue, keyspace = self._queue(tr, queue_name, expect_id), self._context.keyspace
            marks = None if expect is None else {item_id: expect}
            there = locate.find(tr, keyspace, queue.config, [item_id], skip_missing=False, expect=marks).stored_items[0]
            item = locate.item_of(there, queue.config)
            if there.state == "leased" and item.worker != self._actor:
                raise ItemLeased("Another worker holds this item: only who leased it says that it is done.")
            state_changes.acknowledge(tr, keyspace, queue.config, there)
            self._trash.put_item(tr, trash_id, queue.config, item, by=self._actor, act="ack", there=there)
            audit(queue, "ack", item=item.id, reason=reason, before=shown(item))
            return Popped(item=item, trash_id=self._kept(trash_id))

        return self._act(act)

    def _bring(
        self,
        verb: str,
        state: str,
        do: _Do,
        queue_name: str,
        item_ids: Sequence[str],
        *,
        reason: str = "",
        expect_id: int | None = None,
        expect: Mapping[str, str] | None = None,
        skip_missing: bool = False,
    ) -> Changed:
        trash_id = self._trash_id(item_ids)

        def act(tr: Transaction, audit: Note) -> Changed:
            queue = self._queue(tr, queue_name, expect_id)
            if queue.attached:
                never = STATE_WORDS["delayed" if state == "ready" else state]
                raise NotForAttached(queue.name, "its items are never {never}.", never=never)
            keyspace = self._context.keyspace
            found = locate.find(tr, keyspace, queue.config, item_ids, skip_missing=skip_missing, expect=expect)
            some = state_changes.in_state(found.stored_items, state) if skip_missing else found.stored_items
            changed = do(tr, queue, some or found.stored_items)
            if changed:
                self._trash.put_changes(tr, trash_id, queue.config, changed, by=self._actor, act=verb)
            skipped = found.missing + len(found.stored_items) - len(changed)
            return self._note(audit, queue, verb, changed, trash_id, skipped, reason)

        return self._act(act)
