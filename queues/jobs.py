"""Jobs: acts on many items, kept in the store with how far they are, so that anybody can go on with one.

A job walks the items of one state of a queue from end to end, in their order, up to what was last when it began. Its
mark moves in the transaction of the chunk that it marks, so whoever runs it, and however often it is killed, no item is
met twice by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from queues import records
from queues.config import Config
from queues.errors import JobNotFound
from queues.ids import minted_ms, parse
from queues.keyspace import Keyspace, QueueKeys, Range, ready_elements, timed_elements
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.priority import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An act on many items."""

    id: str
    #: delete, move or reprioritise.
    act: str
    queue_id: int
    queue: str
    #: Of the items concerned: ready, delayed, leased or dead.
    state: str
    #: running, done, cancelled or failed (an item did not fit).
    status: str
    by: str
    reason: str
    #: Where items are moved to.
    to: str | None = None
    to_id: int | None = None
    priority: Priority | None = None
    shift: Priority | None = None
    #: Items when it began; None when only a range of priorities is concerned.
    total: int | None = None
    #: Items changed so far.
    done: int = 0
    #: Chunks so far, each with a trash entry of its own.
    chunks: int = 0
    #: The places between which it walks, and from which end; the nearer one moves on.
    first: bytes = b""
    last: bytes = b""
    backwards: bool = False

    def encode(self) -> bytes:
        """Return the job as the store keeps it."""
        header = {name: getattr(self, name) for name in self.__slots__}
        return records.encode(header | {"first": self.first.hex(), "last": self.last.hex()})


def read_job(tr: ReadTransaction, keyspace: Keyspace, job_id: str) -> Job:
    """Return a job; raise `JobNotFound`."""
    rand = parse(job_id)
    record = None if rand is None else tr.get(keyspace.bulk(rand)).wait()
    if record is None:
        raise JobNotFound("No act on many items has this id.")
    return _decode(record)


def write_job(tr: Transaction, keyspace: Keyspace, job: Job) -> None:
    """Write how far a job is."""
    tr.set(keyspace.bulk(bytes.fromhex(job.id)), job.encode())


def read_jobs(tr: ReadTransaction, keyspace: Keyspace, limit: int) -> list[Job]:
    """Return jobs, the newest first."""
    return [_decode(record) for _, record in tr.get_range(*keyspace.all_bulk, limit=limit, reverse=True).wait()]


def walk(tr: ReadTransaction, keys: QueueKeys, config: Config, job: Job, limit: int) -> list[tuple[bytes, bytes]]:
    """Return the (place, id) of the next items that a job meets."""
    found = []
    for begin, end, prefix in _ranges(keys, config, job.state):
        low, high = max(begin, prefix + job.first), min(end, prefix + job.last + b"\0")
        if low < high:
            pairs = tr.get_range(low, high, limit=limit, reverse=job.backwards).wait()
            found += [key[len(prefix) :] for key, _ in pairs]
    found = sorted(found, reverse=job.backwards)[:limit]
    return [(place, _rand(place, job.state, fifo=config.fifo)) for place in found]


def bounds(
    tr: ReadTransaction, keys: QueueKeys, config: Config, state: str, within: tuple[Priority | None, Priority | None]
) -> tuple[bytes, bytes] | None:
    """Return the places of the first and the last item of a state, of ready ones within priorities; None: none."""
    low, high = within
    firsts, lasts = [], []
    for generation, (begin, end, prefix) in zip(config.generations * 2, _ranges(keys, config, state), strict=False):
        if state == "ready":
            of = keys.generation(generation)
            begin = begin if low is None else of.from_priority(low)[0]
            end = end if high is None else of.from_priority(high)[1]
        if begin >= end:
            continue
        reads = tr.get_key(begin, end), tr.get_key(begin, end, reverse=True)
        first, last = (read.wait() for read in reads)
        if first is not None and last is not None:
            firsts.append(first[len(prefix) :])
            lasts.append(last[len(prefix) :])
    return (min(firsts), max(lasts)) if firsts else None


def onward(job: Job, place: bytes) -> Job:
    """Return the job with its mark behind a place."""
    if job.backwards:
        # The largest place before this one has no name: what lies at it is left out by its last byte.
        return replace(job, last=_before(place))
    return replace(job, first=place + b"\0")


def sweep_jobs(kv: KeyValueStore, keyspace: Keyspace, *, before_ms: int) -> None:
    """Forget jobs that have ended and that are so old that nothing of them is in the trash any more."""
    for job in kv.read(lambda tr: read_jobs(tr, keyspace, 1_000), background=True):
        job_id = bytes.fromhex(job.id)

        def forget(tr: Transaction, job: Job = job, job_id: bytes = job_id) -> None:
            parts = tr.get_range(*keyspace.bulk_parts(job_id), limit=1, reverse=True).wait()
            ended_ms = minted_ms(parts[0][1]) if parts else minted_ms(job_id)
            if read_job(tr, keyspace, job.id).status != "running" and ended_ms < before_ms:
                tr.use_reserve()
                tr.clear_range(*keyspace.bulk_parts(job_id))
                tr.clear(keyspace.bulk(job_id))

        kv.transact(forget, background=True)


def _ranges(keys: QueueKeys, config: Config, state: str) -> list[tuple[bytes, bytes, bytes]]:
    """Return (begin, end, prefix) of where the items of a state lie; places are what follows the prefix."""
    if state == "leased":
        return [(*keys.expiries(), keys.expiry(b""))]
    if state == "dead":
        return [(*keys.dead(), keys.dead_item(b""))]
    found = []
    for generation in config.generations:
        of = keys.generation(generation)
        where: Range = of.ready_range if state == "ready" else of.delayed_range()
        found.append((*where, of.ready(b"") if state == "ready" else of.delayed(b"")))
    return found


def _rand(place: bytes, state: str, *, fifo: bool) -> bytes:
    rand: bytes = ready_elements(place, fifo=fifo)[2] if state == "ready" else timed_elements(place)[1]
    return rand


def _before(place: bytes) -> bytes:
    """Return a place that lies before this one and behind every other item's: ids end in a zero byte."""
    return place[:-1]


def _decode(record: bytes) -> Job:
    header: dict[str, Any] = records.decode(record)[0]
    return Job(**{**header, "first": bytes.fromhex(header["first"]), "last": bytes.fromhex(header["last"])})
