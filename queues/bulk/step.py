"""Steps of a bulk job: one chunk as one transaction, with its trash and audit records and the job's mark."""

import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from queues.audit.audit import Audit
from queues.bulk import incoming
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
from queues.items import edit, locate, state_changes, transition
from queues.items.stored_item import StoredItem, as_item, find
from queues.items.transition import Change
from queues.keys.item_suffix import ready_suffix
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.model.config import MAX_REASON, Config
from queues.model.records import UNREADABLE, why
from queues.operations.open_queue import OpenQueue
from queues.operations.push import PushManyRequest
from queues.serving.leadership import Leadership
from queues.trash.trash import Trash

#: Items of one chunk: at most, and to begin with.
MAX_CHUNK, FIRST_CHUNK = 200, 50
#: Seconds of work that a chunk should take at least and at most: with one writer, all other work waits for it.
#: Waiting for reads does not count.
_SHORT, _LONG = 0.01, 0.03
#: Seconds for which a runner holds its job.
HELD = HELD_MS / 1000
#: Bytes of one chunk, unless a single item is larger.
_CHUNK_BYTES = 1_000_000
#: Errors that end a job: of the whole queue, and of items.
_OF_QUEUES = (QueueNotFound, QueueClosed, NotForAttached)
_REFUSALS = (QueueError, ValueTooLarge, KeyTooLarge, TransactionTooLarge)


class Pace:
    """Chooses the most items of the next chunk by the time that the chunks before took."""

    def __init__(self) -> None:
        self.limit = FIRST_CHUNK

    def took(self, items: int, seconds: float) -> None:
        """Note a chunk of so many items."""
        if seconds > _LONG and items > 1:
            self.limit = max(10, min(self.limit, items) // 2)
        elif seconds < _SHORT and items >= self.limit:
            self.limit = min(MAX_CHUNK, self.limit * 2)

    def too_much(self) -> bool:
        """Take fewer after a chunk that failed; False when it was one item already."""
        fewer = self.limit > 1
        self.limit = max(1, self.limit // 4)
        return fewer


class Steps:
    """The steps of one job by one runner, which holds it; `take` does the next one."""

    def __init__(self, context: StoreContext, job_id: str, leadership: Leadership, *, shown: Shown) -> None:
        self._context = context
        self._keyspace = context.keyspace
        self._trash = Trash(context)
        self._audit = Audit(context)
        self._job_id = job_id
        self._leadership = leadership
        self._shown = shown
        self._pace = Pace()
        #: The most items of a chunk while one that does not fit is searched for.
        self._narrow: int | None = None

    def take(self, job: Job) -> Job:
        """Do the next step of a job and return it as it is then; another runner's job is returned as it is."""
        try:
            if job.act not in (PUSH, UNDO):
                return self._change(job)
            return self._advance(self._push if job.act == PUSH else self._undo, since=job)
        except (Conflict, TransactionTooOld):
            if not self._pace.too_much():  # concurrent callers take these items: smaller chunks conflict less
                raise
            return job
        except _REFUSALS as error:
            return self.fail(error)

    def hold(self, *, take_over: bool = False) -> Job | None:
        """Hold the job for some seconds; None when another runner holds it, unless it is taken over."""
        now_ms, leadership = self._context.now_ms(), self._leadership

        def hold(tr: Transaction) -> Job | None:
            job = read_job(tr, self._keyspace, self._job_id)
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
                # The time without a runner does not count for its speed.
                seen=job.seen if mine else ((now_ms, job.met),) * 2,
            )
            write_job(tr, self._keyspace, job, job)
            return job

        return self._context.kv.transact(hold, background=True)

    def let_go(self) -> None:
        """Let another runner go on with the job at once."""

        def let_go(tr: Transaction, job: Job, now_ms: int) -> Job:
            tr.add(self._keyspace.job_change, 1)
            return replace(job, held_ms=0)

        self._advance(let_go)

    def fail(self, error: Exception, item_id: str | None = None) -> Job:
        """End the job here, because of an error."""

        def fail(tr: Transaction, job: Job, now_ms: int) -> Job:
            return ended(replace(job, failure=failure_of(error), failed_at=item_id), FAILED, now_ms=now_ms)

        return self._advance(fail)

    def _advance(self, act: Callable[[Transaction, Job, int], Job], *, since: Job | None = None) -> Job:
        """Run `act` on the job and write what it returns, if this runner holds the job, and it has not gone on."""
        now_ms = self._context.now_ms()

        def run(tr: Transaction) -> Job:
            job = read_job(tr, self._keyspace, self._job_id)
            gone_on = since is not None and (job.mark, job.chunks) != (since.mark, since.chunks)
            if gone_on or not (job.running and self._leadership.holds(job.holding)):
                return job
            after = act(tr, job, now_ms)
            write_job(tr, self._keyspace, after, job)
            return after

        return self._context.kv.transact(run, background=True)

    # Changing items

    def _change(self, job: Job) -> Job:
        limit = min(self._pace.limit, MAX_CHUNK, self._narrow or MAX_CHUNK)
        if job.rate is not None:
            limit = max(1, min(limit, int(job.rate)))
        seen: Look | None = None
        try:
            seen = self._look(job, limit)
            after = self._chunk(job, seen)
        except _OF_QUEUES:
            raise
        except _REFUSALS as error:
            wanted = [] if seen is None else seen.wanted
            if len(wanted) > 1:  # which of these does not fit?
                self._narrow = len(wanted) // 2
                return job
            return self.fail(error, wanted[0].hex() if wanted else None)
        if self._narrow is not None:
            self._narrow = self._narrow * 2 if self._narrow < MAX_CHUNK else None
        return after

    def _look(self, job: Job, limit: int) -> Look:
        def read(tr: Any) -> Look:
            config = Config.of(job.queue, tr.get(self._keyspace.config(job.queue_id)).wait())
            return look(tr, self._keyspace.queue(config.id), config, job, limit=limit, shown=self._shown)

        return self._context.kv.read(read, background=True)

    def _chunk(self, was: Job, seen: Look) -> Job:
        took: list[tuple[int, float]] = []

        def act(tr: Transaction, job: Job, now_ms: int) -> Job:
            began, keyspace = time.thread_time(), self._keyspace
            config = Config.of(job.queue, tr.get(keyspace.config(job.queue_id)).wait())
            target = None
            if job.to_id is not None:
                target = Config.of(job.to or "", tr.get(keyspace.config(job.to_id)).wait())
            found = find(tr, keyspace.queue(config.id), config, seen.wanted) if seen.wanted else []
            some, gone, handled = self._some(job, config, seen, found)
            rands = self._context.id_generator.new_ids(len(some)) if some else []
            changes = _changes(tr, keyspace, job, config, target, some, rands=rands, now_ms=now_ms) if some else []
            after = replace(
                onward(job, now_ms=now_ms, met=handled, done=len(changes)),
                mark=seen.met[handled - 1][0] if handled else job.mark,
                skipped=job.skipped + gone + len(some) - len(changes),
                chunks=job.chunks + bool(changes),
            )
            if seen.ended and handled == len(seen.met):
                after = ended(after, DONE, now_ms=now_ms)
            if changes:
                trash_id = self._new_entry(tr, after)
                self._trash.put_changes(tr, trash_id, config, changes, by=job.by, act=job.act, to=target)
                note = {"job": job.id} | ({} if target is None else {"to": target.name})
                also = None if target is None else target.id
                self._record(tr, job, config, job.act, len(changes), after=note, also=also)
            took[:] = [(len(some), time.thread_time() - began)]
            return after

        after = self._advance(act, since=was)
        if took:
            self._pace.took(*took[-1])
        return after

    def _some(
        self, job: Job, config: Config, seen: Look, found: list[StoredItem | None]
    ) -> tuple[list[StoredItem], int, int]:
        """Return the items of a chunk, how many have changed since the look, and how many it met with these."""
        query = job.wanted
        filters, shown = query.filters, self._shown(config) if query.text else None
        some: list[StoredItem] = []

        def matches(one: StoredItem) -> bool:
            return query.matches(as_item(one, fifo=config.fifo, codec=config.values), shown=shown)

        there = iter(found)
        size = gone = 0
        for n, (_, rand) in enumerate(seen.met):
            if rand is None:
                continue
            one = next(there)
            if one is None or one.state != query.state or (filters and not matches(one)):
                gone += 1
                continue
            if some and size + len(one.value) > _CHUNK_BYTES:
                return some, gone, n
            some.append(one)
            size += len(one.value)
        return some, gone, len(seen.met)

    # Pushing and undoing

    def _push(self, tr: Transaction, job: Job, now_ms: int) -> Job:
        """Push the next part of the items that came with the job."""
        keyspace, job_id = self._keyspace, bytes.fromhex(job.id)
        try:
            arrivals = incoming.read_part(tr, keyspace, job_id, job.chunks)
        except UNREADABLE as error:
            raise Unreadable("The items that are next cannot be read. {why}", why=why(error)) from error
        if arrivals is None:
            raise Unreadable("The items that are next are not there any more.")
        config = Config.of(job.queue, tr.get(keyspace.config(job.queue_id)).wait())
        new_ids = tuple(self._context.id_generator.new_ids(len(arrivals)))
        dues = (job.ready_ms,) * len(arrivals) if job.ready_ms is not None and job.ready_ms > now_ms else ()
        request = PushManyRequest(config.id, tuple(arrivals), new_ids, dues, now_ms)
        items = OpenQueue(self._context, config).send(request, tr)
        pushed = locate.arrived(tr, keyspace, config, items)
        tr.clear(keyspace.incoming(job_id, job.chunks))
        after = onward(job, now_ms=now_ms, met=len(pushed), done=len(pushed))
        after = replace(after, chunks=job.chunks + 1)
        if after.done == job.total:
            after = ended(after, DONE, now_ms=now_ms)
        self._trash.put_arrivals(tr, self._new_entry(tr, after), config, pushed, by=job.by)
        verb = "enqueue" if config.fifo else "push"
        self._record(tr, job, config, verb, len(pushed), after={"job": job.id})
        return after

    def _undo(self, tr: Transaction, job: Job, now_ms: int) -> Job:
        """Undo the last chunk that is left; items that were taken or changed since are left alone."""
        if not job.chunks:
            return ended(replace(job, met=job.total or 0), DONE, now_ms=now_ms)
        part = tr.get(self._keyspace.bulk_part(bytes.fromhex(job.of or ""), job.chunks)).wait()
        count = skipped = 0
        try:
            restored = self._trash.restore(tr, (part or b"").hex(), partial=True)
        except (AlreadyRestored, TrashNotFound):
            pass
        else:
            count, skipped = restored.count, restored.skipped
            if count:
                self._record(tr, job, restored.config, "undo", count, before={"job": job.of}, also=job.to_id)
        after = onward(job, now_ms=now_ms, met=count + skipped, done=count)
        return replace(after, chunks=job.chunks - 1, skipped=job.skipped + skipped)

    def _new_entry(self, tr: Transaction, job: Job) -> bytes:
        """Return a new trash id, and note it as that of the job's last chunk."""
        trash_id = self._context.id_generator.new_id()
        tr.set(self._keyspace.bulk_part(bytes.fromhex(job.id), job.chunks), trash_id)
        return trash_id

    def _record(self, tr: Transaction, job: Job, config: Config, verb: str, count: int, **details: Any) -> None:
        """Write the audit record of a chunk, for the actor of the job."""
        self._audit.write(
            tr,
            self._context.id_generator.new_id(),
            actor=job.by,
            via=job.via,
            verb=verb,
            queue_id=config.id,
            queue=config.name,
            count=count,
            reason=job.reason[:MAX_REASON],
            **details,
        )


def _changes(
    tr: Transaction,
    keyspace: Keyspace,
    job: Job,
    config: Config,
    target: Config | None,
    some: Sequence[StoredItem],
    *,
    rands: Sequence[bytes],
    now_ms: int,
) -> list[Change]:
    """Change these items as the job says, and return the changes; items that are as asked already are left out."""
    if job.act == "delete":
        return edit.delete(tr, keyspace, config, some)
    if job.act == "promote":
        return state_changes.promote(tr, keyspace, config, some)
    if job.act == "retry":
        return state_changes.retry(tr, keyspace, config, some)
    if job.act == "release":
        return state_changes.release(tr, keyspace, config, some, now_ms=now_ms, reason=job.reason)
    if job.act == "reprioritize":
        if job.ahead is not None:
            return _bring(tr, keyspace, job, config, some)
        return edit.reprioritize(tr, keyspace, config, some, priority=job.priority, shift=job.shift)
    assert target is not None
    return edit.move(tr, keyspace, config, target, some, priority=job.priority, rands=rands[: len(some)])


def _bring(tr: Transaction, keyspace: Keyspace, job: Job, config: Config, some: Sequence[StoredItem]) -> list[Change]:
    assert job.ahead is not None
    priority, first = job.ahead
    changes = [
        Change(before=there, after=transition.at_suffix(there, ready_suffix(priority, n, there.rand)))
        for n, there in enumerate(some, start=first + job.done)
    ]
    return transition.apply(tr, keyspace, config, changes, "reprioritize")


# The runner


def runner_name() -> str:
    """Return a unique name for a runner, with its machine and process."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"


def job_leadership(context: StoreContext, runner: str = "", count: Callable[[], float] = time.monotonic) -> Leadership:
    """Return a runner's part in the leadership of one job."""
    return Leadership(seconds=HELD, now_ms=context.now_ms, monotonic=count, holder=runner or runner_name(), slack_ms=0)
