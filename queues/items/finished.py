"""Finished items: records of what programs acknowledged or popped, kept for the time that a queue's settings say.

The transaction that takes an item out writes its record, so neither is there without the other. A record has what a
timeline needs and the beginning of the value. A queue without the setting reads and writes nothing more. Actions of
people write none: the audit and the trash tell of those.

A sweep removes records that are too old, and the oldest beyond `MOST` of a queue.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from queues.items.counters import CounterDelta, total
from queues.items.stored_item import StoredItem
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import OUTSIDE, SIDES, timed_elements, timed_suffix
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.model import config as configs
from queues.model import records
from queues.model.attempt_log import LOG, size_of
from queues.model.config import Config
from queues.model.ids import at, minted_at
from queues.model.item import Item
from queues.model.range_in_steps import first_keys, in_background

#: Their name among the counters.
FINISHED = "finished"
#: Records of a queue that a sweep leaves, and bytes of a value.
MOST, VALUE_BYTES = 10_000, 256
#: Bytes of a log of attempts: a transaction that acknowledges 1,000 items stays below the limit of a cluster.
_LOG_BYTES = 4_000
#: Records of one transaction of the sweep.
_STEP = 500


def keep(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    items: Sequence[StoredItem],
    delta: CounterDelta,
    *,
    now_ms: int,
    taker: str | None = None,
) -> None:
    """Write the records of items that leave: popped by a `taker`, or acknowledged."""
    if not items:
        return
    by_time, by_id = keyspace.finished_by_time(config.id), keyspace.finished_by_id(config.id)
    tr.use_reserve()  # they take the room of the items
    for there in items:
        record = records.encode(_header(there, config, taker), there.value[:VALUE_BYTES])
        tr.set(by_time.key(now_ms, there.rand), record)
        tr.set(by_id.key(there.rand), now_ms.to_bytes(8, "big"))
    delta.state(OUTSIDE, FINISHED, "in", len(items))


def _header(there: StoredItem, config: Config, taker: str | None) -> dict[str, Any]:
    log = [{name: value for name, value in one.items() if name != "traceback"} for one in there.entries]
    last = log[-1] if log else {}
    while size_of(log) > _LOG_BYTES:
        del log[0]
    how: dict[str, Any]
    if taker is not None:
        how = {"state": "popped", "worker": taker}
    elif there.state == "leased":
        how = {"state": "acknowledged", "worker": there.header["worker"], "taken": there.header["leased"]}
    else:  # the lease had expired
        how = {"state": "acknowledged", "worker": last.get("worker", ""), "taken": last.get("began")}
    told = {"priority": there.priority(fifo=config.fifo), "size": len(there.value), "attempts": there.attempts}
    return told | how | ({LOG: log} if log else {})


def find(tr: ReadTransaction, keyspace: Keyspace, config: Config, rand: bytes) -> Item | None:
    """Return the record of the finished item of this id; None when none is kept."""
    ms = tr.get(keyspace.finished_by_id(config.id).key(rand)).wait()
    if ms is None:
        return None
    suffix = timed_suffix(int.from_bytes(ms, "big"), rand)
    record = tr.get(keyspace.finished_by_time(config.id).at(suffix)).wait()
    return None if record is None else _as_item(suffix, record, config)


def page(
    tr: ReadTransaction, keyspace: Keyspace, config: Config, *, after: bytes | None, limit: int
) -> list[tuple[bytes, Item]]:
    """Return finished items with their places, the newest first, behind a place."""
    by_time = keyspace.finished_by_time(config.id)
    begin, end = by_time.all
    pairs = tr.get_range(begin, end if after is None else by_time.at(after), limit=limit, reverse=True).wait()
    return [(suffix, _as_item(suffix, record, config)) for key, record in pairs for suffix in [by_time.suffix_of(key)]]


def _as_item(suffix: bytes, record: bytes, config: Config) -> Item:
    (ms, rand), (header, value) = timed_elements(suffix), records.decode(record)
    taken = header.get("taken")
    return Item(
        id=rand.hex(),
        priority=header["priority"],
        count=None,
        raw=value,
        pushed_at=minted_at(rand),
        size=header["size"],
        state=header["state"],
        attempts=header["attempts"],
        attempt_records=tuple(header.get(LOG, ())),
        leased_at=None if taken is None else at(taken),
        worker=header["worker"],
        finished_at=at(ms),
        codec=config.values,
    )


def sweep_finished(kv: KeyValueStore, keyspace: Keyspace, *, now_ms: Callable[[], int]) -> Iterator[int]:
    """Remove records that are too old or too many, one transaction a step. Yield how many each step removed.

    A queue with nothing to remove is a step of 0, which is read and writes nothing.
    """
    of = keyspace.finished
    for key in first_keys(in_background(kv), of.all, lambda key: of.below(of.elements(key)[0])[1]):
        queue_id = of.elements(key)[0]
        look = partial(_too_old_or_many, keyspace=keyspace, queue_id=queue_id)
        step = partial(_sweep_step, keyspace=keyspace, queue_id=queue_id)
        removed = _STEP
        # A step that is not full is the last: a queue may finish items as fast as they are removed.
        while removed >= _STEP and kv.read(partial(look, now_ms=now_ms()), background=True):
            removed = kv.transact(partial(step, now_ms=now_ms()), background=True)
            yield removed
        yield 0


def _too_old_or_many(look: ReadTransaction, *, keyspace: Keyspace, queue_id: int, now_ms: int) -> list[bytes]:
    """Return the keys of some records to remove. Those of a deleted queue stay: they go or come back with it."""
    config = configs.decode(look.get(keyspace.configs.key(queue_id)).wait())
    if config is None:
        return []
    by_time = keyspace.finished_by_time(queue_id)
    begin, end = by_time.all
    if config.keep_finished is None:
        found = look.get_range(begin, end, limit=_STEP).wait()
    else:
        kept_ms = int(config.keep_finished * 1000)
        counters = keyspace.queue(queue_id).generation(OUTSIDE).counters
        came, gone = (look.get(counters.key(FINISHED, side)) for side in SIDES)
        old = look.get_range(begin, by_time.key(max(0, now_ms - kept_ms)), limit=_STEP)
        ahead = look.get_range(by_time.key(now_ms + kept_ms), end, limit=_STEP)  # of a clock that was set back
        found = [*old.wait(), *ahead.wait()]
        many = min(total(came.wait()) - total(gone.wait()) - MOST, _STEP)
        if many > len(found):
            found = look.get_range(begin, end, limit=many).wait()
    return [key for key, _ in found]


def _sweep_step(tr: Transaction, *, keyspace: Keyspace, queue_id: int, now_ms: int) -> int:
    """Remove some records of a queue. Return how many."""
    by_time, by_id = keyspace.finished_by_time(queue_id), keyspace.finished_by_id(queue_id)
    # A snapshot, so that what is written meanwhile stops no sweep.
    found = _too_old_or_many(tr.snapshot, keyspace=keyspace, queue_id=queue_id, now_ms=now_ms)
    if not found:
        return 0
    tr.use_reserve()
    tr.add_read_conflict_keys(found)
    reads = [(ms, by_id.key(rand), tr.get(by_id.key(rand))) for ms, rand in map(by_time.elements, found)]
    # An item that came back and finished again is found by its later record.
    tr.clear_many([*found, *(key for ms, key, read in reads if read.wait() == ms.to_bytes(8, "big"))])
    delta = CounterDelta(keyspace.queue(queue_id), wake=False)
    delta.state(OUTSIDE, FINISHED, "out", len(found))
    delta.apply(tr)
    return len(found)
