"""Actions on particular items, found by their ids: each is one transaction, with etags checked, undone as one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypedDict, Unpack

from queues.actions.audited_action import Action, action, other_queue, shown
from queues.actions.take import Popped
from queues.errors import (
    STATE_WORDS,
    BadPriority,
    BadTime,
    ItemLeased,
    ItemNotFound,
    NotForAttached,
)
from queues.items import item_changes, locate, manual_transitions
from queues.items.item_changes import Place
from queues.items.state_machine import Change
from queues.items.stored_item import StoredItem
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.model.codec import encoded_by_person
from queues.model.config import MAX_REASON, Config, check_text
from queues.model.duration import Duration
from queues.model.item import Item
from queues.model.moment import due_ms, either
from queues.model.priority import Priority


class ItemOptions(TypedDict, total=False):
    """What actions on several items take besides the ids and what they do."""

    reason: str
    #: The id of the queue that is meant.
    expect_id: int | None
    #: Etags of the items as they were shown, by their ids; `ItemChanged` when one has another one now.
    expect: Mapping[str, str] | None
    #: Leave out items that are gone or in another state; otherwise `ItemNotFound`, `WrongState`.
    skip_missing: bool


class ItemOption(TypedDict, total=False):
    """What an action that removes one item takes besides its id."""

    reason: str
    #: The id of the queue that is meant.
    expect_id: int | None
    #: The etag of the item as it was shown; `ItemChanged` when it has another one now.
    expect: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What an action on items did."""

    #: Items that were changed.
    count: int
    #: Items that were gone, or as asked already.
    skipped: int
    #: For `undo`; None when nothing was changed.
    trash_id: str | None
    #: Items among these that are dead now.
    died: int = 0


Changes = list[Change]


@action
def reveal(action: Action, queue_name: str, item_id: str, *, reason: str = "", expect_id: int | None = None) -> Item:
    """Return one item with its whole value and record its reader; raise `ItemNotFound`.

    The record holds the item's id and no part of its value. It conflicts with no other transaction.
    """
    queue = action.queue(queue_name, expect_id)
    item = queue.find(item_id, tr=action.tr.snapshot)
    if item is None:
        raise ItemNotFound("This item is not in the queue any more: nothing was revealed.")
    action.record(queue, "reveal", item=item.id, reason=reason)
    return item


@action
def delete_item(action: Action, queue_name: str, item_id: str, **options: Unpack[ItemOption]) -> Popped:
    """Move one item of any state into the trash; raise `ItemNotFound`."""
    return _remove(action, "delete", queue_name, item_id, **options)


@action
def ack(action: Action, queue_name: str, item_id: str, **options: Unpack[ItemOption]) -> Popped:
    """Acknowledge an item that this person leased: it is moved into the trash.

    Raises `ItemLeased` when another worker has leased it, `WrongState` when it is not leased.
    """
    return _remove(action, "ack", queue_name, item_id, **options)


def _remove(
    action: Action,
    verb: str,
    queue_name: str,
    item_id: str,
    *,
    reason: str = "",
    expect_id: int | None = None,
    expect: str | None = None,
) -> Popped:
    """Find one item, check its etag, take it out of the queue, keep it in the trash, and record it."""
    tr, keyspace, queue = action.tr, action.keyspace, action.queue(queue_name, expect_id)
    etags = None if expect is None else {item_id: expect}
    found = locate.find(tr, keyspace, queue.config, [item_id], skip_missing=False, expect=etags)
    stored = found.stored_items[0]
    trash_id, item = action.new_id(), locate.item_of(stored, queue.config)
    if verb == "delete":
        item_changes.delete(tr, keyspace, queue.config, [stored])
    elif stored.state == "leased" and item.worker != action.actor:
        raise ItemLeased("Another worker holds this item: only the person that leased it says that it is done.")
    else:
        manual_transitions.acknowledge(tr, keyspace, queue.config, stored)
    action.trash.put_item(tr, trash_id, queue.config, item, by=action.actor, act=verb, there=stored)
    action.record(queue, verb, item=item.id, reason=reason, before=shown(item))
    return Popped(item=item, trash_id=action.kept(trash_id))


@action
def delete_items(action: Action, queue_name: str, item_ids: Sequence[str], **options: Unpack[ItemOptions]) -> Changed:
    """Move up to 1,000 items (5 MB) of any state into the trash as one."""
    return _change(action, "delete", queue_name, item_ids, item_changes.delete, **options)


@action
def move_items(
    action: Action,
    queue_name: str,
    item_ids: Sequence[str],
    to: str,
    *,
    priority: Priority | None = None,
    **options: Unpack[ItemOptions],
) -> Changed:
    """Move up to 1,000 items (5 MB) to another queue as one. At every moment each is in exactly one of the two.

    They keep value and id (but from an attached queue, which has no ids of ours) and arrive as newly pushed ones, in
    the order of `item_ids`; what is delayed stays delayed. Their priority is kept where it fits the other queue, or
    `priority` given to them. Raises `ItemNotFound`, `ItemLeased`, `BadPriority`, `QueueClosed`, `SameQueue`.
    """

    def move(tr: Transaction, keyspace: Keyspace, source: Config, target: Config, items: list[StoredItem]) -> Changes:
        rands = action.context.id_generator.new_ids(len(items))
        return item_changes.move(
            tr, keyspace, source, target, items, priority=priority, rands=rands, now_ms=action.context.clock.now_ms()
        )

    return _change(action, "move", queue_name, item_ids, move, to=to, **options)


@action
def reprioritize(
    action: Action,
    queue_name: str,
    item_ids: Sequence[str],
    *,
    priority: Priority | None = None,
    shift: Priority | None = None,
    place: Place | None = None,
    **options: Unpack[ItemOptions],
) -> Changed:
    """Give up to 1,000 items (5 MB) another priority or place. `shift` adds a number to their own priorities.

    Their push order is kept; at the front and the back they keep their order among themselves.
    """
    if sum(given is not None for given in (priority, shift, place)) != 1:
        raise BadPriority("Say one of: the priority, by how much to shift it, or front or back.")
    change = partial(item_changes.reprioritize, priority=priority, shift=shift, place=place)
    return _change(action, "reprioritize", queue_name, item_ids, change, **options)


@action
def edit_item(
    action: Action,
    queue_name: str,
    item_id: str,
    value: bytes,
    *,
    expect: bytes | str,
    etag: str | None = None,
    reason: str = "",
    expect_id: int | None = None,
) -> Changed:
    """Give an item another value, its place kept. Raise `ValueChanged` unless its value still is `expect`.

    `expect` is the value that was shown, or `queues.items.stored_item.digest` of it. An item with another `etag` than
    this raises `ItemChanged`, a value above the queue's `max_value` `ValueTooLarge`; an undo brings back any.
    """

    def change(tr: Transaction, keyspace: Keyspace, config: Config, items: list[StoredItem]) -> Changes:
        return item_changes.edit(tr, keyspace, config, items[0], encoded_by_person(value, config.values), expect=expect)

    shown_as = None if etag is None else {item_id: etag}
    return _change(action, "edit", queue_name, [item_id], change, reason=reason, expect_id=expect_id, expect=shown_as)


@action
def promote(action: Action, queue_name: str, item_ids: Sequence[str], **options: Unpack[ItemOptions]) -> Changed:
    """Make up to 1,000 delayed items (5 MB) ready now, due or not."""
    change = partial(manual_transitions.promote, now_ms=action.context.clock.now_ms())
    return _change(action, "promote", queue_name, item_ids, change, state="delayed", **options)


@action
def reschedule(
    action: Action,
    queue_name: str,
    item_ids: Sequence[str],
    *,
    delay: Duration | None = None,
    due: datetime | None = None,
    **options: Unpack[ItemOptions],
) -> Changed:
    """Give up to 1,000 delayed items (5 MB) another due time, now included."""
    change = partial(
        manual_transitions.reschedule, due_ms=_due_ms(action, delay, due), now_ms=action.context.clock.now_ms()
    )
    return _change(action, "reschedule", queue_name, item_ids, change, state="delayed", **options)


@action
def delay(
    action: Action,
    queue_name: str,
    item_ids: Sequence[str],
    *,
    delay: Duration | None = None,
    due: datetime | None = None,
    **options: Unpack[ItemOptions],
) -> Changed:
    """Delay up to 1,000 ready items (5 MB). A due time that has passed changes nothing.

    `undo` returns each to its exact place.
    """
    change = partial(manual_transitions.delay, due_ms=_due_ms(action, delay, due))
    return _change(action, "delay", queue_name, item_ids, change, state="ready", **options)


@action
def retry_dead(action: Action, queue_name: str, item_ids: Sequence[str], **options: Unpack[ItemOptions]) -> Changed:
    """Return up to 1,000 dead items (5 MB) to their places, with no attempts counted."""
    change = partial(manual_transitions.retry, now_ms=action.context.clock.now_ms())
    return _change(action, "retry", queue_name, item_ids, change, state="dead", **options)


@action
def release(action: Action, queue_name: str, item_ids: Sequence[str], **options: Unpack[ItemOptions]) -> Changed:
    """Release up to 1,000 leased items (5 MB). Acknowledgements of their workers are refused from now on.

    An item without attempts left is dead.
    """
    why = check_text(options.get("reason", ""), MAX_REASON)
    change = partial(manual_transitions.release, now_ms=action.context.clock.now_ms(), reason=why)
    return _change(action, "release", queue_name, item_ids, change, state="leased", **options)


def _due_ms(action: Action, delay: Duration | None, due: datetime | None) -> int | None:
    when = either(delay, due)
    if when is None:
        raise BadTime("Say when the items shall be due: delay= or due=.")
    return due_ms(when, action.context.clock())


def _change(
    action: Action,
    verb: str,
    queue_name: str,
    item_ids: Sequence[str],
    change: Callable[..., Changes],
    *,
    state: str = "",
    to: str | None = None,
    reason: str = "",
    expect_id: int | None = None,
    expect: Mapping[str, str] | None = None,
    skip_missing: bool = False,
) -> Changed:
    """Find items, check their etags, change them, keep the changes in the trash, and record them.

    `change` is a function of `queues.items` that takes the transaction, the keyspace, the config (and that of the queue
    `to`) and the items.
    """
    locate.check_number(item_ids)
    tr, queue = action.tr, action.queue(queue_name, expect_id)
    target = None if to is None else other_queue(queue, action.queue(to)).config
    config = queue.config
    if state and queue.attached:
        never = STATE_WORDS["delayed" if state == "ready" else state]
        raise NotForAttached(queue.name, "its items are never {never}.", never=never)
    found = locate.find(tr, action.keyspace, config, item_ids, skip_missing=skip_missing, expect=expect)
    items = found.stored_items
    if state and skip_missing:
        items = manual_transitions.in_state(items, state) or items
    changes = change(tr, action.keyspace, *([config] if target is None else [config, target]), items)
    skipped = found.missing + len(found.stored_items) - len(changes)
    if not changes:
        return Changed(count=0, skipped=skipped, trash_id=None)
    trash_id = action.new_id()
    action.trash.put_changes(tr, trash_id, config, changes, by=action.actor, act=verb, to=target)
    before = after = None
    if len(changes) == 1:
        before = locate.item_of(changes[0].before, config)
        if changes[0].after is not None:
            after = shown(locate.item_of(changes[0].after, target or config))
    action.record(
        queue,
        verb,
        count=len(changes),
        item=None if before is None else before.id,
        items=[each.before.id for each in changes],
        reason=reason,
        before=None if before is None else shown(before),
        after=after if target is None else {**(after or {}), "to": target.name},
        also=None if target is None else target.id,
    )
    died = sum(
        each.after is not None and (each.before.state, each.after.state) == ("leased", "dead") for each in changes
    )
    return Changed(count=len(changes), skipped=skipped, trash_id=action.kept(trash_id), died=died)
