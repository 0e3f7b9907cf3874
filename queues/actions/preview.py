"""Previews: items with their etags, and what an action on them would do, computed without changing anything."""

from collections.abc import Sequence
from dataclasses import dataclass

from queues.actions import position as positions
from queues.actions.audited_action import Frame, find_queue, other_queue
from queues.actions.position import Position
from queues.items import item_changes, locate
from queues.items.item_changes import Place
from queues.items.locate import Selection
from queues.kv.port import ReadTransaction
from queues.model.item import Item
from queues.model.priority import Priority
from queues.queue import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprioritizePreview:
    """What `reprioritize` would do."""

    #: Each item before and after, in the order asked for; those that would not change are left out.
    changes: tuple[tuple[Item, Item], ...]
    #: The present place of the first ready item at the minimum end; None: no ready item changes.
    was: Position | None
    #: The places that the first and the last of them would have.
    first: Position | None
    last: Position | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What `move_items` would do."""

    queue: Queue
    #: Of each item in that queue, in the order asked for; None in a FIFO queue.
    priorities: tuple[Priority | None, ...]


def pick(
    frame: Frame,
    queue_name: str,
    item_ids: Sequence[str],
    *,
    expect_id: int | None = None,
    tr: ReadTransaction | None = None,
) -> Selection:
    """Return up to 1,000 items of any state with their etags. Actions take these as `expect`."""

    def look(tr: ReadTransaction) -> Selection:
        queue = find_queue(frame.context, tr, queue_name, expect_id)
        return locate.look(tr, frame.context.keyspace, queue.config, item_ids)

    return frame.read(look, tr)


def preview_move(
    frame: Frame,
    queue_name: str,
    item_ids: Sequence[str],
    to: str,
    *,
    priority: Priority | None = None,
    expect_id: int | None = None,
    tr: ReadTransaction | None = None,
) -> Arrival:
    """Return where `move_items` would put items, or raise why they do not fit there."""

    def look(tr: ReadTransaction) -> Arrival:
        queue = find_queue(frame.context, tr, queue_name, expect_id)
        target = other_queue(queue, find_queue(frame.context, tr, to))
        found = locate.find(tr, frame.context.keyspace, queue.config, item_ids, skip_missing=True).stored_items
        priorities = item_changes.arriving(queue.config, target.config, found, priority=priority)
        return Arrival(queue=target, priorities=tuple(priorities))

    return frame.read(look, tr)


def preview_reprioritize(
    frame: Frame,
    queue_name: str,
    item_ids: Sequence[str],
    *,
    priority: Priority | None = None,
    shift: Priority | None = None,
    place: Place | None = None,
    expect_id: int | None = None,
    tr: ReadTransaction | None = None,
) -> ReprioritizePreview:
    """Return what `reprioritize` would do now, by the same rules and refusals."""
    keyspace = frame.context.keyspace

    def look(tr: ReadTransaction) -> ReprioritizePreview:
        queue = find_queue(frame.context, tr, queue_name, expect_id)
        config = queue.config
        found = locate.find(tr, keyspace, config, item_ids, skip_missing=True).stored_items
        afters = item_changes.reprioritized(
            tr, keyspace, config, found, priority=priority, shift=shift, place=place, newest=config.base
        )
        changes = [(now, then) for now, then in zip(found, afters, strict=True) if now != then]
        leaving = [now for now, _ in changes]
        keys = keyspace.queue(config.id)

        def position(suffix: bytes) -> Position:
            return positions.position(tr, keys, queue, suffix, leaving)

        before = sorted(now.suffix for now in leaving if now.state == "ready")
        after = sorted(then.suffix for _, then in changes if then.state == "ready")
        ends = [position(suffix) for suffix in dict.fromkeys((*after[:1], *after[-1:]))]
        return ReprioritizePreview(
            changes=tuple((locate.item_of(now, config), locate.item_of(then, config)) for now, then in changes),
            was=position(before[0]) if before else None,
            first=ends[0] if ends else None,
            last=ends[-1] if ends else None,
        )

    return frame.read(look, tr)
