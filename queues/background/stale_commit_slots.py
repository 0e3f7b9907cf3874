"""Retention of commit slots: those that a client of a cluster has not used for 24 hours are cleared.

A client reads its own slot for an hour at the longest, so a slot that is a day old belongs to a process that is gone or
idle; an idle process does not miss it. Only clusters have slots: see queues/kv/commit_slots.py.
"""

from collections.abc import Iterator
from functools import partial

from queues.keys.keyspace import Keyspace
from queues.kv.commit_slots import Mark
from queues.kv.port import KeyValue, KeyValueStore, Transaction
from queues.model.range_in_steps import in_background, steps

#: Milliseconds by the store's clock.
KEPT_MS = 24 * 3600 * 1000


def sweep_slots(kv: KeyValueStore, keyspace: Keyspace, *, now_ms: int) -> int:
    """Clear the slots that were not used for 24 hours and return how many there were."""
    swept = 0
    for slots in _steps(kv, keyspace):
        stale = [key for key, value in slots if is_stale(value, now_ms)]
        if stale:
            swept += kv.transact(partial(_clear, keys=stale, now_ms=now_ms), background=True)
    return swept


def count_stale(kv: KeyValueStore, keyspace: Keyspace, *, now_ms: int) -> int:
    """Return how many slots were not used for 24 hours."""
    return sum(is_stale(value, now_ms) for slots in _steps(kv, keyspace) for _, value in slots)


def is_stale(value: bytes, now_ms: int) -> bool:
    """Say whether a slot was not used for 24 hours. One that cannot be read is left alone."""
    try:
        return now_ms - Mark.decode(value).ms > KEPT_MS
    except ValueError:
        return False


def _steps(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[list[KeyValue]]:
    return steps(in_background(kv), keyspace.all_slots, lambda tr, found: found)


def _clear(tr: Transaction, keys: list[bytes], now_ms: int) -> int:
    """Clear those that still are stale: the reads conflict with a client that uses its slot meanwhile."""
    tr.use_reserve()
    cleared = 0
    for key, read in [(key, tr.get(key)) for key in keys]:
        value = read.wait()
        if value is not None and is_stale(value, now_ms):
            tr.clear(key)
            cleared += 1
    return cleared
