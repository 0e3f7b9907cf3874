"""One step of a job: a look at what is next, then a chunk of it as one transaction with trash, audit and mark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from queues.audit.audit import Audit
from queues.bulk import incoming
from queues.bulk.apply import change, config_of
from queues.bulk.bulk_job import (
    DONE,
    FAILED,
    HELD_MS,
    PUSH,
    UNDO,
    Job,
    ended,
    failure_of,
    onward,
    read_job,
    write_job,
)
from queues.bulk.scan import Look, Shown, look
from queues.context import StoreContext
from queues.errors import (
    AlreadyRestored,
    Conflict,
    KeyTooLarge,
    NotForAttached,
    QueueClosed,
    QueueError,
    QueueNotFound,
    TransactionTooLarge,
    TransactionTooOld,
    TrashNotFound,
    Unreadable,
    ValueTooLarge,
)
from queues.items.stored_item import StoredItem, as_item, find
from queues.items.transition import Change
from queues.kv.port import Transaction
from queues.model.config import MAX_REASON, Config
from queues.model.records import UNREADABLE, why
from queues.serving.leadership import Leadership
from queues.trash.trash import Trash

#: Ids that a step needs: of what the trash and the audit note of it, and of the items.
IDS = 2 + incoming.MAX_ITEMS


def push_part(tr: Transaction, context: StoreContext, job: Job, ids: Sequence[bytes]) -> Job:
    """Push the next part of a job, and return the job as it is then; `ids` were minted outside."""
    keyspace, now_ms = context.keyspace, context.now_ms()
    own = bytes.fromhex(job.id)
    try:
        arrivals = incoming.read_part(tr, keyspace, own, job.chunks)
    except UNREADABLE as error:
        raise Unreadable("The items that are next cannot be read. {why}", why=why(error)) from error
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
    Trash(context).put_arrivals(tr, ids[0], config, pushed, by=job.by)
    tr.set(keyspace.bulk_part(own, after.chunks), ids[0])
    Audit(context).write(
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


#: Items of one chunk: at most, and to begin with.
MAX_CHUNK, FIRST_CHUNK = 200, 50
#: Seconds of work that a chunk should take at least and at most: where there is one writer, it holds up all others.
#: Waiting for answers does not count, as it holds up nobody.
_SHORT, _LONG = 0.01, 0.03
#: Bytes of one chunk, unless a single item is larger.
_CHUNK_BYTES = 1_000_000
#: What no single item is to blame for.
_OF_QUEUES = (QueueNotFound, QueueClosed, NotForAttached)


class Pace:
    """Chooses how many items the next chunk changes at most, by what those before took."""

    def __init__(self) -> None:
        self.limit = FIRST_CHUNK

    def took(self, items: int, seconds: float) -> None:
        """Note a chunk of so many items."""
        if seconds > _LONG and items > 1:
            self.limit = max(10, min(self.limit, items) // 2)
        elif seconds < _SHORT and items >= self.limit:
            self.limit = min(MAX_CHUNK, self.limit * 2)

    def too_much(self) -> bool:
        """Take fewer after a chunk that could not be done; False when it was one item already."""
        fewer = self.limit > 1
        self.limit = max(1, self.limit // 4)
        return fewer


class Steps:
    """The steps of one job by one runner, which holds it; `take` does the next one."""

    def __init__(self, context: StoreContext, job_id: str, leadership: Leadership, *, shown: Shown) -> None:
        self._context = context
        self._trash = Trash(context)
        self._audit = Audit(context)
        self._job_id = job_id
        self._leadership = leadership
        self._shown = shown
        self._pace = Pace()
        #: At most so many items of a chunk, while one that does not fit is looked for.
        self._narrow: int | None = None

    def take(self, job: Job) -> Job:
        """Do the next step of a job and return it as it is then; another runner's is returned as it is."""
        try:
            if job.act == PUSH:
                return self._push(job)
            return self._undo() if job.act == UNDO else self._go(job)
        except (Conflict, TransactionTooOld):
            if not self._pace.too_much():  # others take these items as fast as we do: smaller chunks meet fewer
                raise
            return job

    def hold(self, *, take_over: bool = False) -> Job | None:
        """Hold the job for some seconds; None when another runner holds it, unless it is taken over."""
        now_ms, leadership = self._context.now_ms(), self._leadership

        def hold(tr: Transaction) -> Job | None:
            job = read_job(tr, self._context.keyspace, self._job_id)
            if not job.running:
                return job
            if not leadership.is_free(job.holding) and not take_over:
                return None
            mine = leadership.holds(job.holding)
            job = replace(
                job,
                runner=leadership.holder,
                held_ms=now_ms + HELD_MS,
                started_ms=job.started_ms or now_ms,
                # The time in which nobody ran it is not its speed's.
                seen=job.seen if mine else ((now_ms, job.met),) * 2,
            )
            write_job(tr, self._context.keyspace, job, job)
            return job

        return self._context.kv.transact(hold, background=True)

    def let_go(self) -> None:
        """Let others go on with the job at once."""

        def let_go(tr: Transaction) -> None:
            job = read_job(tr, self._context.keyspace, self._job_id)
            if self._mine(job):
                write_job(tr, self._context.keyspace, replace(job, held_ms=0), job)
                tr.add(self._context.keyspace.job_change, 1)

        self._context.kv.transact(let_go, background=True)

    # Acts

    def _go(self, job: Job) -> Job:
        limit = min(self._pace.limit, MAX_CHUNK, self._narrow or MAX_CHUNK)
        if job.rate is not None:
            limit = max(1, min(limit, int(job.rate)))
        seen: Look | None = None
        try:
            seen = self._look(job, limit)
            after = self._chunk(seen)
        except _OF_QUEUES as error:
            return self._fail(error, None)
        except (QueueError, ValueTooLarge, KeyTooLarge, TransactionTooLarge) as error:
            wanted = [] if seen is None else seen.wanted
            if len(wanted) > 1:  # which of these does not fit?
                self._narrow = len(wanted) // 2
                return job
            return self._fail(error, wanted[0].hex() if wanted else None)
        if self._narrow is not None:
            self._narrow = self._narrow * 2 if self._narrow < MAX_CHUNK else None
        return after

    def _look(self, job: Job, limit: int) -> Look:
        keyspace = self._context.keyspace

        def read(tr: Any) -> Look:
            config = config_of(tr, keyspace, job.queue_id, job.queue)
            return look(tr, keyspace.queue(config.id), config, job, limit=limit, shown=self._shown)

        return self._context.kv.read(read, background=True)

    def _chunk(self, seen: Look) -> Job:
        context, keyspace = self._context, self._context.keyspace
        wanted = seen.wanted
        trash_id, audit_id = context.id_generator.new_ids(2)
        rands = context.id_generator.new_ids(max(1, len(wanted)))
        now_ms = context.now_ms()
        took: list[tuple[int, float]] = []

        def act(tr: Transaction) -> Job:
            began = time.thread_time()
            job = read_job(tr, keyspace, self._job_id)
            if not self._mine(job) or job.mark != seen.mark:
                return job
            config = config_of(tr, keyspace, job.queue_id, job.queue)
            found = find(tr, keyspace.queue(config.id), config, wanted) if wanted else []
            some, gone, handled = self._some(job, config, seen, found)
            changed = change(tr, keyspace, job, config, some, rands=rands, now_ms=now_ms) if some else []
            after = onward(job, now_ms=now_ms, met=handled, done=len(changed))
            after = replace(
                after,
                mark=seen.met[handled - 1][0] if handled else job.mark,
                skipped=job.skipped + gone + len(some) - len(changed),
                chunks=job.chunks + bool(changed),
            )
            if seen.ended and handled == len(seen.met):
                after = ended(after, DONE, now_ms=now_ms)
            if changed:
                self._note(tr, after, config, changed, trash_id, audit_id)
            write_job(tr, keyspace, after, job)
            took.append((len(some), time.thread_time() - began))
            return after

        after = context.kv.transact(act, background=True)
        if took:
            self._pace.took(*took[-1])
        return after

    def _some(
        self, job: Job, config: Config, seen: Look, found: list[StoredItem | None]
    ) -> tuple[list[StoredItem], int, int]:
        """Return the items of a chunk, how many are not as they were seen, and how many it met with these."""
        query = job.wanted
        shown = self._shown(config) if query.text else None
        some: list[StoredItem] = []
        there = iter(found)
        size = gone = 0
        for n, (_, rand) in enumerate(seen.met):
            if rand is None:
                continue
            one = next(there)
            if one is None or not query.matches(as_item(one, fifo=config.fifo, codec=config.values), shown=shown):
                gone += 1
                continue
            if some and size + len(one.value) > _CHUNK_BYTES:
                return some, gone, n
            some.append(one)
            size += len(one.value)
        return some, gone, len(seen.met)

    def _note(
        self, tr: Transaction, job: Job, config: Config, changed: list[Change], trash_id: bytes, audit_id: bytes
    ) -> None:
        """Note what a chunk changed in the trash, and in the audit, in the name of who began the job."""
        keyspace = self._context.keyspace
        target = None if job.to_id is None else config_of(tr, keyspace, job.to_id, job.to or "")
        self._trash.put_changes(tr, trash_id, config, changed, by=job.by, act=job.act, to=target)
        tr.set(keyspace.bulk_part(bytes.fromhex(job.id), job.chunks), trash_id)
        self._audit.write(
            tr,
            audit_id,
            actor=job.by,
            via=job.via,
            verb=job.act,
            queue_id=config.id,
            queue=config.name,
            count=len(changed),
            reason=job.reason[:MAX_REASON],
            after={"job": job.id} | ({} if target is None else {"to": target.name}),
            also=None if target is None else target.id,
        )

    # Pushing

    def _push(self, was: Job) -> Job:
        """Push the next part of what came with the job."""
        ids = self._context.id_generator.new_ids(IDS)

        def act(tr: Transaction) -> Job:
            job = read_job(tr, self._context.keyspace, self._job_id)
            if not self._mine(job) or job.chunks != was.chunks:
                return job
            return push_part(tr, self._context, job, ids)

        try:
            return self._context.kv.transact(act, background=True)
        except (QueueError, ValueTooLarge, KeyTooLarge, TransactionTooLarge) as error:
            return self._fail(error, None)

    # Undoing

    def _undo(self) -> Job:
        """Undo the last chunk that is left; items that have gone on since are left alone."""
        context, keyspace = self._context, self._context.keyspace
        audit_id, now_ms = context.id_generator.new_id(), context.now_ms()

        def act(tr: Transaction) -> Job:
            job = read_job(tr, keyspace, self._job_id)
            if not self._mine(job):
                return job
            if not job.chunks:
                after = ended(replace(job, met=job.total or 0), DONE, now_ms=now_ms)
                write_job(tr, keyspace, after, job)
                return after
            part = keyspace.bulk_part(bytes.fromhex(job.of or ""), job.chunks)
            count, skipped = self._restore(tr, (tr.get(part).wait() or b"").hex(), job, audit_id)
            after = onward(job, now_ms=now_ms, met=count + skipped, done=count)
            after = replace(after, chunks=job.chunks - 1, skipped=job.skipped + skipped)
            write_job(tr, keyspace, after, job)
            return after

        try:
            return context.kv.transact(act, background=True)
        except (QueueError, ValueTooLarge, KeyTooLarge, TransactionTooLarge) as error:
            return self._fail(error, None)

    def _restore(self, tr: Transaction, trash_id: str, job: Job, audit_id: bytes) -> tuple[int, int]:
        """Undo one chunk and return (items undone, items that have gone on since)."""
        try:
            restored = self._trash.restore(tr, trash_id, partial=True)
        except (AlreadyRestored, TrashNotFound):
            return 0, 0
        if restored.count:
            self._audit.write(
                tr,
                audit_id,
                actor=job.by,
                via=job.via,
                verb="undo",
                queue_id=restored.config.id,
                queue=restored.config.name,
                count=restored.count,
                reason=job.reason[:MAX_REASON],
                before={"job": job.of},
                also=job.to_id,
            )
        return restored.count, restored.skipped

    def fail(self, error: Exception) -> Job:
        """Let the job end here, for a reason that is nobody's but ours."""
        return self._fail(error, None)

    # Both

    def _mine(self, job: Job) -> bool:
        return job.running and self._leadership.holds(job.holding)

    def _fail(self, error: Exception, item_id: str | None) -> Job:
        def fail(tr: Transaction) -> Job:
            job = read_job(tr, self._context.keyspace, self._job_id)
            if not self._mine(job):
                return job
            after = replace(job, failure=failure_of(error), failed_at=item_id)
            after = ended(after, FAILED, now_ms=now_ms)
            write_job(tr, self._context.keyspace, after, job)
            return after

        now_ms = self._context.now_ms()
        return self._context.kv.transact(fail, background=True)
