"""One step of a job that pushes: the next part of what came with it, as one transaction with trash, audit and mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from queues import incoming
from queues.backing import Backing
from queues.errors import Unreadable
from queues.job_changes import config_of
from queues.jobs import DONE, Job, ended, onward, write_job
from queues.kv.port import Transaction
from queues.unreadable import UNREADABLE, why

if TYPE_CHECKING:
    from queues.store import Store

#: Ids that a step needs: of what the trash and the audit note of it, and of the items.
IDS = 2 + incoming.MAX_ITEMS


def push_part(tr: Transaction, store: Store, backing: Backing, job: Job, ids: Sequence[bytes]) -> Job:
    """Push the next part of a job, and return the job as it is then; `ids` were minted outside."""
    keyspace, now_ms = backing.keyspace, backing.now_ms()
    own = bytes.fromhex(job.id)
    try:
        arrivals = incoming.read_part(tr, keyspace, own, job.chunks)
    except UNREADABLE as error:
        raise Unreadable("The items that are next can not be read. {why}", why=why(error)) from error
    if arrivals is None:
        raise Unreadable("The items that are next are not there any more.")
    config = config_of(tr, keyspace, job.queue_id, job.queue)
    rands = ids[2 : 2 + len(arrivals)]
    pushed = incoming.push(tr, keyspace, config, arrivals, rands, ready_ms=job.ready_ms, now_ms=now_ms)
    tr.clear(keyspace.incoming(own, job.chunks))
    after = onward(job, now_ms=now_ms, met=len(pushed), done=len(pushed))
    after = replace(after, chunks=job.chunks + 1)
    if after.done == job.total:
        after = ended(after, DONE, now_ms=now_ms)
    store.trash.put_arrivals(tr, ids[0], config, pushed, by=job.by)
    tr.set(keyspace.bulk_part(own, after.chunks), ids[0])
    store.audit.write(
        tr,
        ids[1],
        actor=job.by,
        via=job.via,
        verb="enqueue" if config.fifo else "push",
        queue_id=config.id,
        queue=config.name,
        count=len(pushed),
        reason=job.reason,
        after={"job": job.id},
    )
    write_job(tr, keyspace, after, job)
    return after
