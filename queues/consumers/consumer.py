"""Consumer of a queue: its record in the store, written by each heartbeat, and how consumers are read.

A consumer is live for `EXPIRY` after its last heartbeat, by the store's clock. The record of the one that ended last is
kept with the queue, so that screens can say since when there is none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from queues.items.counters import CounterDelta
from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction, Transaction
from queues.model import records
from queues.model.ids import at, to_ms
from queues.model.range_in_steps import in_background, steps

#: Seconds between two heartbeats, and milliseconds after the last one that its consumer is held to be alive.
BEAT, EXPIRY_MS = 5.0, 20_000
#: Consumers of one queue that are read.
MOST = 1_000
#: Characters of a host, program or worker that are kept.
MAX_NAME = 200

#: How a consumer ended: the store was closed, it took nothing any more, or its heartbeats ceased.
End = Literal["closed", "idle", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """Process that takes items from a queue, as of its last heartbeat."""

    #: What tells it from any other opening of the store.
    id: str
    pid: int
    host: str
    #: The name of the program, without its arguments.
    program: str
    #: The name that it gave its pool or its leases; empty without any.
    worker: str
    #: When it first took an item or waited for one, UTC.
    since: datetime
    #: When it last took an item, UTC; None: not yet.
    last_take: datetime | None
    #: Items that it popped or leased since `since`, and how many a second in the last minute. What is taken in a
    #: transaction of the caller (`tr=`) is in none of these numbers, as that may be undone: it only makes it live.
    takes: int
    rate: float
    #: Its callers and threads that wait for an item.
    waiting: int
    #: Leases that it holds.
    holds: int
    #: The time of this heartbeat, UTC.
    heard: datetime
    #: How it ended; None while it is live.
    end: End | None = None

    @property
    def over_ms(self) -> int:
        """Milliseconds since the epoch from which on it counts as ended."""
        return to_ms(self.heard) + (EXPIRY_MS if self.end == "lost" else 0)

    def is_of_the_future(self, now_ms: int) -> bool:
        """Say whether it ended at a time that is still to come. The clock was ahead then."""
        return self.over_ms > now_ms + EXPIRY_MS

    def is_live(self, now_ms: int) -> bool:
        """Say whether the last heartbeat is recent. One of the future comes from a clock that was set."""
        return self.end is None and abs(now_ms - to_ms(self.heard)) < EXPIRY_MS


class Client(NamedTuple):
    """Program that takes through a server, as it names itself."""

    #: 8 bytes that tell it from any other opening of a remote store.
    id: bytes
    pid: int
    host: str
    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumers:
    """The consumers of a queue at one read version."""

    #: Those with a recent heartbeat, the first to begin first.
    live: tuple[Consumer, ...] = ()
    #: The one that ended last; None: none ever did.
    ended: Consumer | None = None

    @property
    def known(self) -> bool:
        """Say whether any consumer ever told of itself; programs of older releases do not."""
        return bool(self.live) or self.ended is not None


NONE = Consumers()


def encode(consumer: Consumer) -> bytes:
    """Return the record of a consumer. Its id is in the key, or beside it once it has ended."""
    return records.encode(
        {
            "id": consumer.id,
            "pid": consumer.pid,
            "host": consumer.host,
            "program": consumer.program,
            "worker": consumer.worker,
            "since": to_ms(consumer.since),
            "last": None if consumer.last_take is None else to_ms(consumer.last_take),
            "takes": consumer.takes,
            "rate": round(consumer.rate, 3),
            "waiting": consumer.waiting,
            "holds": consumer.holds,
            "heard": to_ms(consumer.heard),
            **({} if consumer.end is None else {"end": consumer.end}),
        }
    )


def decode(record: bytes | None) -> Consumer | None:
    """Read a consumer. None when there is none that can be read: the next heartbeat writes it anew."""
    if record is None:
        return None
    try:
        said, _ = records.decode(record)
        last = said["last"]
        return Consumer(
            id=str(said["id"]),
            pid=int(said["pid"]),
            host=_name(said["host"]),
            program=_name(said["program"]),
            worker=_name(said["worker"]),
            since=at(int(said["since"])),
            last_take=None if last is None else at(int(last)),
            takes=int(said["takes"]),
            rate=max(0.0, float(said["rate"])),
            waiting=int(said["waiting"]),
            holds=int(said["holds"]),
            heard=at(int(said["heard"])),
            end=said.get("end"),
        )
    except records.UNREADABLE:
        return None


def _name(said: object) -> str:
    """Return a name as it can be shown: hosts and programs may be bytes that are no text."""
    return str(said)[:MAX_NAME].encode(errors="replace").decode()


def begin_consumers(tr: ReadTransaction, keyspace: Keyspace, queue_id: int) -> Callable[[int], Consumers]:
    """Issue the reads of a queue's consumers. The returned function waits for them, given the time in milliseconds."""
    found = tr.get_range(*keyspace.consumers.sub(queue_id).all, limit=MOST)
    last = tr.get(keyspace.queue(queue_id).last_consumer)

    def finish(now_ms: int) -> Consumers:
        told = [consumer for _, record in found.wait() if (consumer := decode(record)) is not None]
        live = sorted((one for one in told if one.is_live(now_ms)), key=lambda one: (one.since, one.id))
        ended = decode(last.wait())
        over = [replace(one, end="lost") for one in told if not one.is_live(now_ms)]  # as a sweep will find
        over += [] if ended is None else [ended]
        past = [one for one in over if not one.is_of_the_future(now_ms)]
        return Consumers(live=tuple(live), ended=max(past, key=lambda one: one.over_ms, default=None))

    return finish


def tell(tr: Transaction, keyspace: Keyspace, consumer: Consumer, queue_id: int, key: bytes, *, new: bool) -> None:
    """Write a live consumer's record. A new one changes the queue, so that screens show it."""
    tr.use_reserve()
    tr.set(key, encode(consumer))
    if new and tr.snapshot.get(keyspace.configs.key(queue_id)).wait() is not None:
        CounterDelta(keyspace.queue(queue_id), wake=False).apply(tr)


def end(tr: Transaction, keyspace: Keyspace, consumer: Consumer, queue_id: int, key: bytes, *, now_ms: int) -> None:
    """Remove a consumer's record, and keep what it says as that of the one that ended last."""
    tr.use_reserve()
    tr.clear(key)
    if tr.snapshot.get(keyspace.configs.key(queue_id)).wait() is None:
        return  # the queue was deleted
    keys = keyspace.queue(queue_id)
    CounterDelta(keys, wake=False).apply(tr)
    if consumer.is_of_the_future(now_ms):
        return
    before = decode(tr.snapshot.get(keys.last_consumer).wait())
    if before is None or before.over_ms <= consumer.over_ms or before.is_of_the_future(now_ms):
        tr.set(keys.last_consumer, encode(consumer))


def sweep_consumers(kv: KeyValueStore, keyspace: Keyspace, *, now_ms: int) -> int:
    """End consumers without heartbeats any more, and return their number."""

    def over(tr: ReadTransaction, found: Sequence[KeyValue]) -> list[bytes]:
        told = [(key, decode(record)) for key, record in found]
        return [key for key, consumer in told if consumer is None or not consumer.is_live(now_ms)]

    def sweep(tr: Transaction, key: bytes) -> int:
        record = tr.get(key).wait()  # it may be alive after all, and tell so at this moment
        consumer = decode(record)
        if consumer is not None and not consumer.is_live(now_ms):
            queue_id = keyspace.consumers.elements(key)[0]
            end(tr, keyspace, replace(consumer, end="lost"), queue_id, key, now_ms=now_ms)
        elif consumer is None:
            tr.clear(key)
        return int(record is not None and (consumer is None or not consumer.is_live(now_ms)))

    found = [key for some in steps(in_background(kv), keyspace.consumers.all, over) for key in some]
    return sum(kv.transact(partial(sweep, key=key), background=True) for key in found)
