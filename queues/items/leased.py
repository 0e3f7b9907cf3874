"""Leases inside one transaction: how they begin. queues/items/lease_expiry.py has how they end by themselves.

A lease is one record under the item's id, and one key by which its expiry is found. The record says at which place the
item was, so that it goes back there. Its nonce is new with every lease: a caller with another nonce holds a lease
that is over. Time never decides which worker holds a lease; it only decides when a sweep ends it.

Leases are outside of generations: a purge leaves them alone, and what comes back goes to the newest generation.

Conflicts: leasing conflicts as taking does. Whatever ends or extends a lease reads its record, so of two transactions
that would end it one does, and the other finds it ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from queues.items import ready, transition
from queues.items.counters import CounterDelta
from queues.items.stored_item import StoredItem
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import Transaction
from queues.model.config import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of the leases of one call, fixed before its first try."""

    now_ms: int
    expires_ms: int
    worker: str
    nonces: tuple[bytes, ...]


def begin(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    items: Sequence[StoredItem],
    terms: Terms,
    delta: CounterDelta,
) -> list[StoredItem]:
    """Lease these ready items, conflicting on exactly their keys."""
    tr.use_reserve()  # values move, they do not come in
    ready.take(tr, keys, config, items, terms.now_ms, delta, verb="lease")
    leases = []
    for there, nonce in zip(items, terms.nonces, strict=False):
        lease = transition.leased_until(there, terms.expires_ms, now_ms=terms.now_ms, worker=terms.worker, nonce=nonce)
        transition.change(tr, keys, config, None, lease, delta, now_ms=terms.now_ms)
        leases.append(lease)
    return leases
