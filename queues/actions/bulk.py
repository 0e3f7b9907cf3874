"""Acts on all items that fit a query: chunk by chunk, each one transaction with its trash, its audit record and a mark.

At every moment each item is in exactly one place. A job that is stopped or killed goes on where it was, run by anybody;
one that is canceled has done whole chunks. Undoing is a job of its own: chunk after chunk, the last one first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from queues.actions.actor import Note
from queues.actions.items import ItemActs, Undone
from queues.attached_queue import open_queue
from queues.bulk.apply import ahead_of, bounded, check, config_of, fitting
from queues.bulk.bulk_job import (
    DONE,
    HELD_MS,
    RUNNING,
    UNDO,
    Job,
    JobPage,
    begin_job,
    read_job,
    read_jobs,
    read_page,
    read_running,
    write_job,
)
from queues.bulk.runner import job_leadership
from queues.bulk.scan import Shown, all_shown, bounds, just_before, lanes_of, order_of
from queues.bulk.step import Steps, canceled
from queues.errors import (
    STATE_WORDS,
    DepthChanged,
    JobEnded,
    NotForAttached,
    SameQueue,
    display_name,
)
from queues.items.edit import Place
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import MAX_REASON, Config, check_text
from queues.model.ids import minted_ms
from queues.model.priority import Priority
from queues.model.records import UNREADABLE
from queues.operations.search import Query
from queues.queue import Queue
from queues.trash.trash import already_restored


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A queue for the audit."""

    id: int
    name: str


class BulkActs(ItemActs):
    """The acts of one person on many items."""

    def begin_bulk(
        self,
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
        """Note an act on all items that fit a query, or of a state; a runner does it, or `run_bulk`.

        `act` is delete, move (`to`, perhaps with a `priority` for all), reprioritize (`priority`, `shift` or `place`),
        promote, retry or release: `queues.bulk.apply.ACTS` says which for which state. What is pushed behind the last
        item that is there now is not concerned. `rate` limits the items changed a second, `total` tells how many it is
        expected to meet where no counter does, `concerned` how many of these were found to fit. A depth of the state
        further than `tolerance` from `expect_depth` raises `DepthChanged`.
        """
        wanted = query or Query(state=state, low=low, high=high)
        check(act, wanted, priority, shift, place, rate)
        job_id, now_ms = self._context.id_generator.new_id(), self._context.now_ms()

        def begin(tr: Transaction, audit: Note) -> Job:
            queue = self._queue(tr, queue_name, expect_id)
            target = self._target(tr, act, queue, to)
            config, keyspace = queue.config, self._context.keyspace
            meant = fitting(queue, wanted, act, place)
            # Total and ends are of the moment at which it begins: whoever pushes or pops meanwhile is not in its way.
            depth = queue.depth(meant.state, tr=tr.snapshot)
            if expect_depth is not None and abs(depth - expect_depth) > tolerance:
                raise DepthChanged(
                    "{queue} holds {depth:,} {state} items now, not the {seen:,} you confirmed: nothing was begun.",
                    depth,
                    queue=display_name(queue.name),
                    depth=depth,
                    state=STATE_WORDS[meant.state],
                    seen=expect_depth,
                )
            order = order_of(act, meant, shifts=shift is not None, ordered=place is not None)
            ends = bounds(tr.snapshot, lanes_of(keyspace.queue(queue.id), config, meant, order))
            job = Job(
                id=job_id.hex(),
                act=act,
                queue_id=queue.id,
                queue=queue.name,
                state=meant.state,
                status=DONE if ends is None else RUNNING,
                by=self._actor,
                via=self._via,
                reason=check_text(reason, MAX_REASON),
                query=meant.encode(),
                to=None if target is None else target.name,
                to_id=None if target is None else target.id,
                priority=priority,
                shift=shift,
                place=place,
                total=total if bounded(meant, order) else depth,
                concerned=concerned,
                mark=None if ends is None else just_before(ends),
                bound=b"" if ends is None else ends[1],
                order=order,
                ahead=None if place is None else ahead_of(tr, keyspace, config, meant.state, place, depth),
                rate=rate,
                ended_ms=now_ms if ends is None else None,
            )
            begin_job(tr, keyspace, job)
            self._tell(audit, queue, "begin_job", job, count=job.total or 0, also=job.to_id)
            return job

        return self._act(begin)

    def run_bulk(
        self,
        job_id: str,
        *,
        progress: Callable[[Job], bool] | None = None,
        shown: Shown = all_shown,
        pause: Callable[[float], object] = time.sleep,
    ) -> Job:
        """Do what is left of a job here and now and return it; `progress` hears of every step: False stops.

        Whoever runs it now leaves it to us. An item that does not fit (`BadPriority`, `ValueTooLarge` …) stays, with
        all behind it: the job has `failed` then, and says at which item and why.
        """
        leadership = job_leadership(self._context)
        steps = Steps(self._context, job_id, leadership, shown=shown)
        job = steps.hold(take_over=True)
        while job is not None and job.running and leadership.holds(job.holding):
            wait = job.wait(self._context.now_ms())
            if wait > 0:
                pause(min(wait, HELD_MS / 3000))
                job = steps.hold()
                continue
            job = steps.take(job)
            if progress is not None and not progress(job):
                steps.let_go()
                break
        return job or self.job(job_id)

    def cancel_bulk(self, job_id: str, *, reason: str = "") -> Job:
        """Let a job end after the chunk that is being done; what it did stays done until it is undone."""
        now_ms = self._context.now_ms()

        def cancel(tr: Transaction, audit: Note) -> Job:
            job = read_job(tr, self._context.keyspace, job_id)
            if not job.running:
                return job
            after = canceled(job, now_ms=now_ms)
            write_job(tr, self._context.keyspace, after, job)
            self._tell(audit, self._of(tr, job), "cancel_job", after, reason=reason)
            return after

        return self._act(cancel)

    def resume_bulk(self, job_id: str, *, reason: str = "") -> Job:
        """Let a job go on that was canceled or has failed; raise `JobEnded` when nothing is left of it."""

        def resume(tr: Transaction, audit: Note) -> Job:
            keyspace = self._context.keyspace
            job = read_job(tr, keyspace, job_id)
            if job.running:
                return job
            if job.status == DONE:
                raise JobEnded("This job is done: nothing is left of it.")
            if job.undo is not None:
                raise JobEnded("This job was undone, or is being undone: begin another one.")
            if job.of is not None and read_job(tr, keyspace, job.of).undo != job.id:
                raise JobEnded("What this job undid was undone by another one: nothing is left of it.")
            after = replace(
                job, status=RUNNING, ended_ms=None, failure="", failed_at=None, held_ms=0, seen=(), due_ms=0
            )
            write_job(tr, keyspace, after, job)
            self._tell(audit, self._of(tr, job), "resume_job", after, reason=reason)
            return after

        return self._act(resume)

    def begin_undo(self, job_id: str, *, reason: str = "") -> Job:
        """Note that all chunks of a job are to be undone, and return the job that does it; one that runs is canceled.

        Begun again, it goes on where it was; raises `AlreadyRestored` when nothing is left of it.
        """
        undo_id, now_ms = self._context.id_generator.new_id(), self._context.now_ms()

        def begin(tr: Transaction, audit: Note) -> Job:
            keyspace = self._context.keyspace
            job = read_job(tr, keyspace, job_id)
            if job.act == UNDO:
                raise JobEnded("An undo is not undone: cancel it while it is running, or begin the act again.")
            before = None if job.undo is None else read_job(tr, keyspace, job.undo)
            if before is not None and before.running:
                return before
            if before is not None and before.status == DONE:
                raise already_restored(before.by, before.ended_ms or minted_ms(bytes.fromhex(before.id)))
            left = job.chunks if before is None else before.chunks
            undo = Job(
                id=undo_id.hex(),
                act=UNDO,
                queue_id=job.queue_id,
                queue=job.queue,
                state=job.state,
                status=RUNNING,
                by=self._actor,
                via=self._via,
                reason=check_text(reason, MAX_REASON),
                query=job.query,
                to=job.to,
                to_id=job.to_id,
                total=job.done if left == job.chunks else None,
                chunks=left,
                of=job.id,
            )
            begin_job(tr, keyspace, undo)
            after = canceled(job, now_ms=now_ms) if job.running else job
            write_job(tr, keyspace, replace(after, undo=undo.id), job)
            self._tell(audit, self._of(tr, job), "undo_job", undo, count=job.done, also=job.to_id)
            return undo

        return self._act(begin)

    def undo_bulk(self, job_id: str, *, progress: Callable[[Job], bool] | None = None) -> Undone:
        """Undo all chunks of a job here and now; items that have gone on since are left alone.

        Raises `JobEnded` when it cannot be done, as a queue is gone.
        """
        undo = self.run_bulk(self.begin_undo(job_id).id, progress=progress)
        if undo.failure:
            raise JobEnded("Undoing has failed after {count:,} items: {failure}", count=undo.done, failure=undo.failure)
        keyspace = self._context.keyspace
        config = self._context.kv.read(lambda tr: config_of(tr, keyspace, undo.queue_id, undo.queue))
        return Undone(queue=open_queue(self._context, config), count=undo.done, skipped=undo.skipped)

    # Looking

    def job(self, job_id: str) -> Job:
        """Return a job as it is now; raise `JobNotFound`."""
        return self._context.read(lambda tr: read_job(tr, self._context.keyspace, job_id), None)

    def jobs(self, limit: int = 50) -> list[Job]:
        """Return jobs, the newest first."""
        return self._context.read(lambda tr: read_jobs(tr, self._context.keyspace, limit), None)

    def job_page(
        self, *, limit: int = 50, after: str | None = None, visible: Callable[[Job], bool] | None = None
    ) -> JobPage:
        """Return a page of jobs, the newest first, of those that are `visible`; raise `BadCursor`."""
        keyspace = self._context.keyspace
        return self._context.read(lambda tr: read_page(tr, keyspace, limit=limit, after=after, visible=visible), None)

    def running_jobs(self) -> list[Job]:
        """Return the jobs that have not ended, the oldest first."""
        return self._context.read(lambda tr: read_running(tr, self._context.keyspace), None)

    # Inside

    def _target(self, tr: Transaction, act: str, queue: Queue, to: str | None) -> Queue | None:
        if queue.attached:
            raise NotForAttached(queue.name, "its items are moved and deleted by pages, or purged.")
        if act != "move":
            return None
        target = self._catalog.queue(to or "", tr=tr)
        if target.id == queue.id:
            raise SameQueue("The items are in {queue} already: name another queue.", queue=display_name(queue.name))
        return target

    def _of(self, tr: ReadTransaction, job: Job) -> _Named:
        """Return what a job's queue is called now, or was when it is gone or cannot be read."""
        record = tr.get(self._context.keyspace.config(job.queue_id)).wait()
        try:
            name = job.queue if record is None else Config.decode(record).name
        except UNREADABLE:
            name = job.queue
        return _Named(id=job.queue_id, name=name)

    def _tell(
        self,
        audit: Note,
        queue: Queue | _Named,
        verb: str,
        job: Job,
        *,
        count: int = 0,
        reason: str | None = None,
        also: int | None = None,
    ) -> None:
        after = {"job": job.id, "act": job.act} | ({} if job.to is None else {"to": job.to})
        audit(queue, verb, count=count, reason=job.reason if reason is None else reason, after=after, also=also)
