"""Pushing more than one transaction takes, as a job: chunk by chunk, in order, with progress, canceled and undone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from queues.actions.actor import Note
from queues.actions.bulk import BulkActs
from queues.bulk import incoming
from queues.bulk.bulk_job import PUSH, RUNNING, Job, begin_job
from queues.bulk.incoming import Arrival
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
from queues.items import admission
from queues.items.admission import check_value
from queues.kv.port import Transaction
from queues.model.config import MAX_REASON, check_text
from queues.model.duration import Duration
from queues.model.priority import normalize
from queues.operations.delay import due_ms, either
from queues.queue import Queue

#: Items of one such job.
MAX_ITEMS = 100_000


class PushJobs(BulkActs):
    """The acts of one person that push very many items."""

    def begin_push(
        self,
        queue_name: str,
        items: Sequence[Arrival],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        reason: str = "",
        expect_id: int | None = None,
    ) -> Job:
        """Note that at most 100,000 items are to be pushed, in this order; a runner does it, or `run_bulk`.

        `delay` counts from now, `due` holds for all. What cannot come in as the queue is now is refused at once.
        """
        reason = check_text(reason, MAX_REASON)
        if not 1 <= len(items) <= MAX_ITEMS:
            raise BadLimit("A job pushes 1 to {most:,} items, not {count:,}.", most=MAX_ITEMS, count=len(items))
        job_id, when = self._context.id_generator.new_id(), either(delay, due)
        ready_ms = None if when is None else due_ms(when, self._context.clock())
        checked = _checked(self._catalog.queue(queue_name), items)
        kv, keyspace = self._context.kv, self._context.keyspace

        def refuse(tr: Transaction) -> Queue:
            queue = self._queue(tr, queue_name, expect_id)
            if queue.attached:
                raise NotForAttached(queue.name, "its items are pushed 1,000 at once at most.")
            admission.admit(tr, keyspace.queue(queue.id), queue.config, (len(value) for value, _ in checked))
            return queue

        def begin(tr: Transaction, audit: Note) -> Job:
            queue = refuse(tr)
            # Read so that it conflicts: a commit that is late never lands behind what clears the items.
            if tr.get(keyspace.incoming(job_id, 0)).wait() is None:
                raise JobEnded("What it was to push was swept before it began: nothing was pushed. Push it again.")
            job = Job(
                id=job_id.hex(),
                act=PUSH,
                queue_id=queue.id,
                queue=queue.name,
                state="ready" if ready_ms is None else "delayed",
                status=RUNNING,
                by=self._actor,
                via=self._via,
                reason=reason,
                total=len(checked),
                ready_ms=ready_ms,
            )
            begin_job(tr, keyspace, job)
            self._tell(audit, queue, "begin_job", job, count=len(checked))
            return job

        kv.transact(refuse, background=True)
        try:
            incoming.lay_down(kv, keyspace, job_id, checked)
            return self._act(begin)
        except IdTaken:
            raise  # What lies there is another job's.
        except OutcomeUnknown:
            raise  # It may have begun: what no job wants is swept.
        except BaseException:
            with suppress(StoreError):  # Swept later as well; what went wrong first is what is told.
                incoming.clear(kv, keyspace, job_id)
            raise


def _checked(queue: Queue, items: Sequence[Arrival]) -> list[Arrival]:
    """Return items as they go into the store; raise what tells why they cannot."""
    fifo, kind = queue.kind == "fifo", queue.priority_type
    if fifo and any(priority is not None for _, priority in items):
        raise WrongKind("{queue} is a fifo queue: its items have no priority.", queue=display_name(queue.name))
    return [(check_value(value), None if fifo else normalize(priority, kind)) for value, priority in items]
