"""Jobs: acts on many items, kept in the store with how far they are, so that anybody can go on with one.

A job's mark moves in the transaction of the chunk that it marks, so whoever runs it, and however often it is killed, no
chunk is done twice. What would change an item once more walks along ids, which never change: wherever others put an
item meanwhile, it is met once. Who runs a job holds it for some seconds, so that others leave it alone; nothing but
work done in vain depends on that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from queues import records
from queues.errors import BadCursor, JobNotFound
from queues.ids import at, minted_ms, parse
from queues.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.priority import Priority
from queues.search import Query
from queues.walking import Order

RUNNING, DONE, CANCELLED, FAILED = "running", "done", "cancelled", "failed"
#: What undoes another job, chunk by chunk.
UNDO = "undo"
#: Milliseconds for which whoever runs a job holds it; every chunk renews that.
HELD_MS = 3_000
#: Milliseconds over which the speed of a job is seen, up to twice as many, and at least.
_SPEED_MS, _LEAST_MS = 5_000, 500
#: A chunk takes at most the items of a second; clocks of two machines differ by more.
_LONGEST_WAIT_MS = 2_000
MAX_PAGE = 500
#: Jobs that have not ended, of one look.
MAX_RUNNING = 200
#: Old jobs of one look of a sweep.
_SWEPT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An act on many items."""

    id: str
    #: delete, move, reprioritise, promote, retry or release; or undo.
    act: str
    queue_id: int
    queue: str
    #: Of the items concerned: ready, delayed, leased or dead.
    state: str
    #: running, done, cancelled or failed.
    status: str
    by: str
    reason: str
    #: How it was begun: web, api, cli.
    via: str = ""
    #: Which items of the state are concerned.
    query: dict[str, Any] = field(default_factory=dict)
    #: Where items are moved to.
    to: str | None = None
    to_id: int | None = None
    priority: Priority | None = None
    shift: Priority | None = None
    #: front or back.
    place: str | None = None
    #: Items that it may meet, as of when it began; None when that is not known.
    total: int | None = None
    #: Items looked at, changed, and left alone: gone meanwhile, or as asked already.
    met: int = 0
    done: int = 0
    skipped: int = 0
    #: Chunks so far, each with a trash entry of its own; of an undo those that are left.
    chunks: int = 0
    #: The place up to which it is done, the one at which it ends, from which end it walks, and along what.
    #: Backwards walk only jobs that older releases began.
    mark: bytes | None = None
    bound: bytes = b""
    backwards: bool = False
    order: Order = "place"
    #: At the front or the back: the priority and the count of the first one there.
    ahead: tuple[Priority | None, int] | None = None
    #: The job that this one undoes; the one that undoes this.
    of: str | None = None
    undo: str | None = None
    #: Items changed a second at most, and before when no more is done for that.
    rate: float | None = None
    due_ms: int = 0
    #: Why it has failed, and at which item.
    failure: str = ""
    failed_at: str | None = None
    #: Who runs it, or ran it last, and until when.
    runner: str = ""
    held_ms: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    #: Two moments and what it had met then; its speed is seen from the earlier one on.
    seen: tuple[tuple[int, int], ...] = ()

    @property
    def began_at(self) -> datetime:
        """When it was begun, UTC."""
        return at(minted_ms(bytes.fromhex(self.id)))

    @property
    def started_at(self) -> datetime | None:
        """When somebody first ran it, UTC."""
        return None if self.started_ms is None else at(self.started_ms)

    @property
    def ended_at(self) -> datetime | None:
        """When it ended, UTC; None while it is running."""
        return None if self.ended_ms is None else at(self.ended_ms)

    @property
    def running(self) -> bool:
        """Whether somebody goes on with it."""
        return self.status == RUNNING

    @property
    def wanted(self) -> Query:
        """Which items are concerned."""
        return Query.decode(self.query)

    @property
    def speed(self) -> float | None:
        """Items met a second, lately; None when it was not seen for long enough."""
        if not self.seen or self.held_ms - HELD_MS - self.seen[0][0] < _LEAST_MS:
            return None
        return (self.met - self.seen[0][1]) * 1000 / (self.held_ms - HELD_MS - self.seen[0][0])

    def wait(self, now_ms: int) -> float:
        """Return the seconds for which its rate lets it rest; what is longer than a chunk's is of another clock."""
        wait_ms = self.due_ms - now_ms
        return wait_ms / 1000 if 0 < wait_ms <= _LONGEST_WAIT_MS else 0.0

    def seconds_left(self) -> float | None:
        """Return in how many seconds it will have met all, by its speed and its rate; None when that is not known."""
        if not self.running or self.total is None or not self.speed:
            return None
        return max(0, self.total - self.met) / self.speed

    def encode(self) -> bytes:
        """Return the job as the store keeps it."""
        header = {name: getattr(self, name) for name in self.__slots__}
        mark = None if self.mark is None else self.mark.hex()
        return records.encode(header | {"mark": mark, "bound": self.bound.hex()})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Jobs, newest first."""

    jobs: tuple[Job, ...]
    #: Pass it as `after=` for older ones; None when these are the oldest.
    cursor: str | None


def onward(job: Job, *, now_ms: int, met: int, done: int) -> Job:
    """Return the job after a step that met and changed so many items."""
    seen = job.seen
    if not seen or now_ms < seen[-1][0]:
        seen = ((now_ms, job.met + met),) * 2
    elif now_ms - seen[1][0] >= _SPEED_MS:
        seen = (seen[1], (now_ms, job.met + met))
    due_ms = job.due_ms
    if job.rate is not None:
        due_ms = now_ms + int(job.wait(now_ms) * 1000) + math.ceil(done * 1000 / job.rate)
    return replace(
        job,
        met=job.met + met,
        done=job.done + done,
        seen=seen,
        due_ms=due_ms,
        held_ms=now_ms + HELD_MS,
    )


def ended(job: Job, status: str, *, now_ms: int) -> Job:
    """Return the job when it has ended so."""
    return replace(job, status=status, ended_ms=now_ms, held_ms=0)


def read_job(tr: ReadTransaction, keyspace: Keyspace, job_id: str) -> Job:
    """Return a job; raise `JobNotFound`."""
    rand = parse(job_id)
    record = None if rand is None else tr.get(keyspace.bulk(rand)).wait()
    if record is None:
        raise JobNotFound("No act on many items has this id; its time may have run out.")
    return _decode(record)


def write_job(tr: Transaction, keyspace: Keyspace, job: Job, was: Job | None = None) -> None:
    """Write how far a job is, and tell whoever watches when it begins, ends or goes on."""
    tr.use_reserve()
    job_id = bytes.fromhex(job.id)
    tr.set(keyspace.bulk(job_id), job.encode())
    if was is not None and was.status == job.status:
        return
    if job.running:
        tr.set(keyspace.running(job_id), b"")
    else:
        tr.clear(keyspace.running(job_id))
    tr.add(keyspace.job_change, 1)


def read_jobs(tr: ReadTransaction, keyspace: Keyspace, limit: int, before: bytes | None = None) -> list[Job]:
    """Return jobs, the newest first."""
    pairs = tr.get_range(*keyspace.all_bulk_before(before), limit=limit, reverse=True).wait()
    return [_decode(record) for _, record in pairs]


def read_page(tr: ReadTransaction, keyspace: Keyspace, *, limit: int, after: str | None) -> JobPage:
    """Return a page of jobs, the newest first; raise `BadCursor`."""
    before = None if after is None else parse(after)
    if after is not None and before is None:
        raise BadCursor("This page address is damaged; start again from the first page.")
    limit = max(1, min(limit, MAX_PAGE))
    found = read_jobs(tr, keyspace, limit + 1, before)
    shown = tuple(found[:limit])
    return JobPage(jobs=shown, cursor=shown[-1].id if len(found) > limit else None)


def read_running(tr: ReadTransaction, keyspace: Keyspace) -> list[Job]:
    """Return the jobs that have not ended, the oldest first."""
    keys = tr.get_range(*keyspace.all_running, limit=MAX_RUNNING).wait()
    reads = [tr.get(keyspace.bulk(keyspace.last_id(key))) for key, _ in keys]
    return [_decode(record) for read in reads if (record := read.wait()) is not None]


def sweep_jobs(kv: KeyValueStore, keyspace: Keyspace, *, before_ms: int) -> None:
    """Forget jobs that have ended and that are so old that nothing of them is in the trash any more."""
    begin, end = keyspace.bulk_begun_by(before_ms)
    pairs = kv.read(lambda tr: tr.get_range(begin, end, limit=_SWEPT).wait(), background=True)
    for job in (_decode(record) for _, record in pairs):
        job_id = bytes.fromhex(job.id)

        def forget(tr: Transaction, job: Job = job, job_id: bytes = job_id) -> None:
            parts = tr.get_range(*keyspace.bulk_parts(job_id), limit=1, reverse=True).wait()
            left_ms = minted_ms(parts[0][1]) if parts else minted_ms(job_id)
            now = read_job(tr, keyspace, job.id)
            if not now.running and max(left_ms, now.ended_ms or 0) < before_ms:
                tr.use_reserve()
                tr.clear_range(*keyspace.bulk_parts(job_id))
                tr.clear(keyspace.bulk(job_id))

        if not job.running:
            kv.transact(forget, background=True)


def _decode(record: bytes) -> Job:
    header: dict[str, Any] = records.decode(record)[0]
    known = {name: value for name, value in header.items() if name in Job.__slots__}
    mark, ahead = header.get("mark"), header.get("ahead")
    places = {
        "mark": None if mark is None else bytes.fromhex(mark),
        "bound": bytes.fromhex(header.get("bound", "")),
        "ahead": None if ahead is None else (ahead[0], ahead[1]),
        "seen": tuple((ms, met) for ms, met in header.get("seen", ())),
    }
    return Job(**{**known, **places})
