"""Bulk jobs of a person: begin, run, cancel and resume an action on all items that match a query."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from queues.actions.audited_action import Action, Frame, action, other_queue
from queues.bulk.bulk_job import (
    CANCELED,
    DONE,
    HELD_MS,
    RUNNING,
    Job,
    begin_job,
    ended,
    read_job,
    read_page,
    read_running,
    write_job,
)
from queues.bulk.checks import (
    ahead_of,
    bounded,
    bounds,
    check,
    fitting,
    order_of,
    queue_of,
)
from queues.bulk.chunk import Shown, Steps, all_shown
from queues.bulk.log_search import has_changed, lease_released
from queues.errors import STATE_WORDS, DepthChanged, JobEnded, NotForAttached, display_name
from queues.items.item_changes import Place
from queues.items.scan import Query, lanes_of
from queues.kv.port import ReadTransaction
from queues.model.config import MAX_REASON, check_text
from queues.model.item import Item
from queues.model.paging import RecordPage
from queues.model.priority import Priority, normalize


@action
def begin_bulk(
    action: Action,
    act: str,
    queue_name: str,
    *,
    query: Query | None = None,
    state: str = "ready",
    low: Priority | None = None,
    high: Priority | None = None,
    to: str | None = None,
    priority: Priority | None = None,
    shift: Priority | None = None,
    place: Place | None = None,
    rate: float | None = None,
    total: int | None = None,
    concerned: int | None = None,
    expect_depth: int | None = None,
    tolerance: int = 0,
    reason: str = "",
    expect_id: int | None = None,
) -> Job:
    """Begin a bulk job on all items that match a query, or of a state. A runner does it, or `run_bulk`.

    `act` is delete, move (`to`, perhaps with a `priority` for all), reprioritize (`priority`, `shift` or `place`),
    promote, retry or release: `queues.bulk.checks.ACTS` says which for which state. Items that are pushed behind the
    last one of now are not changed. Delayed items are promoted in the order in which they were pushed. `rate` limits
    the items changed a second, `total` says how many it is expected to meet where no counter does, `concerned` how many
    of these match. A depth of the state that differs by more than `tolerance` from `expect_depth` raises
    `DepthChanged`.
    """
    wanted = query or Query(state=state, low=low, high=high)
    check(act, wanted, priority, shift, place, rate)
    tr, keyspace, queue = action.tr, action.keyspace, action.queue(queue_name, expect_id)
    if queue.attached:
        raise NotForAttached(queue.name, "its items are moved and deleted by pages, or purged.")
    target = other_queue(queue, action.queue(to or "")) if act == "move" else None
    wanted = fitting(queue, wanted, act, place)
    # Total and ends are of the moment at which it begins: concurrent pushes and pops do not conflict.
    depth = queue.depth(wanted.state, tr=tr.snapshot)
    if expect_depth is not None and abs(depth - expect_depth) > tolerance:
        raise DepthChanged(
            "{queue} holds {depth:,} {state} items now, not the {seen:,} you confirmed: nothing was begun.",
            depth,
            queue=display_name(queue.name),
            depth=depth,
            state=STATE_WORDS[wanted.state],
            seen=expect_depth,
        )
    if act == "reprioritize" and priority is not None:
        priority = normalize(priority, queue.config.priority_type)
    order = order_of(act, wanted, to=priority, shifts=shift is not None, ordered=place is not None)
    ends = bounds(tr.snapshot, lanes_of(keyspace.queue(queue.id), queue.config, order, wanted))
    job = Job(
        id=action.new_id().hex(),
        act=act,
        queue_id=queue.id,
        queue=queue.name,
        state=wanted.state,
        status=DONE if ends is None else RUNNING,
        by=action.actor,
        via=action.via,
        reason=check_text(reason, MAX_REASON),
        query=wanted.encode(),
        to=None if target is None else target.name,
        to_id=None if target is None else target.id,
        priority=priority,
        shift=shift,
        place=place,
        total=total if bounded(wanted, order) else depth,
        concerned=concerned,
        mark=None if ends is None else ends[0],
        bound=b"" if ends is None else ends[1],
        order=order,
        ahead=None if place is None else ahead_of(tr, keyspace, queue.config, wanted.state, place, depth),
        rate=rate,
        ended_ms=action.context.clock.now_ms() if ends is None else None,
    )
    begin_job(tr, keyspace, job)
    action.record_job(queue, job)
    return job


def run_bulk(
    frame: Frame,
    job_id: str,
    *,
    progress: Callable[[Job], bool] | None = None,
    shown: Shown = all_shown,
    pause: Callable[[float], object] = time.sleep,
) -> Job:
    """Do the rest of a job in this thread and return it. `progress` is called after each step: False stops.

    A runner that has the job leaves it. An item that cannot be changed (`BadPriority`, `ValueTooLarge` …) stays, with
    all behind it: the job has `failed` then, and says at which item and why.
    """
    steps = Steps(frame.context, job_id, shown=shown)
    job = steps.hold()
    while job is not None and job.running and steps.holds(job):
        wait = job.wait(frame.context.clock.now_ms())
        if wait > 0:
            pause(min(wait, HELD_MS / 3000))
            job = steps.hold(is_free=steps.holds)
            continue
        job = steps.take(job)
        if progress is not None and not progress(job):
            steps.let_go()
            break
    return job or read(frame, job_id)


@action
def cancel_bulk(action: Action, job_id: str, *, reason: str = "") -> Job:
    """End a job after the chunk that is being done. What it did stays done until it is undone."""
    job = read_job(action.tr, action.keyspace, job_id)
    if not job.running:
        return job
    return _write(action, "cancel_job", job, ended(job, CANCELED, now_ms=action.context.clock.now_ms()), reason)


@action
def resume_bulk(action: Action, job_id: str, *, reason: str = "") -> Job:
    """Go on with a job that was canceled or has failed. Raise `JobEnded` when nothing is left of it."""
    job = read_job(action.tr, action.keyspace, job_id)
    if job.running:
        return job
    if job.status == DONE:
        raise JobEnded("This job is done: nothing is left of it.")
    if job.undo is not None:
        raise JobEnded("This job was undone, or is being undone: begin another one.")
    if job.of is not None and read_job(action.tr, action.keyspace, job.of).undo != job.id:
        raise JobEnded("What this job undid was undone by another one: nothing is left of it.")
    after = replace(job, status=RUNNING, ended_ms=None, failure="", failed_at=None, held_ms=0, seen=(), due_ms=0)
    return _write(action, "resume_job", job, after, reason)


def _write(action: Action, verb: str, job: Job, after: Job, reason: str) -> Job:
    write_job(action.tr, action.keyspace, after, job)
    action.update_job(after)
    queue = queue_of(action.tr, action.keyspace, job)
    action.record(queue, verb, count=0, reason=reason, after=after.in_audit)
    return after


def read(frame: Frame, job_id: str, *, tr: ReadTransaction | None = None) -> Job:
    """Return a job as it is now; raise `JobNotFound`."""
    return frame.read(lambda tr: read_job(tr, frame.context.keyspace, job_id), tr)


def newest(frame: Frame, limit: int = 50, *, tr: ReadTransaction | None = None) -> list[Job]:
    """Return jobs, the newest first."""
    return list(page(frame, limit=limit, tr=tr).entries)


def page(
    frame: Frame,
    *,
    limit: int = 50,
    after: str | None = None,
    visible: Callable[[Job], bool] | None = None,
    tr: ReadTransaction | None = None,
) -> RecordPage[Job]:
    """Return a page of jobs, the newest first, of those that are `visible`; raise `BadCursor`."""
    keyspace = frame.context.keyspace
    return frame.read(lambda tr: read_page(tr, keyspace, limit=limit, after=after, visible=visible), tr)


def running(frame: Frame, *, tr: ReadTransaction | None = None) -> list[Job]:
    """Return the jobs that have not ended, the oldest first."""
    return frame.read(lambda tr: read_running(tr, frame.context.keyspace), tr)


def changed_by(frame: Frame, job: Job, item: Item, *, tr: ReadTransaction | None = None) -> bool | None:
    """Say whether a job has moved or re-prioritized an item. None when that is not known any more."""
    return frame.read(lambda tr: has_changed(tr, frame.context.keyspace, job, item), tr)


def lease_released_by(frame: Frame, job: Job, item: Item, *, tr: ReadTransaction | None = None) -> datetime | None:
    """Return when the lease of an item began that a job released. None: it released none, as far as is known."""
    return frame.read(lambda tr: lease_released(tr, frame.context.keyspace, job, item), tr)
