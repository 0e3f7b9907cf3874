"""Acts on all items of a state: chunk by chunk, each one transaction with its trash, its audit record and a mark.

At every moment each item is in exactly one place. A job that is stopped or killed goes on where it was, run by anybody;
one that is cancelled has done whole chunks, and each can be undone, as can all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from queues import moving, standing
from queues.acting import Note
from queues.attached.counts import Step
from queues.attached.queue import open_queue
from queues.changes import Change
from queues.config import Config
from queues.errors import (
    AlreadyRestored,
    BadPriority,
    BadQueueKind,
    Conflict,
    ItemGoneOn,
    ItemLeased,
    NotForAttached,
    QueueNotFound,
    SameQueue,
    TrashNotFound,
    ValueTooLarge,
    WrongKind,
)
from queues.item_acts import ItemActs, Undone
from queues.jobs import Job, bounds, onward, read_job, read_jobs, walk, write_job
from queues.keyspace import STATES
from queues.kv.port import ReadTransaction, Transaction
from queues.names import display_name
from queues.priority import Priority, normalise
from queues.queue import Queue
from queues.standing import Standing

#: Items of one chunk.
MAX_CHUNK = 200
#: Bytes of one chunk, unless a single item is larger.
_CHUNK_BYTES = 1_000_000
_RUNNING, _DONE, _CANCELLED, _FAILED = "running", "done", "cancelled", "failed"


class BulkActs(ItemActs):
    """The acts of one person on many items."""

    def begin_bulk(
        self,
        act: str,
        queue_name: str,
        *,
        state: str = "ready",
        low: Priority | None = None,
        high: Priority | None = None,
        to: str | None = None,
        priority: Priority | None = None,
        shift: Priority | None = None,
        reason: str = "",
        expect_id: int | None = None,
    ) -> Job:
        """Note an act on all items of a state, of ready ones perhaps within priorities; `run_bulk` does it.

        `act` is delete, move (`to`, perhaps with a `priority` for all) or reprioritise (`priority` or `shift`). What is
        pushed behind the last item that is there now is not concerned.
        """
        if act not in ("delete", "move", "reprioritise") or state not in STATES:
            raise BadQueueKind(f"Acts on all are delete, move, reprioritise, of {', '.join(STATES)} items.")
        if act == "reprioritise" and (priority is None) == (shift is None):
            raise BadPriority("Say the priority, or by how much to shift it.")
        if state == "leased" and act != "delete":
            raise ItemLeased("These items are in workers' hands: they can be deleted, and nothing else.")
        if state != "ready" and (low is not None or high is not None):
            raise WrongKind("Only ready items stand in the order of their priorities.")
        job_id = self._backing.minter.mint()

        def begin(tr: Transaction, audit: Note) -> Job:
            queue = self._queue(tr, queue_name, expect_id)
            target = self._target(tr, act, queue, to)
            config = queue.config
            within = tuple(None if edge is None else normalise(edge, config.priority_type) for edge in (low, high))
            if config.fifo and (within != (None, None) or act == "reprioritise"):
                raise WrongKind(f"{display_name(queue.name)} is a fifo queue: its items have no priority.")
            # Total and ends are of the moment at which it begins: whoever pushes or pops meanwhile is not in its way.
            ends = bounds(tr.snapshot, self._backing.keyspace.queue(queue.id), config, state, (within[0], within[1]))
            job = Job(
                id=job_id.hex(),
                act=act,
                queue_id=queue.id,
                queue=queue.name,
                state=state,
                status=_DONE if ends is None else _RUNNING,
                by=self._actor,
                reason=reason,
                to=None if target is None else target.name,
                to_id=None if target is None else target.id,
                priority=priority,
                shift=shift,
                total=queue.depth(state, tr=tr.snapshot) if within == (None, None) else None,
                first=b"" if ends is None else ends[0],
                last=b"" if ends is None else ends[1],
                # Whoever shifts upwards begins at the top, so as not to meet the same items again.
                backwards=shift is not None and not isinstance(shift, str) and shift > 0,
            )
            tr.use_reserve()
            write_job(tr, self._backing.keyspace, job)
            return job

        return self._act(begin)

    def run_bulk(self, job_id: str, *, progress: Callable[[Job], bool] | None = None) -> Job:
        """Do what is left of a job and return it; `progress` hears of every chunk and says whether to go on.

        An item that does not fit (`BadPriority`, `ValueTooLarge`, `WrongKind`) stays, with those of its chunk and those
        behind it: the job has failed then, and nobody goes on with it. What it did before stays until it is undone.
        """
        step = Step()
        job = self.job(job_id)
        while job.status == _RUNNING:
            limit = min(step.limit, MAX_CHUNK)
            try:
                after, size = self._chunk(job_id, limit)
            except Conflict:
                if not step.too_much():  # others take these items as fast as we do: smaller chunks meet fewer of them
                    raise
                continue
            except (BadPriority, ValueTooLarge, WrongKind) as error:
                job = self._end(job_id, _FAILED)
                if job.status != _FAILED:
                    break  # somebody cancelled it meanwhile
                raise type(error)(
                    f"{error} The job {job_id} has failed after {job.done:,} items: those can be undone by its id, "
                    "all others are where they were."
                ) from error
            step.took(max(1, after.done - job.done), size)
            job = after
            if progress is not None and not progress(job):
                break
        return job

    def cancel_bulk(self, job_id: str) -> Job:
        """Let a job end after the chunk that is being done; what it did stays done until it is undone."""
        return self._end(job_id, _CANCELLED)

    def undo_bulk(self, job_id: str) -> Undone:
        """Undo all chunks of a job, the last one first; items that have gone on since are left alone.

        Run again it goes on where it was. A running job is cancelled.
        """
        job = self.cancel_bulk(job_id)
        keyspace, count, skipped = self._backing.keyspace, 0, 0
        for n in range(job.chunks, 0, -1):
            key = keyspace.bulk_part(bytes.fromhex(job.id), n)
            trash_id = self._backing.read(lambda tr, key=key: tr.get(key).wait(), None)  # type: ignore[misc]
            try:
                undone = self.undo((trash_id or b"").hex(), partial=True)
            except (AlreadyRestored, TrashNotFound):
                continue
            except ItemGoneOn as error:
                skipped += error.gone
                continue
            count, skipped = count + undone.count, skipped + undone.skipped
        queue = self._store.read(lambda tr: open_queue(self._backing, self._config(tr, job.queue_id, job.queue)))
        return Undone(queue=queue, count=count, skipped=skipped)

    def job(self, job_id: str) -> Job:
        """Return a job as it is now; raise `JobNotFound`."""
        return self._backing.read(lambda tr: read_job(tr, self._backing.keyspace, job_id), None)

    def jobs(self, limit: int = 50) -> list[Job]:
        """Return jobs, the newest first."""
        return self._backing.read(lambda tr: read_jobs(tr, self._backing.keyspace, limit), None)

    def _target(self, tr: Transaction, act: str, queue: Queue, to: str | None) -> Queue | None:
        if queue.attached:
            raise NotForAttached(queue.name, "its items are moved and deleted by pages, or purged.")
        if act != "move":
            return None
        target = self._store.queue(to or "", tr=tr)
        if target.id == queue.id:
            raise SameQueue(f"The items are in {display_name(queue.name)} already: name another queue.")
        return target

    def _config(self, tr: ReadTransaction, queue_id: int, name: str) -> Config:
        record = tr.get(self._backing.keyspace.config(queue_id)).wait()
        if record is None:
            raise QueueNotFound(name)
        return Config.decode(record)

    def _end(self, job_id: str, status: str) -> Job:
        """Let a job that is running end so; one that has ended stays as it is."""

        def end(tr: Transaction, audit: Note) -> Job:
            job = read_job(tr, self._backing.keyspace, job_id)
            if job.status == _RUNNING:
                job = replace(job, status=status)
                tr.use_reserve()
                write_job(tr, self._backing.keyspace, job)
            return job

        return self._act(end)

    def _chunk(self, job_id: str, limit: int) -> tuple[Job, int]:
        trash_id = self._backing.minter.mint()
        rands = self._backing.minter.mint_many(limit)

        def act(tr: Transaction, audit: Note) -> tuple[Job, int]:
            keyspace = self._backing.keyspace
            job = read_job(tr, keyspace, job_id)
            if job.status != _RUNNING:
                return job, 0
            config = self._config(tr, job.queue_id, job.queue)
            keys = keyspace.queue(config.id)
            met = walk(tr.snapshot, keys, config, job, limit)
            found = standing.find(tr, keys, config, [rand for _, rand in met])
            some: list[Standing] = []
            size = handled = 0
            for there in found:
                if there is not None and there.state == job.state:
                    if some and size + len(there.stored) > _CHUNK_BYTES:
                        break
                    some.append(there)
                    size += len(there.stored)
                handled += 1
            ended = len(met) < limit and handled == len(met)
            changed = self._change(tr, job, config, some, rands) if some else []
            after = replace(
                job if ended else onward(job, met[handled - 1][0]),
                done=job.done + len(changed),
                chunks=job.chunks + bool(changed),
                status=_DONE if ended else _RUNNING,
            )
            tr.use_reserve()
            if changed:
                target = None if job.to_id is None else self._config(tr, job.to_id, job.to or "")
                self._store.trash.put_changes(tr, trash_id, config, changed, by=self._actor, act=job.act, to=target)
                tr.set(keyspace.bulk_part(bytes.fromhex(job.id), after.chunks), trash_id)
                audit(
                    open_queue(self._backing, config),
                    job.act,
                    count=len(changed),
                    reason=job.reason,
                    after={"job": job.id} | ({} if target is None else {"to": target.name}),
                    also=None if target is None else target.id,
                )
            write_job(tr, keyspace, after)
            return after, size

        return self._act(act)

    def _change(
        self, tr: Transaction, job: Job, config: Config, some: list[Standing], rands: list[bytes]
    ) -> list[Change]:
        keyspace = self._backing.keyspace
        if job.act == "delete":
            return moving.delete(tr, keyspace, config, some)
        if job.act == "reprioritise":
            return moving.reprioritise(tr, keyspace, config, some, priority=job.priority, shift=job.shift)
        assert job.to_id is not None
        target = self._config(tr, job.to_id, job.to or "")
        return moving.move(tr, keyspace, config, target, some, priority=job.priority, rands=rands[: len(some)])
