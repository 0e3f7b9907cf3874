"""Actions that push: some items in one transaction, or very many as a bulk job."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack

from queues.actions.audited_action import Action, Frame, action, shown
from queues.bulk import push_parts
from queues.bulk.bulk_job import PUSH, RUNNING, Job, begin_job
from queues.bulk.push_parts import Arrival
from queues.errors import (
    BadLimit,
    IdTaken,
    JobEnded,
    NotForAttached,
    OutcomeUnknown,
    StoreError,
    WrongKind,
    display_name,
)
from queues.items import locate
from queues.items.counters import admit, note_by_hand
from queues.kv.port import Transaction
from queues.model.codec import Raw, encoded_by_person
from queues.model.config import MAX_REASON, check_text
from queues.model.duration import Duration
from queues.model.item import Item
from queues.model.moment import due_ms, either
from queues.model.priority import Priority, normalize
from queues.operations.push import each
from queues.queue import FifoQueue, Queue

#: Items of one job.
MAX_ITEMS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """Items that an action pushed, and the trash id that undoes it."""

    items: list[Item]
    trash_id: str


class PushOptions(TypedDict, total=False):
    """What every push takes besides its items."""

    delay: Duration | None
    due: datetime | None
    #: The id of the queue that is meant.
    expect_id: int | None
    reason: str


@action
def push(
    action: Action,
    queue_name: str,
    value: bytes,
    *,
    priority: Priority | None = None,
    **options: Unpack[PushOptions],
) -> Item:
    """Push one item, at once or delayed; into a FIFO queue, enqueue it."""
    return _push(action, queue_name, [(value, priority)], None, **options)[0]


@action
def push_many(
    action: Action, queue_name: str, items: Sequence[tuple[bytes, Priority | None]], **options: Unpack[PushOptions]
) -> list[Item]:
    """Push at most 1,000 items and 5 MB as one, with one audit record. `delay` or `due` hold for all of them."""
    return _push(action, queue_name, items, None, **options)


@action
def push_undoably(
    action: Action, queue_name: str, items: Sequence[tuple[bytes, Priority | None]], **options: Unpack[PushOptions]
) -> Pushed:
    """Push as `push_many` does, with an entry in the trash. `undo` removes the items that have not changed since."""
    trash_id = action.new_id()
    return Pushed(items=_push(action, queue_name, items, trash_id, **options), trash_id=trash_id.hex())


def _push(
    action: Action,
    queue_name: str,
    items: Sequence[tuple[bytes, Priority | None]],
    trash_id: bytes | None,
    *,
    delay: Duration | None = None,
    due: datetime | None = None,
    expect_id: int | None = None,
    reason: str = "",
) -> list[Item]:
    queue = action.queue(queue_name, expect_id)
    fifo = queue.kind == "fifo"
    raw: list[tuple[Any, Any]] = [(Raw(value) if isinstance(value, bytes) else value, at) for value, at in items]
    if isinstance(queue, FifoQueue):
        pushed = queue.enqueue_many([value for value, _ in raw], delay=delay, due=due, tr=action.tr)
    else:
        # The queue itself refuses a missing priority.
        pushed = queue.push_many(raw, delay=delay, due=due, tr=action.tr)
    note_by_hand(action.tr, queue.opened.keys, "push", len(pushed))
    if trash_id is not None:
        arrived = [(None, there) for there in locate.arrived(action.tr, action.keyspace, queue.config, pushed)]
        action.trash.put_changes(action.tr, trash_id, queue.config, arrived, by=action.actor, act="push")
    one = pushed[0] if len(pushed) == 1 else None
    action.record(
        queue,
        "enqueue" if fifo else "push",
        count=len(pushed),
        item=None if one is None else one.id,
        items=[item.id for item in pushed],
        reason=reason,
        after=None if one is None else shown(one),
    )
    return pushed


def begin_push(
    frame: Frame,
    queue_name: str,
    items: Sequence[Arrival],
    *,
    delay: Duration | None = None,
    due: datetime | None = None,
    reason: str = "",
    expect_id: int | None = None,
) -> Job:
    """Begin a bulk job that pushes at most 100,000 items in this order. A runner does it, or `run_bulk`.

    `delay` counts from now, `due` holds for all. Items that the queue does not take now are refused at once.
    """
    reason = check_text(reason, MAX_REASON)
    if not 1 <= len(items) <= MAX_ITEMS:
        raise BadLimit("A job pushes 1 to {most:,} items, not {count:,}.", most=MAX_ITEMS, count=len(items))
    frame.refuse_repeated()
    context, kv, keyspace = frame.context, frame.context.kv, frame.context.keyspace
    job_id, when = context.id_generator.new_id(), either(delay, due)
    ready_ms = None if when is None else due_ms(when, context.clock())
    meant = frame.catalog.queue(queue_name)
    checked = _checked(meant, items)

    def admitted(action: Action) -> Queue:
        # The items were checked for the one that had the name then.
        queue = action.queue(queue_name, meant.id if expect_id is None else expect_id)
        if queue.attached:
            raise NotForAttached(queue.name, "its items are pushed 1,000 at once at most.")
        admit(action.tr, keyspace.queue(queue.id), queue.config, (len(value) for value, _ in checked))
        return queue

    def refuse(tr: Transaction) -> None:
        admitted(Action(frame, tr))

    def begin(action: Action) -> Job:
        queue = admitted(action)
        # A read that conflicts: a late commit cannot come after the items were cleared.
        if action.tr.get(keyspace.incoming.key(job_id, 0)).wait() is None:
            raise JobEnded("What it was to push was swept before it began: nothing was pushed. Push it again.")
        job = Job(
            id=job_id.hex(),
            act=PUSH,
            queue_id=queue.id,
            queue=queue.name,
            state="ready" if ready_ms is None else "delayed",
            status=RUNNING,
            by=frame.actor,
            via=frame.via,
            reason=reason,
            total=len(checked),
            ready_ms=ready_ms,
        )
        begin_job(action.tr, keyspace, job)
        action.record_job(queue, job, "enqueue" if queue.kind == "fifo" else "push")
        return job

    kv.transact(refuse, background=True)
    try:
        push_parts.lay_down(kv, keyspace, job_id, checked)
        return frame.run(begin)
    except IdTaken:
        raise  # These items are another job's.
    except OutcomeUnknown:
        raise  # The job may have begun: items without a job are swept.
    except BaseException:
        with suppress(StoreError):  # They are swept later as well; the first error is the one to raise.
            push_parts.clear(kv, keyspace, job_id)
        raise


def _checked(queue: Queue, items: Sequence[Arrival]) -> list[Arrival]:
    """Return items as they are stored; raise what tells why they cannot be."""
    fifo, kind, codec = queue.kind == "fifo", queue.priority_type, queue.config.values

    def check(item: Arrival) -> Arrival:
        value, priority = item
        if fifo and priority is not None:
            raise WrongKind("{queue} is a fifo queue: its items have no priority.", queue=display_name(queue.name))
        return encoded_by_person(value, codec), None if fifo else normalize(priority, kind)

    return each(items, check)
