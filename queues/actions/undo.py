"""Undo: one entry point for every action, by its trash id or by the id of its bulk job."""

from dataclasses import dataclass, replace

from queues.actions.audited_action import Action, action
from queues.bulk.bulk_job import CANCELED, DONE, RUNNING, UNDO, Job, begin_job, ended, exists, read_job, write_job
from queues.bulk.checks import queue_of
from queues.errors import JobEnded
from queues.model.config import MAX_REASON, check_text
from queues.model.ids import minted_ms
from queues.model.item import Item
from queues.trash.trash import already_restored


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did, or began."""

    #: The name of the queue that is back, or that has the items.
    queue: str
    #: Items that are as they were.
    count: int
    #: Items that were taken or changed since, and left alone.
    skipped: int
    #: The one item that is back, if the action removed a single one.
    item: Item | None = None
    #: Of a push: its items are in this entry now, which undoes the undo; None if the trash keeps nothing.
    trash_id: str | None = None
    #: The bulk job that undoes a bulk job: a runner does it, or `run_bulk`.
    job: Job | None = None


@action
def undo(action: Action, action_id: str, *, partial: bool = False, reason: str = "") -> Undone:
    """Undo an action by its trash id or job id. Items and queues are again what they were, where they were.

    Items that were pushed go into the trash. Raises `ItemGoneOn` when items were taken or changed since; with `partial`
    those are left alone and the rest undone. Of a bulk job, undoing begins as a job of its own, always partial, and
    goes on where an earlier one ended. Raises `TrashNotFound`, `AlreadyRestored`, and what `Store.restore` does.
    """
    if exists(action.tr, action.keyspace, action_id):
        job = _undo_job(action, action_id, reason)
        return Undone(queue=job.queue, count=0, skipped=0, job=job)
    tr, trash, into = action.tr, action.trash, action.new_id()
    entry = trash.get(action_id, tr=tr)
    now_ms = action.context.clock.now_ms()
    restored = trash.restore(tr, action_id, partial=partial, by=action.actor, at_ms=now_ms, into=into)
    action.record(
        restored.config,
        {"queue": "restore_queue", "item": "put_back"}.get(entry.what, "undo"),
        count=restored.count,
        item=None if restored.item is None else restored.item.id,
        items=restored.items,
        reason=reason,
        before={"act": entry.act},
    )
    return Undone(
        queue=restored.config.name,
        count=restored.count,
        skipped=restored.skipped,
        item=restored.item,
        trash_id=action.kept(into) if restored.lifted else None,
    )


def _undo_job(action: Action, job_id: str, reason: str) -> Job:
    """Begin to undo all chunks of a bulk job, and cancel it if it is running; return the job that undoes it."""
    tr, keyspace = action.tr, action.keyspace
    job = read_job(tr, keyspace, job_id)
    if job.act == UNDO and (job.running or not job.lifted):
        raise JobEnded("An undo is not undone: cancel it while it is running, or begin the act again.")
    before = None if job.undo is None else read_job(tr, keyspace, job.undo)
    if before is not None and before.running:
        return before
    if before is not None and before.status == DONE:
        raise already_restored(before.by, before.ended_ms or minted_ms(bytes.fromhex(before.id)))
    whole = job.lifted if job.act == UNDO else job.chunks
    left = whole if before is None else before.chunks
    undoing = Job(
        id=action.new_id().hex(),
        act=UNDO,
        queue_id=job.queue_id,
        queue=job.queue,
        state=job.state,
        status=RUNNING,
        by=action.actor,
        via=action.via,
        reason=check_text(reason, MAX_REASON),
        query=job.query,
        to=job.to,
        to_id=job.to_id,
        total=job.done if left == whole else None,
        chunks=left,
        of=job.id,
    )
    begin_job(tr, keyspace, undoing)
    after = ended(job, CANCELED, now_ms=action.context.clock.now_ms()) if job.running else job
    write_job(tr, keyspace, replace(after, undo=undoing.id), job)
    if job.running:
        action.update_job(after)
    action.record_job(queue_of(tr, keyspace, job), undoing)
    return undoing
