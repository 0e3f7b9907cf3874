"""Expired leases whose items no other worker took: they can still be acknowledged.

When a lease expires, its nonce stays in the index of the item, which is ready at its place again, or dead. Whatever
else happens to the item writes its index anew, without a nonce, or clears it: another lease, a pop, an edit, a move, a
retry. So a nonce in the index says that nothing has happened since, or that it was undone: an undo brings it back.

Conflicts: the index is read, and a ready item is taken as a pop takes it. So of an acknowledgement and of whatever else
happens to the item one does it, and the other begins anew.
"""

from __future__ import annotations

from queues.items import dead, ready
from queues.items.counters import CounterDelta
from queues.keys.queue_keys import STATES, QueueKeys
from queues.keys.suffix import expired_nonce, read_place
from queues.kv.port import Transaction
from queues.model.config import Config


class ExpiredRead:
    """A look for the item of a lease that is over, issued and not yet waited for."""

    def __init__(self, tr: Transaction, keys: QueueKeys, config: Config, rand: bytes, nonce: bytes) -> None:
        self._tr = tr
        self._keys = keys
        self._config = config
        self._nonce = nonce
        self._rand = rand
        self._reads = {state: ready.PlaceRead(tr, keys, config.generations, rand, state) for state in STATES}

    def is_there(self) -> bool:
        """Say whether the item stood in this queue."""
        return any(read.wait() is not None for read in self._reads.values())

    def take(self, delta: CounterDelta, *, now_ms: int) -> bool:
        """Take the item out as acknowledged; False when something has happened to it since the lease expired."""
        for state in ("ready", "dead"):
            where = self._reads[state].wait()
            if where is not None and expired_nonce(where) == self._nonce:
                self._take_from(state, where, delta, now_ms)
                return True
        return False

    def _take_from(self, state: str, where: bytes, delta: CounterDelta, now_ms: int) -> None:
        generation, suffix, attempts = read_place(where)
        if state == "dead":
            dead.remove_at(self._tr, self._keys, self._rand, suffix, delta)
            delta.traffic("ack")
            return
        self._tr.use_reserve()
        key = self._keys.generation(generation).ready(suffix)
        entry = ready.Entry(generation, suffix, key, b"", attempts)  # no value: it is not wanted by anybody
        ready.take(self._tr, self._keys, self._config, [entry], now_ms, delta, verb="ack")
