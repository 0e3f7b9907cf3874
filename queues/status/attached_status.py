"""Status of an attached queue: both ends, read each time, and the last counted depth."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from queues.consumers.consumer import begin_consumers
from queues.items.attached import as_item
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys
from queues.kv.port import KeyValue, ReadTransaction
from queues.model.config import Config
from queues.model.ids import to_ms
from queues.model.item import Item
from queues.status.attached_counts import AttachedCounts
from queues.status.status import QueueStatus, Totals, TotalsRead, preview_bytes

#: A status that differs only by the time of its count is renewed after this time.
REFRESH = timedelta(seconds=5)


def begin_status(
    tr: ReadTransaction,
    keyspace: Keyspace,
    config: Config,
    change: int,
    preview: int,
    *,
    counts: AttachedCounts,
    now: datetime,
) -> Callable[[], QueueStatus]:
    """Issue every read of an attached queue's status; the returned function waits for them."""
    consumers = begin_consumers(tr, keyspace, config.id)
    foreign = AttachedKeys(config.attached_prefix)
    traffic = TotalsRead(tr, keyspace.queue(config.id).traffic)
    low = tr.get_range(*foreign.all, limit=1)
    high = tr.get_range(*foreign.all, limit=1, reverse=True)

    def finish() -> QueueStatus:
        first, last = low.wait(), high.wait()
        depth, counted_at = _depth(first, last, counts, config.id, now)
        totals = Totals(ready=depth, delayed=0, leased=0, dead=0, traffic=traffic.wait())
        return QueueStatus(
            id=config.id,
            name=config.name,
            kind=config.kind,
            priority_type=config.priority_type,
            change=_digest(change, config.name, depth, first, last),
            totals=totals,
            min=_shown(first, foreign, config, preview),
            max=_shown(last, foreign, config, preview),
            consumers=consumers(to_ms(now)),
            attached=True,
            prefix=config.prefix,
            counted_at=counted_at,
            note=config.note,
            runbook=config.runbook,
            redact=config.redact,
            preview=config.preview,
            codec=config.codec,
        )

    return finish


def settle(new: QueueStatus, old: QueueStatus | None) -> QueueStatus:
    """Return `old` itself if `new` equals it, so that callers can compare by identity."""
    if old is None or replace(new, counted_at=old.counted_at) != old:
        return new
    if new.counted_at is not None and (old.counted_at is None or new.counted_at - old.counted_at >= REFRESH):
        return new
    return old


def _depth(
    first: list[KeyValue], last: list[KeyValue], counts: AttachedCounts, queue_id: int, now: datetime
) -> tuple[int, datetime | None]:
    """Return (depth, when it was counted): the ends show 0 and 1. More must have been counted."""
    if not first or not last:
        return 0, now
    if first[0][0] == last[0][0]:
        return 1, now
    count = counts.known(queue_id)
    return (2, None) if count is None or count.depth < 2 else (count.depth, count.counted_at)


def _shown(pairs: list[KeyValue], foreign: AttachedKeys, config: Config, preview: int) -> Item | None:
    for key, value in pairs:
        return as_item(
            foreign.suffix_of(key), value, fifo=config.fifo, codec=config.values, preview=preview_bytes(config, preview)
        )
    return None


def _digest(change: int, name: str, depth: int, first: list[KeyValue], last: list[KeyValue]) -> int:
    """Return a digest of what is shown, of 48 bits, which JavaScript's numbers hold."""
    digest = hashlib.blake2b(repr((change, name, depth)).encode("utf-8", "surrogatepass"), digest_size=6)
    for key, value in (*first, *last):
        digest.update(len(key).to_bytes(4, "big") + key + len(value).to_bytes(4, "big") + value)
    return int.from_bytes(digest.digest(), "big")
