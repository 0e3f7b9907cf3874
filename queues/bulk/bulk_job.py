"""Bulk jobs: actions on many items, stored with their progress, so that any runner can go on with one.

A job's mark moves in the transaction of its chunk, so that no chunk is done twice, however often runners are killed. An
action that could meet an item twice goes through the items by their ids, which never change. A runner holds its job for
some seconds, so that other runners leave it; only wasted work depends on that.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from queues.errors import JobNotFound, Unreadable, Worded, Words
from queues.items.equal_ids import refuse_minted
from queues.items.scan import Order, Query
from queues.keys.keyspace import Keyspace, first_id
from queues.keys.queue_keys import last_element
from queues.kv.errors import Value
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction, Transaction
from queues.model import paging, records
from queues.model.config import MAX_REASON
from queues.model.ids import at, minted_ms, parse
from queues.model.paging import RecordPage
from queues.model.priority import Priority
from queues.model.records import UNREADABLE, why
from queues.serving.leadership import Holding

RUNNING, DONE, CANCELED, FAILED = "running", "done", "canceled", "failed"
#: The actions of jobs that undo another job, or push items: see queues/actions/push.py.
UNDO, PUSH = "undo", "push"
#: Milliseconds for which a runner holds its job; every chunk renews that.
HELD_MS = 3_000
#: Milliseconds over which the speed of a job is measured, up to twice as many, and at least.
_SPEED_MS, _LEAST_MS = 5_000, 500
#: A chunk takes at most the items of a second; clocks of two machines differ by more.
_LONGEST_WAIT_MS = 2_000
#: The ends of refusals that speak of one transaction.
_OF_THE_WHOLE = (" Nothing was changed.", " Nothing was moved.")
#: Jobs that have not ended, of one read.
MAX_RUNNING = 200
#: Old jobs of one step of a sweep.
_SWEPT = 100
#: Reads of running jobs at most, when unreadable ones come first.
_WINDOWS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An action on many items."""

    id: str
    #: delete, move, reprioritize, promote, retry or release; or push, or undo.
    act: str
    queue_id: int
    queue: str
    #: Of the matching items: ready, delayed, leased or dead.
    state: str
    #: running, done, canceled or failed.
    status: str
    by: str
    reason: str
    #: How it was begun: web, api, cli.
    via: str = ""
    #: Which items of the state match.
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
    #: Items among these that fit, as counted before it began; None when that is not known.
    concerned: int | None = None
    #: Items read, changed, and left alone: gone in the meantime, or as asked already.
    met: int = 0
    done: int = 0
    skipped: int = 0
    #: Chunks so far; of an undo those that are left. All share one trash entry, and one audit record, of the job's id.
    chunks: int = 0
    #: Of an undo of a push: the chunks that it put into a trash entry of its own id, which can be undone.
    lifted: int = 0
    #: The place up to which it is done, the one at which it ends, and the order in which it goes through the items.
    mark: bytes | None = None
    bound: bytes = b""
    order: Order = "place"
    #: At the front or the back: the priority and the count of the first one there.
    ahead: tuple[Priority | None, int] | None = None
    #: When what is pushed is due; None: at once.
    ready_ms: int | None = None
    #: The job that this one undoes; the one that undoes this.
    of: str | None = None
    undo: str | None = None
    #: Items changed a second at most, and before when no more is done for that.
    rate: float | None = None
    due_ms: int = 0
    #: Why it has failed, `Words` where it was the core that said so, and at which item.
    failure: str = ""
    failed_at: str | None = None
    #: The runner that holds it, or did last, and until when.
    runner: str = ""
    held_ms: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    #: Two moments and what it had met then; its speed is seen from the earlier one on.
    seen: tuple[tuple[int, int], ...] = ()
    #: What a later build of this format keeps here besides: written again as it was read.
    unknown: dict[str, Any] = field(default_factory=dict)

    @property
    def began_at(self) -> datetime:
        """When it was begun, UTC."""
        return at(minted_ms(bytes.fromhex(self.id)))

    @property
    def started_at(self) -> datetime | None:
        """When a runner first ran it, UTC."""
        return None if self.started_ms is None else at(self.started_ms)

    @property
    def ended_at(self) -> datetime | None:
        """When it ended, UTC; None while it is running."""
        return None if self.ended_ms is None else at(self.ended_ms)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status == RUNNING

    @property
    def wanted(self) -> Query:
        """The query of the matching items."""
        return Query.decode(self.query)

    @property
    def speed(self) -> float | None:
        """Items met a second, lately; None when it was not seen for long enough."""
        now_ms = self.held_ms - HELD_MS
        now_ms += int(self.wait(now_ms) * 1000)  # the rest after a chunk is a part of its time
        if not self.seen or now_ms - self.seen[0][0] < _LEAST_MS:
            return None
        return (self.met - self.seen[0][1]) * 1000 / (now_ms - self.seen[0][0])

    @property
    def holding(self) -> Holding:
        """The runner of the job, and until when unless it is renewed."""
        return Holding(holder=self.runner, expires_ms=self.held_ms)

    def wait(self, now_ms: int) -> float:
        """Return the seconds for which its rate lets it rest. What is longer than a chunk's is of another clock."""
        wait_ms = self.due_ms - now_ms
        return wait_ms / 1000 if 0 < wait_ms <= _LONGEST_WAIT_MS else 0.0

    def seconds_left(self) -> float | None:
        """Return in how many seconds it will have met all, by its speed and its rate. None when that is not known."""
        if not self.running or self.total is None or not self.speed:
            return None
        left = max(0, self.total - self.met)
        if self.rate is None or not self.met:
            return left / self.speed
        # What is passed over is no faster for the rate, and what is changed is no faster than it.
        share = self.done / self.met
        changes = left * share if self.concerned is None else min(left, max(0, self.concerned - self.done))
        looking = max(0.0, 1 / self.speed - share / self.rate)
        return left * looking + changes / self.rate

    @property
    def in_audit(self) -> dict[str, Any]:
        """What audit records say of it."""
        known = {"job": self.id, "status": self.status, "act": self.act, "to": self.to, "total": self.total}
        told = {name: value for name, value in known.items() if value is not None}
        return told | ({"skipped": self.skipped} if self.skipped else {}) | ({} if self.of is None else {"of": self.of})

    def encode(self) -> bytes:
        """Return the job as the store keeps it."""
        header = self.unknown | {name: getattr(self, name) for name in self.__slots__ if name != "unknown"}
        mark = None if self.mark is None else self.mark.hex()
        said = {"failure_words": _plain(self.failure)} if isinstance(self.failure, Words) else {}
        return records.encode(header | said | {"mark": mark, "bound": self.bound.hex()})


def onward(job: Job, *, now_ms: int, met: int, done: int) -> Job:
    """Return the job after a step that met and changed so many items."""
    seen, due_ms, end_ms = job.seen, job.due_ms, now_ms
    if job.rate is not None:
        end_ms = due_ms = now_ms + int(job.wait(now_ms) * 1000) + math.ceil(done * 1000 / job.rate)
    if not seen or end_ms < seen[-1][0]:
        seen = ((end_ms, job.met + met),) * 2
    elif end_ms - seen[1][0] >= _SPEED_MS:
        seen = (seen[1], (end_ms, job.met + met))
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


def exists(tr: ReadTransaction, keyspace: Keyspace, job_id: str) -> bool:
    """Say whether a job has this id."""
    rand = parse(job_id)
    return rand is not None and tr.get(keyspace.bulk.key(rand)).wait() is not None


def parse_job_id(text: str) -> bytes:
    """Return the id of a job; raise `JobNotFound` for a text that is none."""
    job_id = parse(text)
    if job_id is None:
        raise _not_found()
    return job_id


def read_job(tr: ReadTransaction, keyspace: Keyspace, job_id: str | bytes) -> Job:
    """Return a job; raise `JobNotFound`, `Unreadable`."""
    key = keyspace.bulk.key(parse_job_id(job_id) if isinstance(job_id, str) else job_id)
    record = tr.get(key).wait()
    if record is None:
        raise _not_found()
    try:
        return _decode(record)
    except UNREADABLE as error:
        raise Unreadable("This job cannot be read. {why}", why=why(error)) from error


def _not_found() -> JobNotFound:
    return JobNotFound("No bulk job has this id; its time may have run out.")


def begin_job(tr: Transaction, keyspace: Keyspace, job: Job) -> None:
    """Write a new job; raise `IdTaken`."""
    refuse_minted(tr, [keyspace.bulk.key(bytes.fromhex(job.id))])
    write_job(tr, keyspace, job)


def write_job(tr: Transaction, keyspace: Keyspace, job: Job, was: Job | None = None) -> None:
    """Write a job, and wake watches when it begins, ends or is resumed."""
    tr.use_reserve()
    job_id = bytes.fromhex(job.id)
    tr.set(keyspace.bulk.key(job_id), job.encode())
    if was is not None and was.status == job.status:
        return
    if job.running:
        tr.set(keyspace.running.key(job_id), b"")
    else:
        tr.clear(keyspace.running.key(job_id))
    tr.add(keyspace.job_change, 1)


def read_page(
    tr: ReadTransaction,
    keyspace: Keyspace,
    *,
    limit: int,
    after: str | None,
    visible: Callable[[Job], bool] | None,
) -> RecordPage[Job]:
    """Return a page of jobs, the newest first; raise `BadCursor`.

    `visible` says of a job whether it is listed; then those that cannot be read are not, and a page may hold fewer
    than `limit`, even none, and have a cursor.
    """

    def read(before: bytes | None, n: int) -> tuple[list[tuple[bytes, bytes]], bool]:
        pairs = tr.get_range(*keyspace.bulk.older(before), limit=n + 1, reverse=True).wait()
        return [(last_element(key), record) for key, record in pairs[:n]], len(pairs) > n

    def fitting(job_id: bytes, record: bytes) -> Job | str | None:
        job = _readable(record)
        listed = visible is None or (job is not None and visible(job))
        return (job or job_id.hex()) if listed else None

    page = paging.page(read, fitting, before=paging.before_of(after), limit=limit)
    jobs = tuple(job for job in page.entries if isinstance(job, Job))
    unreadable = tuple(job_id for job_id in page.entries if isinstance(job_id, str))
    return RecordPage(jobs, page.cursor, looked=page.looked, certain=page.certain, unreadable=unreadable)


def read_running(tr: ReadTransaction, keyspace: Keyspace) -> list[Job]:
    """Return the jobs that have not ended, the oldest first; those that cannot be read are left out."""
    begin, end = keyspace.running.all
    jobs: list[Job] = []
    for _ in range(_WINDOWS):
        keys = tr.get_range(begin, end, limit=MAX_RUNNING).wait()
        found = [read.wait() for read in [tr.get(keyspace.bulk.key(last_element(key))) for key, _ in keys]]
        jobs += [job for record in found if record is not None and (job := _readable(record)) is not None]
        if len(jobs) >= MAX_RUNNING or len(keys) < MAX_RUNNING:
            break
        begin = keys[-1][0] + b"\0"
    return jobs[:MAX_RUNNING]


def sweep_jobs(kv: KeyValueStore, keyspace: Keyspace, *, before_ms: int) -> Iterator[None]:
    """Delete, in steps, ended jobs that are so old that the trash has nothing of them."""
    begin, end = keyspace.bulk.before(first_id(before_ms))

    def window(begin: bytes) -> list[KeyValue]:
        return kv.read(lambda tr: tr.get_range(begin, end, limit=_SWEPT).wait(), background=True)

    while pairs := window(begin):
        for _, record in pairs:
            job = _readable(record)  # those that are not readable are left to a release that can read them
            if job is not None and not job.running:
                with suppress(JobNotFound):  # another sweeper was faster
                    _forget(kv, keyspace, job.id, before_ms)
        yield
        begin = pairs[-1][0] + b"\0"


def _forget(kv: KeyValueStore, keyspace: Keyspace, name: str, before_ms: int) -> None:
    """Forget a job that has ended unless something of it is younger. What it has not pushed is swept by itself."""
    job_id = bytes.fromhex(name)

    def forget(tr: Transaction) -> None:
        now = read_job(tr, keyspace, name)
        if now.running or max(minted_ms(job_id), now.ended_ms or 0) >= before_ms:
            return
        tr.use_reserve()
        tr.clear_range(*keyspace.bulk_parts.below(job_id))
        tr.clear(keyspace.bulk.key(job_id))

    kv.transact(forget, background=True)


def _readable(record: bytes) -> Job | None:
    try:
        return _decode(record)
    except UNREADABLE:
        return None


def failure_of(error: Exception) -> str:
    """Return why a job fails, without what a refusal says of the whole: what it did before is done."""
    text = str(error)
    for end in _OF_THE_WHOLE:
        text = text.removesuffix(end)
    if not isinstance(error, Worded) or len(text) > MAX_REASON:
        return text[:MAX_REASON]
    return error.words.cut_to(text)


def _plain(value: Value) -> Any:
    """Return words as the template and its values, as a record keeps them."""
    if not isinstance(value, Words):
        return value if not isinstance(value, float) or math.isfinite(value) else str(value)
    return [value.template, {name: _plain(each) for name, each in value.values.items()}]


def _worded(plain: Any) -> Any:
    if not isinstance(plain, list):
        return plain
    template, values = plain
    return Words(template, **{name: _worded(each) for name, each in values.items()})


def _failure(header: dict[str, Any]) -> str:
    """Return why a job has failed: as words that can be translated, or as a text alone."""
    text: str = header.get("failure", "")
    try:
        words = _worded(header.get("failure_words"))
    except UNREADABLE:
        return text
    return words.cut_to(text) if isinstance(words, Words) and text and words.startswith(text) else text


_KNOWN = frozenset(Job.__slots__) - {"unknown"} | {"failure_words"}


def _decode(record: bytes) -> Job:
    header: dict[str, Any] = records.decode(record)[0]
    known = {name: value for name, value in header.items() if name in Job.__slots__}
    mark, ahead = header.get("mark"), header.get("ahead")
    places = {
        "mark": None if mark is None else bytes.fromhex(mark),
        "bound": bytes.fromhex(header.get("bound", "")),
        "ahead": None if ahead is None else (ahead[0], ahead[1]),
        "failure": _failure(header),
        "seen": tuple((ms, met) for ms, met in header.get("seen", ())),
        "unknown": records.unknown(header, _KNOWN),
    }
    return Job(**{**known, **places})
