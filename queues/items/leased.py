"""Beginning of leases inside one transaction; `queues.operations.settle` ends them.

A lease is one record under the item's id, and one key by which its expiry is found. The record says at which place the
item was, so that it goes back there. Its nonce is new with every lease: a caller with another nonce holds a lease
that is over. Time never decides which worker holds a lease; it only decides when a sweep ends it.

Leases are outside of generations: a purge leaves them alone, and what comes back goes to the newest generation.

Conflicts: leasing conflicts as taking does. Whatever ends or extends a lease reads its record, so of two transactions
that would end it one does, and the other finds it ended.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from queues.items import ready, state_machine
from queues.items.counters import CounterDelta
from queues.items.stored_item import StoredItem
from queues.keys.queue_keys import OUTSIDE, QueueKeys, unpacked_suffix
from queues.kv.port import KeyValue, Transaction
from queues.model.config import Config
from queues.model.tuples import pack_number


class Grant(NamedTuple):
    """Ready items that one worker gets until a time, as they lie in the store, with nonces."""

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
    suffixes = ready.remove_pairs(tr, keys, config, pairs, now_ms, delta, pasts=pasts, verb="lease")
    ids = {key: unpacked_suffix(suffix, fifo=config.fifo)[2:] for (key, _), suffix in zip(pairs, suffixes, strict=True)}
    there = iter(ready.stored(keys, config, pairs, pasts, {key: rand for key, (rand, _) in ids.items()}))
    records, index, expiries = keys.leases.prefix, keys.index("leased").prefix, keys.expiries.prefix
    answers = []
    for grant in grants:
        expiry = expiries + pack_number(grant.expires_ms)
        leases = []
        for (key, _), item, nonce in zip(grant.pairs, there, grant.nonces, strict=False):
            lease = state_machine.leased_until(
                item, grant.expires_ms, now_ms=grant.now_ms, worker=grant.worker, nonce=nonce
            )
            packed_id = ids[key][1]
            tr.set(records + packed_id, lease.stored)
            tr.set(index + packed_id, lease.place)
            tr.set(expiry + packed_id, b"")
            leases.append(lease)
        delta.falls_due(grant.expires_ms, grant.now_ms)
        answers.append(leases)
    delta.state(OUTSIDE, "leased", "in", len(pairs))
    return answers
