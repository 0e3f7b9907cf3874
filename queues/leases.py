"""Leases: items that a worker holds for a time and acknowledges when done, and the verbs about them.

An item that is leased is nobody else's until it is acknowledged, released, or its lease expires. So a worker that dies
loses nothing: the item comes back to its place, and another worker gets it. It may be worked on more than once, then;
only one of those who held it can acknowledge it, others are told `StaleLease`.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from queues import cursor as cursors
from queues import delayed, ids, leased, ready
from queues.config import MAX_REASON
from queues.cursor import End
from queues.delays import Delays, either
from queues.errors import BadTime, BadToken, BadValue, StaleLease
from queues.handle import check_limit, check_number
from queues.item import Item, Page
from queues.keyspace import STATES, ready_elements, timed_suffix
from queues.kv.port import ReadTransaction, Transaction
from queues.tally import Tally

_NONCE_SIZE = 8
#: Characters of a worker's name that are kept.
MAX_WORKER = 200
_WHY_NOT = "nobody else would keep to a lease."


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """An item that is held for a time."""

    item: Item
    #: What says that it is this lease: keep it as text, pass it wherever a lease is asked for.
    token: str
    #: When a sweep may end it, UTC, unless it is extended.
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """What a call minted for the leases that it makes, before the first try."""

    now_ms: int
    expires_ms: int
    worker: str
    nonces: tuple[bytes, ...]


class Leases(Delays):
    """The verbs of leased items."""

    def _lease(self, n: int, *, seconds: float, end: End, worker: str | None, tr: Transaction | None) -> list[Lease]:
        self._own(_WHY_NOT)
        check_number(n)
        terms = self._terms(n, seconds, worker)
        if tr is not None:
            return self._lease_in(tr, n=n, end=end, terms=terms, serializable=True, late_ms=None) or []
        return self._punctually(
            terms.now_ms,
            lambda tr, late_ms: self._lease_in(tr, n=n, end=end, terms=terms, serializable=False, late_ms=late_ms),
        )

    def _terms(self, n: int, seconds: float, worker: str | None) -> _Terms:
        return _Terms(
            now_ms=self._backing.now_ms(),
            expires_ms=self._expires_ms(seconds),
            worker=_worker(worker),
            nonces=tuple(os.urandom(_NONCE_SIZE) for _ in range(n)),
        )

    def _lease_in(
        self, tr: Transaction, *, n: int, end: End, terms: _Terms, serializable: bool, late_ms: int | None
    ) -> list[Lease] | None:
        """Lease what stands at one end; None when an item was due by `late_ms`."""
        now_ms = terms.now_ms
        config, entries = self._front(tr, n=n, end=end, serializable=serializable, now_ms=now_ms, late_ms=late_ms)
        if not entries:
            return None if entries is None else []
        tr.use_reserve()  # the value moves, it does not come in
        tally = Tally(self._keys, wake=False)
        ready.take(tr, self._keys, config, entries, now_ms, tally, verb="lease")
        leases = []
        for entry, nonce in zip(entries, terms.nonces, strict=False):
            lease = leased.Entry(
                rand=ready_elements(entry.suffix, fifo=config.fifo)[2],
                nonce=nonce,
                expires_ms=terms.expires_ms,
                leased_ms=now_ms,
                generation=entry.generation,
                suffix=entry.suffix,
                attempts=entry.attempts + 1,
                worker=terms.worker,
                value=entry.value,
            )
            leased.insert(tr, self._keys, lease, tally)
            leases.append(_as_lease(lease, leased.as_item(lease, config)))
        tally.apply(tr)
        return leases

    def ack(self, lease: Lease | str, *, tr: Transaction | None = None) -> None:
        """Say that the leased item is done: it is gone for good. Acknowledging again changes nothing.

        Raises `StaleLease` when the lease is over and the item is still in this queue: somebody else may work on it.
        When it is nowhere in this queue any more, this succeeds, and does not tell why: acknowledged before, or deleted
        or moved meanwhile, which can be undone.
        """
        if self.ack_many([lease], tr=tr):
            raise StaleLease(
                "This lease is over: it ended before it was acknowledged, so the item may be worked on again."
            )

    def ack_many(self, leases: Iterable[Lease | str], *, tr: Transaction | None = None) -> list[str]:
        """Acknowledge at most 1,000 leases in one transaction, and return the tokens of those that are stale."""
        self._own(_WHY_NOT)
        held = {_parse(lease): _token(lease) for lease in leases}
        if not held:
            return []
        check_number(len(held))

        def write(tr: Transaction) -> list[str]:
            reads = [(rand, nonce, tr.get(self._keys.lease(rand))) for rand, nonce in held]
            generations = self._current(tr).generations
            tally = Tally(self._keys, wake=False)
            over: list[tuple[bytes, bytes]] = []
            for rand, nonce, read in reads:
                record = read.wait()
                entry = None if record is None else leased.decode(rand, record)
                if entry is not None and entry.nonce == nonce:
                    leased.remove(tr, self._keys, entry, tally)
                else:
                    over.append((rand, nonce))
            if acked := len(held) - len(over):
                tally.traffic("ack", acked)
                tally.apply(tr)
            # A lease that is over counts as acknowledged before if its item is nowhere in this queue.
            places = [
                (lease, [ready.PlaceRead(tr, self._keys, generations, lease[0], state) for state in STATES])
                for lease in over
            ]
            return [held[lease] for lease, found in places if any(read.wait() is not None for read in found)]

        return self._backing.transact(write, tr)

    def release(
        self, lease: Lease | str, *, delay: timedelta | None = None, reason: str = "", tr: Transaction | None = None
    ) -> Item:
        """Give a leased item back to its place, or let it come back after a delay, and return it.

        After the last attempt that the queue allows it is dead, for this reason. Raises `StaleLease`.
        """
        self._own(_WHY_NOT)
        rand, nonce = _parse(lease)
        when = either(delay, None)
        due_ms = None if when is None else self._due_ms(when)
        now_ms = self._backing.now_ms()
        why = _reason(reason)

        def write(tr: Transaction) -> Item:
            config = self._current(tr)
            entry = leased.held(tr, self._keys, rand, nonce)
            tally = Tally(self._keys, wake=False)
            leased.remove(tr, self._keys, entry, tally)
            tally.traffic("release")
            if due_ms is None or leased.is_last(entry, config):
                last = why or f"released at attempt {entry.attempts}"
                item = leased.give_back(tr, self._keys, config, entry, tally, now_ms=now_ms, reason=last)
            else:
                item = delayed.insert(
                    tr,
                    self._keys,
                    config,
                    tally,
                    rand=rand,
                    due_ms=due_ms,
                    now_ms=now_ms,
                    priority=ready_elements(entry.suffix, fifo=config.fifo)[0],
                    value=entry.value,
                    attempts=entry.attempts,
                    reason=why,
                )
            tally.apply(tr)
            return item

        return self._backing.transact(write, tr)

    def extend(self, lease: Lease | str, *, seconds: float, tr: Transaction | None = None) -> Lease:
        """Let a lease end so many seconds from now, and return it; its token stays. Raises `StaleLease`.

        A lease whose time is over can be extended until a sweep has ended it.
        """
        self._own(_WHY_NOT)
        rand, nonce = _parse(lease)
        now_ms, expires_ms = self._backing.now_ms(), self._expires_ms(seconds)

        def write(tr: Transaction) -> Lease:
            config = self._current(tr)
            entry = leased.held(tr, self._keys, rand, nonce)
            tr.use_reserve()
            tr.clear(self._keys.expiry(timed_suffix(entry.expires_ms, rand)))
            entry = replace(entry, expires_ms=expires_ms)
            leased.write(tr, self._keys, entry)
            tally = Tally(self._keys, wake=False)
            tally.traffic("extend")
            tally.falls_due(expires_ms, now_ms)
            tally.apply(tr)
            return _as_lease(entry, leased.as_item(entry, config))

        return self._backing.transact(write, tr)

    def expire(self, limit: int = 100, *, tr: Transaction | None = None) -> int:
        """End at most `limit` leases (1 to 1,000) whose time is over by this process's clock; return their number.

        Items go back to their places, or to the dead after their last attempt. Sweeps call this until it returns 0. A
        call stops early at 1 MB of values.
        """
        self._own(_WHY_NOT)
        check_limit(limit)
        now_ms = self._backing.now_ms()
        return self._backing.transact(
            lambda tr: leased.expire_due(
                tr, self._keys, self._current(tr), until_ms=now_ms, limit=limit, budget=delayed.BUDGET
            ),
            tr,
        )

    def leased(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of leased items, the next to expire first, changing nothing.

        `after` is the cursor of the page before; values are cut to `preview` bytes.
        """
        self._own(_WHY_NOT)
        check_limit(limit)
        suffix = None if after is None else cursors.decode(after, self.id, "leased")

        def look(tr: ReadTransaction) -> Page:
            config = self._current(tr)
            found = leased.look(tr, self._keys, after=suffix, limit=limit + 1)
            shown = found[:limit]
            cursor = None
            if len(found) > limit:
                last = shown[-1]
                cursor = cursors.encode(self.id, "leased", timed_suffix(last.expires_ms, last.rand))
            return Page(items=tuple(leased.as_item(entry, config, preview=preview) for entry in shown), cursor=cursor)

        return self._backing.read(look, tr)

    def _expires_ms(self, seconds: float) -> int:
        """Return when a lease ends that begins now."""
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise BadTime(f"A lease is held for a number of seconds above 0, not {seconds!r:.40}.")
        expires_ms = math.ceil((self._backing.clock() + seconds) * 1000)
        if expires_ms > ids.LAST_MS:
            raise BadTime("A lease ends before the year 10000.")
        return expires_ms


def _as_lease(entry: leased.Entry, item: Item) -> Lease:
    return Lease(item=item, token=f"{entry.rand.hex()}-{entry.nonce.hex()}", expires_at=ids.at(entry.expires_ms))


def _token(lease: Lease | str) -> str:
    token = lease.token if isinstance(lease, Lease) else lease
    if not isinstance(token, str):
        raise BadToken(f"A lease or its token is needed here, not {type(token).__name__}.")
    return token


def _parse(lease: Lease | str) -> tuple[bytes, bytes]:
    """Return (rand, nonce) of a lease; raise `BadToken`."""
    item_id, _, rest = _token(lease).partition("-")
    rand = ids.parse(item_id)
    try:
        nonce = bytes.fromhex(rest)
    except ValueError:
        nonce = b""
    if rand is None or len(nonce) != _NONCE_SIZE:
        raise BadToken("This is not the token of a lease.")
    return rand, nonce


def _worker(name: str | None) -> str:
    """Return who leases: by default this process and its machine."""
    if name is None:
        return f"{socket.gethostname()}:{os.getpid()}"[:MAX_WORKER]
    if not isinstance(name, str):
        raise BadValue(f"A worker's name is text, not {type(name).__name__}.")
    return name[:MAX_WORKER]


def _reason(reason: str) -> str:
    if not isinstance(reason, str):
        raise BadValue(f"A reason is text, not {type(reason).__name__}.")
    return reason[:MAX_REASON]
