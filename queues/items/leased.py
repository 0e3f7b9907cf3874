"""Leases inside one transaction: how they begin, and how they expire.

A lease is one record under the item's id, and one key by which its expiry is found. The record says at which place the
item was, so that it goes back there. Its nonce is new with every lease: a caller with another nonce holds a lease
that is over. Time never decides which worker holds a lease; it only decides when a sweep ends it.

When a lease expires, its nonce stays in the index of the item, which is ready at its place again, or dead. Any other
change of the item writes its index without a nonce, or clears it. So a nonce in the index says that nothing has
happened since, or that it was undone, and the lease can still be acknowledged.

Leases are outside of generations: a purge leaves them alone, and what comes back goes to the newest generation.

Conflicts: leasing conflicts as taking does. Whatever ends or extends a lease reads its record, so of two transactions
that would end it one does, and the other finds it ended.
"""

from collections.abc import Sequence

from queues.items import ready, transition
from queues.items.counters import CounterDelta
from queues.items.stored_item import PlaceRead, StoredItem, at_place, from_lease
from queues.keys.queue_keys import STATES, QueueKeys, expired_nonce, timed_elements
from queues.kv.port import Transaction
from queues.model.config import Config


def begin(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    items: Sequence[StoredItem],
    delta: CounterDelta,
    *,
    now_ms: int,
    expires_ms: int,
    worker: str,
    nonces: Sequence[bytes],
) -> list[StoredItem]:
    """Lease these ready items, conflicting on exactly their keys."""
    tr.use_reserve()  # values move, they do not come in
    ready.take(tr, keys, config, items, now_ms, delta, verb="lease")
    leases = [
        transition.leased_until(there, expires_ms, now_ms=now_ms, worker=worker, nonce=nonce)
        for there, nonce in zip(items, nonces, strict=False)
    ]
    for lease in leases:
        transition.change(tr, keys, config, None, lease, delta, now_ms=now_ms)
    return leases


class ExpiredRead:
    """A read of the place of an item whose lease is over, issued and not yet waited for."""

    def __init__(self, tr: Transaction, keys: QueueKeys, config: Config, rand: bytes, nonce: bytes) -> None:
        self._tr = tr
        self._keys = keys
        self._config = config
        self._rand = rand
        self._nonce = nonce
        self._reads = {state: PlaceRead(tr, keys, config.generations, rand, state) for state in STATES}

    def is_there(self) -> bool:
        """Say whether the item is in this queue."""
        return any(read.wait() is not None for read in self._reads.values())

    def take(self, delta: CounterDelta) -> bool:
        """Take the item out as acknowledged; False when something has happened to it since the lease expired."""
        for state in ("ready", "dead"):
            where = self._reads[state].wait()
            if where is not None and expired_nonce(where) == self._nonce:
                there = at_place(self._rand, state, where)
                self._tr.use_reserve()
                self._tr.add_read_conflict_key(there.key(self._keys))
                transition.change(self._tr, self._keys, self._config, there, None, delta)
                delta.traffic("ack")
                return True
        return False


def expire_due(tr: Transaction, keys: QueueKeys, config: Config, *, until_ms: int, limit: int, budget: int) -> int:
    """End at most `limit` leases that have expired by `until_ms`, and so many bytes; return their number."""
    expiries = tr.snapshot.get_range(*keys.expiries.before(until_ms + 1), limit=limit).wait()
    delta = CounterDelta(keys, wake=False)
    ended = 0
    reads = []
    for key, _ in expiries:
        expires_ms, rand = timed_elements(keys.expiries.suffix_of(key))
        reads.append((key, expires_ms, rand, tr.get(keys.leases.key(rand))))
    for key, expires_ms, rand, read in reads:
        record = read.wait()
        there = None if record is None else from_lease(rand, record)
        if there is None or there.expires_ms != expires_ms:
            tr.clear(key)  # no transition writes one without the other, but a sweep must never stop at it
            continue
        budget -= there.weight
        if budget < 0 and ended:
            break
        tr.use_reserve()
        transition.change(tr, keys, config, there, transition.expired(there, config, now_ms=until_ms), delta)
        ended += 1
    if ended:
        delta.traffic("expire", ended)
        delta.apply(tr)
    return ended
