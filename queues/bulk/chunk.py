"""Chunks of a bulk job: each is one transaction with trash, audit and the mark of the job."""

import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from queues.audit.audit_log import Audit
from queues.bulk import push_parts
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
    parse_job_id,
    read_job,
    write_job,
)
from queues.context import StoreContext
from queues.errors import (
    AlreadyRestored,
    Conflict,
    JobNotFound,
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
from queues.items import item_changes, locate, manual_transitions, scan, state_machine
from queues.items.counters import note_by_hand
from queues.items.scan import lanes_of
from queues.items.state_machine import AnyChange, Change
from queues.items.stored_item import StoredItem, find
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import QueueKeys, id_by_age, ready_elements, ready_since, ready_suffix, timed_elements
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config
from queues.model.records import UNREADABLE, reading, why
from queues.operations.open_queue import OpenQueue
from queues.operations.push import PushManyRequest
from queues.trash.trash import Trash

#: Items of one chunk: at most, and to begin with.
MAX_CHUNK, FIRST_CHUNK = 200, 50
#: Items that one chunk meets: at most, and to begin with; and bytes of their values at most.
SCAN, FIRST_SCAN, LOOK_BYTES = 2_000, 200, 1_000_000
#: Items of its first read.
_FIRST_READ = 25
#: Seconds of work that a chunk should take: with one writer, all other work waits for it.
_CHUNK_WORK = 0.020
#: Bytes of the number with which a chunk begins in the trash entry; an id is longer.
_FIRST_BYTES = 8
#: Errors that end a job: of the whole queue, and of items.
_OF_QUEUES = (QueueNotFound, QueueClosed, NotForAttached)
_REFUSALS = (QueueError, ValueTooLarge, KeyTooLarge, TransactionTooLarge)


#: Gives, by a queue's config, what a searcher sees of a value; None: all of it.
Shown = Callable[[Config], Callable[[bytes], bytes] | None]


def all_shown(config: Config) -> None:
    """Let searches see all of every value."""


@dataclass(slots=True)
class Look:
    """What a job meets next, from its mark on."""

    #: The place of the last item that was met.
    mark: bytes | None
    met: int = 0
    #: The ids of those that match.
    wanted: list[bytes] = field(default_factory=list)
    #: Nothing is behind these.
    ended: bool = False


def look(
    tr: ReadTransaction, keys: QueueKeys, config: Config, job: Job, *, limit: int, most: int, shown: Shown
) -> Look:
    """Return what lies behind a job's mark: at most `limit` items that match, `most` items and `LOOK_BYTES` bytes."""
    query = job.wanted
    filters, lanes = query.filters, lanes_of(keys, config, job.order, query)
    sees = shown(config) if query.text else None
    read = scan.read_index if job.order == "age" else partial(scan.read_places, timed=query.timed)
    seen, number, passed, size = Look(job.mark), _FIRST_READ, 0, 0
    while True:
        found, last = scan.along(tr, lanes, after=seen.mark, end="min", limit=min(number, most - passed))
        for (place, _, (_, where)), one in zip(found, read(tr, keys, config, query.state, found), strict=True):
            if place > job.bound:
                seen.ended = True
                return seen
            seen.mark, passed = place, passed + 1
            if job.shift is not None and _came_back(job, where):
                continue
            seen.met += 1
            if one is None:
                continue
            size += len(one.value)
            if not filters or query.picked(one, shown=sees) is not None:
                seen.wanted.append(_rand(place, where, job, config))
            if len(seen.wanted) == limit or (size >= LOOK_BYTES and seen.wanted):
                return seen
        seen.ended = last
        if last or passed >= most or size >= LOOK_BYTES:
            return seen
        number = max(1, min(4 * number, MAX_CHUNK, LOOK_BYTES * passed // max(size, 1)))


def _came_back(job: Job, where: bytes) -> bool:
    """Say whether an item became ready again after the job was started: behind the mark if the clock was set back."""
    since_ms = ready_since(where) if job.state == "ready" else None
    return since_ms is not None and job.started_ms is not None and since_ms > job.started_ms


def _rand(place: bytes, where: bytes, job: Job, config: Config) -> bytes:
    if job.order == "age":
        return id_by_age(place, where) if job.state == "ready" else place
    try:
        rand: bytes = ready_elements(place, fifo=config.fifo)[2] if job.state == "ready" else timed_elements(place)[1]
    except UNREADABLE:
        with reading(config.name):  # only here: it would cost each item
            raise
    return rand


class Steps:
    """The steps of one job by one runner, which holds it; `take` does the next one."""

    def __init__(self, context: StoreContext, job_id: str, *, runner: str = "", shown: Shown = all_shown) -> None:
        self._context = context
        self._keyspace = context.keyspace
        self._trash = Trash(context)
        self._audit = Audit(context)
        self._job_id = parse_job_id(job_id)
        self._runner = runner or runner_name()
        self._shown = shown
        #: The most items of the next chunk, by the work that the last one took; fewer after a refusal.
        self._most = FIRST_CHUNK
        #: The most items that it meets, by the same work.
        self._most_met = FIRST_SCAN
        #: The ids of the items that the last chunk was to change, how many it met, and the seconds of work.
        self._wanted: list[bytes] = []
        self._met = 0
        self._took = 0.0

    def take(self, job: Job) -> Job:
        """Do the next step of a job and return it as it is then. Another runner's job is returned as it is."""
        self._wanted, self._met, self._took = [], 0, 0.0
        try:
            after = self._advance({PUSH: self._push, UNDO: self._undo}.get(job.act, self._change))
        except (Conflict, TransactionTooOld):
            if self._most == 1:
                raise
            self._most = max(1, self._most // 4)  # concurrent callers take these items: smaller chunks conflict less
            return job
        except _REFUSALS as error:
            wanted = [] if isinstance(error, _OF_QUEUES) else self._wanted
            if len(wanted) > 1:  # which of these does not fit?
                self._most = len(wanted) // 2
                return job
            return self.fail(error, wanted[0].hex() if wanted else None)
        share = _CHUNK_WORK / max(self._took, 1e-6)
        if self._wanted:
            self._most = max(1, min(4 * self._most, MAX_CHUNK, int(share * len(self._wanted))))
        elif job.act in (PUSH, UNDO):
            self._most = FIRST_CHUNK  # their parts have one size: only conflicts in a row end a try
        if self._met:
            self._most_met = max(1, min(4 * self._most_met, SCAN, int(share * self._met)))
        return after

    def holds(self, job: Job) -> bool:
        """Say whether this runner holds the job."""
        return job.runner == self._runner

    def hold(self, *, is_free: Callable[[Job], bool] | None = None) -> Job | None:
        """Hold the job for some seconds. None when `is_free` says of another runner's that it is not."""
        now_ms = self._context.clock.now_ms()

        def hold(tr: Transaction) -> Job | None:
            job = read_job(tr, self._keyspace, self._job_id)
            if not job.running:
                return job
            if is_free is not None and not is_free(job):
                return None
            job = replace(
                job,
                runner=self._runner,
                held_ms=now_ms + HELD_MS,
                started_ms=job.started_ms or now_ms,
                # The time without a runner does not count for its speed.
                seen=job.seen if self.holds(job) else ((now_ms, job.met),) * 2,
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

    def _advance(self, act: Callable[[Transaction, Job, int], Job]) -> Job:
        """Run `act` on the job and write what it returns, if this runner holds the job."""
        now_ms = self._context.clock.now_ms()

        def run(tr: Transaction) -> Job:
            job = read_job(tr, self._keyspace, self._job_id)
            if not (job.running and self.holds(job)):
                return job
            after = act(tr, job, now_ms)
            write_job(tr, self._keyspace, after, job)
            if after.in_audit != job.in_audit or after.done != job.done:
                self._audit.update(tr, self._job_id, count=after.done, after=after.in_audit)
            return after

        return self._context.kv.transact(run, background=True)

    def _config(self, tr: ReadTransaction, queue_id: int, name: str) -> Config:
        return Config.of(name, tr.get(self._keyspace.configs.key(queue_id)).wait())

    def _change(self, tr: Transaction, job: Job, now_ms: int) -> Job:
        """Change the next items; the scan for them conflicts with no transaction."""
        began, config = time.thread_time(), self._config(tr, job.queue_id, job.queue)
        target = None if job.to_id is None else self._config(tr, job.to_id, job.to or "")
        keys, limit = self._keyspace.queue(config.id), self._most
        if job.rate is not None:
            limit = max(1, min(limit, int(job.rate)))
        seen = look(tr.snapshot, keys, config, job, limit=limit, most=self._most_met, shown=self._shown)
        self._wanted, self._met = seen.wanted, seen.met
        found = find(tr, keys, config, seen.wanted, (job.state,)) if seen.wanted else []
        some = [one for one in found if one is not None]
        changes = _changes(tr, self._keyspace, job, config, target, some, now_ms) if some else []
        after = replace(
            onward(job, now_ms=now_ms, met=seen.met, done=len(changes)),
            mark=seen.mark,
            skipped=job.skipped + len(seen.wanted) - len(changes),
            chunks=job.chunks + bool(changes),
        )
        if seen.ended:
            after = ended(after, DONE, now_ms=now_ms)
        if changes:
            self._keep(tr, after, config, changes, now_ms, first=job.done, number=after.chunks, act=job.act, to=target)
        self._took = time.thread_time() - began
        return after

    # Pushing and undoing

    def _push(self, tr: Transaction, job: Job, now_ms: int) -> Job:
        """Push the next part of the items that came with the job."""
        keyspace, job_id = self._keyspace, self._job_id
        try:
            arrivals = push_parts.read_part(tr, keyspace, job_id, job.chunks)
        except UNREADABLE as error:
            raise Unreadable("The items that are next cannot be read. {why}", why=why(error)) from error
        if arrivals is None:
            raise Unreadable("The items that are next are not there any more.")
        config = self._config(tr, job.queue_id, job.queue)
        new_ids = tuple(self._context.id_generator.new_ids(len(arrivals)))
        dues = (job.ready_ms,) * len(arrivals) if job.ready_ms is not None and job.ready_ms > now_ms else ()
        request = PushManyRequest(config.id, tuple(arrivals), new_ids, dues, now_ms)
        items = OpenQueue(self._context, config).send(request, tr)
        pushed = locate.arrived(tr, keyspace, config, items)
        note_by_hand(tr, keyspace.queue(config.id), "push", len(pushed))
        tr.clear(keyspace.incoming.key(job_id, job.chunks))
        after = onward(job, now_ms=now_ms, met=len(pushed), done=len(pushed))
        after = replace(after, chunks=job.chunks + 1)
        if after.done == job.total:
            after = ended(after, DONE, now_ms=now_ms)
        changes = [(None, there) for there in pushed]
        self._keep(tr, after, config, changes, now_ms, first=job.done, number=after.chunks, act=job.act)
        return after

    def _undo(self, tr: Transaction, job: Job, now_ms: int) -> Job:
        """Undo the last chunk that is left. Items that were taken or changed since are left alone.

        What was pushed goes into a trash entry of the undo.
        """
        if not job.chunks:
            return ended(job, DONE, now_ms=now_ms)
        try:
            origin = read_job(tr, self._keyspace, job.of or "")
        except JobNotFound:  # its time has run out, and before it that of its trash
            left = max(0, (job.total or 0) - job.met)
            after = onward(job, now_ms=now_ms, met=left, done=0)
            return ended(replace(after, chunks=0, skipped=job.skipped + left), DONE, now_ms=now_ms)
        first, end = self._part(tr, origin, job.chunks), self._part(tr, origin, job.chunks + 1)
        count, lifted = 0, []
        with suppress(AlreadyRestored, TrashNotFound):
            restored = self._trash.restore(tr, origin.id, partial=True, by=job.by, at_ms=now_ms, first=first)
            count, lifted = restored.count, [Change(there, None) for there in restored.lifted]
        skipped = end - first - count  # those too of which the trash has nothing any more
        after = onward(job, now_ms=now_ms, met=count + skipped, done=count)
        after = replace(after, chunks=job.chunks - 1, skipped=job.skipped + skipped, lifted=job.lifted + bool(lifted))
        if lifted:
            self._keep(tr, after, restored.config, lifted, now_ms, first=job.done, number=after.lifted, act="delete")
        return after

    def _part(self, tr: Transaction, job: Job, number: int) -> int:
        """Return how many changes of a job lie in the trash before a chunk."""
        part = tr.get(self._keyspace.bulk_parts.key(bytes.fromhex(job.id), number)).wait()
        return job.done if part is None else int.from_bytes(part, "big")

    def _keep(
        self,
        tr: Transaction,
        job: Job,
        config: Config,
        changes: Sequence[AnyChange],
        now_ms: int,
        *,
        first: int,
        number: int,
        act: str,
        to: Config | None = None,
    ) -> None:
        """Add what a chunk changes to the job's trash entry, and note where that begins there."""
        self._trash.put_part(tr, self._job_id, config, changes, first=first, at_ms=now_ms, by=job.by, act=act, to=to)
        tr.set(self._keyspace.bulk_parts.key(self._job_id, number), first.to_bytes(_FIRST_BYTES, "big"))


def _changes(
    tr: Transaction,
    keyspace: Keyspace,
    job: Job,
    config: Config,
    target: Config | None,
    some: Sequence[StoredItem],
    now_ms: int,
) -> list[Change]:
    """Change these items as the job says, and return the changes. Items that are as asked already are left out."""
    if target is not None:
        rands = [there.rand for there in some]
        return item_changes.move(tr, keyspace, config, target, some, priority=job.priority, rands=rands, now_ms=now_ms)
    verbs: dict[str, Callable[..., list[Change]]] = {
        "delete": item_changes.delete,
        "promote": partial(manual_transitions.promote, now_ms=now_ms),
        "retry": partial(manual_transitions.retry, now_ms=now_ms),
        "release": partial(manual_transitions.release, now_ms=now_ms, reason=job.reason),
        "reprioritize": partial(item_changes.reprioritize, priority=job.priority, shift=job.shift),
    }
    if job.ahead is not None:
        return _bring(tr, keyspace, job, config, some)
    return verbs[job.act](tr, keyspace, config, some)


def _bring(tr: Transaction, keyspace: Keyspace, job: Job, config: Config, some: Sequence[StoredItem]) -> list[Change]:
    assert job.ahead is not None
    priority, first = job.ahead
    changes = [
        Change(there, state_machine.at_suffix(there, ready_suffix(priority, n, there.rand)))
        for n, there in enumerate(some, start=first + job.done)
    ]
    return state_machine.apply(tr, keyspace, config, changes, "reprioritize")


# The runner


def runner_name() -> str:
    """Return a unique name for a runner, with its machine and process."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"
