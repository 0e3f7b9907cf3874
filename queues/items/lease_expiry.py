"""Expiry of leases: which are over, and what is acknowledged after its lease.

Takes and sweeps call `expire_due`. What the item becomes, ready or dead, is `queues.items.state_machine.expired`.

When a lease expires, its nonce stays in the index of the item, which is ready at its place again, or dead. Any other
change of the item writes its index without a nonce, or clears it. So a nonce in the index says that nothing has
happened since, or that it was undone, and the lease can still be acknowledged.
"""

from queues.items import state_machine
from queues.items.counters import CounterDelta
from queues.items.delayed import PAGES
from queues.items.stored_item import ItemRead, PlaceRead, StoredItem, at_place, from_lease, sound
from queues.keys.queue_keys import STATES, QueueKeys, expired_nonce, timed_elements
from queues.kv.port import Transaction
from queues.model.config import Config
from queues.model.records import UNREADABLE, Tell


class ExpiredRead:
    """A read of the place of an item with an expired lease, issued and not yet waited for."""

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

    def item(self) -> StoredItem | None:
        """Return the item; None when something has happened to it since. Raises one of `UNREADABLE`.

        Where the queue keeps no finished items it is without value.
        """
        for state in ("ready", "dead"):
            where = self._reads[state].wait()
            if where is not None and expired_nonce(where) == self._nonce:
                there = at_place(self._rand, state, where)
                if self._config.keep_finished:
                    there = ItemRead(self._tr, self._keys, self._rand, state, where).wait() or there
                return there
        return None

    def take(self, there: StoredItem, delta: CounterDelta) -> None:
        """Take the item out as acknowledged."""
        self._tr.use_reserve()
        self._tr.add_read_conflict_key(there.key(self._keys))
        state_machine.change(self._tr, self._keys, self._config, there, None, delta)
        delta.traffic("ack")


def expire_due(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    *,
    until_ms: int,
    limit: int,
    budget: int,
    tell: Tell = lambda what, error: None,
) -> int:
    """End at most `limit` leases that have expired by `until_ms`, and so many bytes. Return their number.

    `tell` is told of records that cannot be read: they stay.
    """
    delta = CounterDelta(keys, wake=False)
    ended, last = 0, None
    for _ in range(PAGES):
        expiries = tr.snapshot.get_range(*keys.expiries.before(until_ms + 1, behind=last), limit=limit).wait()
        reads = []
        for key, _ in expiries:
            expires_ms, rand = timed_elements(keys.expiries.suffix_of(key))
            reads.append((key, expires_ms, rand, tr.get(keys.leases.key(rand))))
        unreadable = 0
        for key, expires_ms, rand, read in reads:
            record = read.wait()
            try:
                there = None if record is None else sound(from_lease(rand, record), config)
            except UNREADABLE as error:
                tell(f"A leased item of {config.name!r}", error)
                unreadable += 1
                continue
            if there is None or there.expires_ms != expires_ms:
                tr.clear(key)  # no transition writes one without the other, but a sweep must never stop at it
                continue
            budget -= there.weight
            if budget < 0 and ended:
                break
            tr.use_reserve()
            state_machine.change(tr, keys, config, there, state_machine.expired(there, config, now_ms=until_ms), delta)
            ended += 1
        if len(expiries) < limit or unreadable < limit:
            break
        last = expiries[-1][0]
    if ended:
        delta.traffic("expire", ended)
        delta.apply(tr)
    return ended
