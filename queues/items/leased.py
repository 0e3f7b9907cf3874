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

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from queues.items import ready, transition
from queues.items.counters import CounterDelta
from queues.items.stored_item import PlaceRead, StoredItem, at_place, from_lease
from queues.keys.queue_keys import OUTSIDE, STATES, QueueKeys, expired_nonce, timed_elements
from queues.kv.port import KeyValue, Transaction
from queues.model.config import Config
from queues.model.tuples import pack_bytes, pack_number


class Grant(NamedTuple):
    """Ready items as they lie in the store that one worker gets until a time, with a nonce for each."""

    pairs: Sequence[KeyValue]
    now_ms: int
    expires_ms: int
    worker: str
    nonces: Sequence[bytes]


def begin(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    grants: Sequence[Grant],
    delta: CounterDelta,
    *,
    now_ms: int,
    pasts: Mapping[bytes, StoredItem],
) -> list[list[StoredItem]]:
    """Lease ready items, conflicting on exactly their keys; return the leases of each grant.

    `pasts` has the items that have a past, by key. This is the packed form of transitions: all items leave the ready
    set together, and packed ids are used again.
    """
    tr.use_reserve()  # values move, they do not come in
    pairs = list(chain.from_iterable(grant.pairs for grant in grants))
    rows = ready.remove_pairs(tr, keys, config, pairs, now_ms, delta, pasts=pasts, verb="lease")
    there = iter(ready.stored(keys, config, pairs, pasts, rows))
    records, index, expiries = keys.leases.prefix, keys.index("leased").prefix, keys.expiries.prefix
    answers = []
    for grant in grants:
        expiry = expiries + pack_number(grant.expires_ms)
        leases = []
        for (key, _), item, nonce in zip(grant.pairs, there, grant.nonces, strict=False):
            lease = transition.leased_until(
                item, grant.expires_ms, now_ms=grant.now_ms, worker=grant.worker, nonce=nonce
            )
            packed_id = rows[key][3]
            tr.set(records + packed_id, lease.stored)
            tr.set(index + packed_id, lease.place)
            tr.set(expiry + packed_id, b"")
            leases.append(lease)
        delta.falls_due(grant.expires_ms, grant.now_ms)
        answers.append(leases)
    delta.state(OUTSIDE, "leased", "in", len(pairs))
    return answers


def acknowledge(tr: Transaction, keys: QueueKeys, items: Sequence[StoredItem], delta: CounterDelta) -> None:
    """Remove leased items for good, all in one call of the engine: the packed form of transitions, too."""
    records, index, expiries = keys.leases.prefix, keys.index("leased").prefix, keys.expiries.prefix
    tr.use_reserve()
    gone: list[bytes] = []
    for there in items:
        packed_id = pack_bytes(there.rand)
        gone += (records + packed_id, index + packed_id, expiries + pack_number(there.expires_ms) + packed_id)
    tr.clear_many(gone)
    delta.state(OUTSIDE, "leased", "out", len(items))
    delta.traffic("ack", len(items))


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
