"""Actions at the ends of a queue: pop into the trash, or lease the item that was confirmed."""

from dataclasses import dataclass

from queues.actions.audited_action import Action, action, shown
from queues.errors import HeadChanged, ItemChanged, WrongKind, display_name
from queues.items import locate
from queues.items.counters import note_by_hand
from queues.kv.port import Transaction
from queues.model.cursor import End
from queues.model.duration import LEASE, Duration, seconds_of
from queues.model.item import Item
from queues.operations.lease import Lease, as_leases, lease_request, leasing_end
from queues.operations.lease_block import QueueBinding
from queues.operations.peek import PeekManyRequest, check_end
from queues.operations.pop import pop_request
from queues.queue import AnyQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Popped:
    """An item that an action removed, and the trash id that undoes it."""

    item: Item
    #: None if the trash keeps nothing.
    trash_id: str | None


@action
def pop(
    action: Action,
    queue_name: str,
    *,
    end: str = "min",
    reason: str = "",
    expect: str | None = None,
    expect_id: int | None = None,
) -> Popped | None:
    """Move the item at one end into the trash and return it. None when nothing is ready.

    `expect` is the id of the confirmed item: another one at that end raises `HeadChanged`.
    """
    return next(iter(_pop(action, action.queue(queue_name, expect_id), 1, end, reason, expect)), None)


@action
def pop_many(
    action: Action,
    queue_name: str,
    n: int,
    *,
    end: str = "min",
    reason: str = "",
    expect: str | None = None,
    expect_id: int | None = None,
) -> list[Popped]:
    """Move at most `n` items (1 to 1,000) from one end into the trash. It is one action, with one audit record."""
    return _pop(action, action.queue(queue_name, expect_id), n, end, reason, expect)


def _pop(action: Action, queue: AnyQueue, n: int, end: str, reason: str, expect: str | None) -> list[Popped]:
    fifo = queue.kind == "fifo"
    if fifo and end in ("max", "tail"):
        raise WrongKind("{queue} is a fifo queue: items leave at its head only.", queue=display_name(queue.name))
    request = pop_request(queue.opened, n, "min" if fifo else check_end(end), action.tr, by_hand=True)
    _confirm(queue, expect, request.end, action.tr)
    taken = queue.opened.send(request, action.tr)
    if not taken:
        return []
    note_by_hand(action.tr, queue.opened.keys, "pop", len(taken))
    trash_ids = action.context.id_generator.new_ids(len(taken))
    action.trash.put_each(action.tr, trash_ids, queue.config, taken, by=action.actor)
    one = taken[0] if len(taken) == 1 else None
    action.record(
        queue,
        "dequeue" if fifo else f"pop_{end}",
        count=len(taken),
        item=None if one is None else one.id,
        items=[item.id for item in taken],
        reason=reason,
        before=None if one is None else shown(one),
    )
    return [Popped(item=item, trash_id=action.kept(trash_id)) for trash_id, item in zip(trash_ids, taken, strict=True)]


@action
def lease(
    action: Action,
    queue_name: str,
    *,
    seconds: Duration,
    end: str = "min",
    reason: str = "",
    expect: str | None = None,
    etag: str | None = None,
    expect_id: int | None = None,
) -> Lease | None:
    """Lease the item at one end in this person's name; None when nothing is ready.

    `expect` is the id of the confirmed item: another one at that end raises `HeadChanged`. The same item with another
    `etag` raises `ItemChanged`.
    """
    tr, queue = action.tr, action.queue(queue_name, expect_id)
    opened, side, held = queue.opened, leasing_end(queue.opened, end), seconds_of(seconds, LEASE, above_zero=True)
    # In this person's name, which makes no consumer: it is settled by the verbs of its queue.
    request = lease_request(opened, 1, seconds=held, end=side, worker=action.actor, tr=tr)
    _confirm(queue, expect, side, tr)
    if etag is not None and expect is not None:
        seen = locate.look(tr, action.keyspace, queue.config, [expect])
        if any(each.etag != etag for each in seen.picked):
            raise ItemChanged("The item is not as shown any more: changed meanwhile. Nothing was taken.")
    entries = opened.send(request, tr)
    lease = next(iter(as_leases(opened, entries, QueueBinding(queue, seconds=held))), None)
    if lease is None:
        return None
    item = lease.item
    note_by_hand(tr, opened.keys, "lease", 1)
    after = {"seconds": held, "worker": action.actor}
    action.record(queue, "lease", item=item.id, reason=reason, before=shown(item), after=after)
    return lease


def _confirm(queue: AnyQueue, expect: str | None, end: End, tr: Transaction) -> None:
    """Raise `HeadChanged` unless the confirmed item is the one at this end, before anything is taken."""
    if expect is None:
        return
    heads = queue.opened.look(PeekManyRequest(queue.id, 1, end), tr)
    if not heads:
        raise HeadChanged("Nothing is ready here any more: nothing was taken.", None)
    if heads[0].id != expect:
        raise HeadChanged("Another item is at this end now than the one you confirmed: nothing was taken.", heads[0])
