"""Leases: items that a worker holds for a time and acknowledges when done, and the verbs about them.

An item that is leased is nobody else's until it is acknowledged, released, or its lease expires. So a worker that dies
loses nothing: the item comes back to its place, and another worker gets it. It may be worked on more than once, then;
only one of those who held it can acknowledge it, others are told `StaleLease`.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from queues.errors import BadTime, BadToken, BadValue, StaleLease
from queues.items import delayed, leased, transition
from queues.items.counters import CounterDelta
from queues.items.scan import page
from queues.items.stored_item import StoredItem, as_item
from queues.keys.suffix import NONCE_SIZE
from queues.kv.port import ReadTransaction, Transaction
from queues.model import ids
from queues.model.config import MAX_REASON, Config, check_text
from queues.model.cursor import End
from queues.model.duration import LEASE, Duration, seconds_of
from queues.model.item import Item, Page
from queues.operations.delay import Delays, either
from queues.operations.handle import check_limit, check_number
from queues.operations.lease_block import Binding, LeaseBlock, QueueBinding, binding_of, bound
from queues.serving.lease_batch import Errand, Finish
from queues.serving.take_request import LATE_MS, Take

#: Characters of a worker's name that are kept.
MAX_WORKER = 200
_WHY_NOT = "nobody else would keep to a lease."


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(LeaseBlock):
    """An item that is held for a time; as a context manager it settles itself.

    `with lease:` acknowledges the item when the block succeeds. When the block raises, it releases the item with the
    error as the reason, and the error goes on; one that is no `Exception`, as KeyboardInterrupt, counts no attempt.
    A lease from an `AsyncQueue` is used in `async with`. A copied or unpickled lease raises `LeaseNotBound`: settle it
    by the verbs of its queue.
    """

    item: Item
    #: What says that it is this lease: keep it as text, pass it wherever a lease is asked for.
    token: str
    #: When a sweep may end it, UTC, unless it is extended.
    expires_at: datetime


class Leases(Delays):
    """The verbs of leased items."""

    def _lease(
        self, n: int, *, seconds: float, end: End, worker: str | None, keep: bool, tr: Transaction | None
    ) -> list[Lease]:
        self._own(_WHY_NOT)
        check_number(n)
        terms = self._terms(n, seconds, worker)
        binding = QueueBinding(self, seconds=seconds, keep=keep, start=self._context.background_threads.start)
        if tr is not None:
            take = Take(n=n, end=end, now_ms=terms.now_ms, terms=terms)
            (entries,) = self._serve_takes(tr, [take], serializable=True)
            return self._as_leases(entries, binding)
        return self._as_leases(self._punctually(leasing(n, end, terms)), binding)

    def _terms(self, n: int, seconds: float, worker: str | None) -> leased.Terms:
        return leased.Terms(
            now_ms=self._context.now_ms(),
            expires_ms=self._expires_ms(seconds),
            worker=_worker(worker),
            nonces=tuple(os.urandom(NONCE_SIZE) for _ in range(n)),
        )

    def _as_leases(self, entries: Any, binding: Binding) -> list[Lease]:
        return [_as_lease(entry, self.config, binding) for entry in entries]

    def ack(self, lease: Lease | str, *, must_hold: bool = False, tr: Transaction | None = None) -> None:
        """Say that the leased item is done: it is gone for good. Acknowledging again changes nothing.

        A lease that has expired can be acknowledged as long as nothing else has happened to the item: no other worker
        took it, and nobody changed it. Else raises `StaleLease` when the item is still in this queue: another worker
        may work on it. When it is nowhere in this queue any more, this succeeds, and does not tell why: acknowledged
        before, or deleted or moved meanwhile, which can be undone. With `must_hold` it raises `StaleLease` then too,
        so that what the same `tr` does is done once for each item.
        """
        errand = self._acking([lease], must_hold=must_hold)
        if errand is not None and self._run(errand, tr):
            raise stale()

    def ack_many(self, leases: Iterable[Lease | str], *, tr: Transaction | None = None) -> list[str]:
        """Acknowledge at most 1,000 leases in one transaction, and return the tokens of those that are stale."""
        errand = self._acking(leases)
        over: list[str] = [] if errand is None else self._run(errand, tr)
        return over

    def _acking(self, leases: Iterable[Lease | str], *, must_hold: bool = False) -> Errand | None:
        """Return the errand that acknowledges; None when there is nothing to acknowledge."""
        self._own(_WHY_NOT)
        held = {_parse(lease): _token(lease) for lease in leases}
        if not held:
            return None
        check_number(len(held))

        def begin(tr: Transaction) -> Finish:
            return partial(finish, tr, [(lease, leased.HeldRead(tr, self._keys, *lease)) for lease in held])

        def finish(
            tr: Transaction,
            reads: list[tuple[tuple[bytes, bytes], leased.HeldRead]],
            config: Config,
            delta: CounterDelta,
        ) -> list[str]:
            over: list[tuple[bytes, bytes]] = []
            acked = set()
            for lease, read in reads:
                there = read.find()
                if there is None:
                    over.append(lease)
                    continue
                tr.use_reserve()
                transition.change(tr, self._keys, config, there, None, delta)
                acked.add(there.rand)
            if acked:
                delta.traffic("ack", len(acked))
            # A lease that is over counts as acknowledged before if its item is nowhere in this queue.
            looks = [
                (lease, leased.ExpiredRead(tr, self._keys, config, *lease)) for lease in over if lease[0] not in acked
            ]
            stale = [(lease, look) for lease, look in looks if must_hold or look.is_there()]
            acked |= {lease[0] for lease, look in stale if look.take(delta)}
            return [held[lease] for lease, _ in stale if lease[0] not in acked]

        return Errand(begin=begin, rands=tuple(rand for rand, _ in held))

    def release(
        self,
        lease: Lease | str,
        *,
        delay: Duration | None = None,
        reason: str = "",
        count_attempt: bool = True,
        tr: Transaction | None = None,
    ) -> Item:
        """Give a leased item back to its place, or let it come back after a delay, and return it.

        After the last attempt that the queue allows it is dead, for this reason. Without `count_attempt` this lease is
        no attempt: the item has as many as before it, and is never dead by this. Raises `StaleLease`.
        """
        item: Item = self._run(self._releasing(lease, delay, reason, count_attempt), tr)
        return item

    def _releasing(self, lease: Lease | str, delay: Duration | None, reason: str, count_attempt: bool) -> Errand:
        self._own(_WHY_NOT)
        rand, nonce = _parse(lease)
        when = either(delay, None)
        due_ms = None if when is None else self._due_ms(when)
        now_ms = self._context.now_ms()
        why = _reason(reason)

        def finish(tr: Transaction, held: leased.HeldRead, config: Config, delta: CounterDelta) -> Item:
            there = held.wait()
            if not count_attempt:
                there = replace(there, attempts=there.attempts - 1)
            if due_ms is None or (count_attempt and transition.is_last(there, config)):
                after = transition.given_back(there, config, now_ms=now_ms, reason=why, dies=count_attempt)
            else:
                after = transition.delayed_until(there, config, due_ms, reason=why)
            tr.use_reserve()
            delta.traffic("release")
            transition.change(tr, self._keys, config, there, after, delta, now_ms=now_ms)
            return as_item(after, fifo=config.fifo, codec=config.values)

        return self._about(rand, nonce, finish)

    def extend(self, lease: Lease | str, *, seconds: Duration, tr: Transaction | None = None) -> Lease:
        """Let a lease end so many seconds from now, and return it; its token stays. Raises `StaleLease`.

        A lease whose time is over can be extended until a sweep has ended it.
        """
        extended: Lease = self._run(self._extending(lease, seconds), tr)
        return extended

    def _extending(self, lease: Lease | str, seconds: Duration) -> Errand:
        self._own(_WHY_NOT)
        rand, nonce = _parse(lease)
        now_ms, expires_ms = self._context.now_ms(), self._expires_ms(seconds)

        def finish(tr: Transaction, held: leased.HeldRead, config: Config, delta: CounterDelta) -> Lease:
            there = held.wait()
            after = transition.extended(there, expires_ms)
            tr.use_reserve()
            delta.traffic("extend")
            transition.change(tr, self._keys, config, there, after, delta, now_ms=now_ms)
            return _as_lease(after, config, binding_of(lease))

        return self._about(rand, nonce, finish)

    def _about(
        self,
        rand: bytes,
        nonce: bytes,
        finish: Callable[[Transaction, leased.HeldRead, Config, CounterDelta], Any],
    ) -> Errand:
        """Return the errand that does something to one lease."""

        def begin(tr: Transaction) -> Finish:
            return partial(finish, tr, leased.HeldRead(tr, self._keys, rand, nonce))

        return Errand(begin=begin, rands=(rand,))

    def expire(self, limit: int = 100, *, tr: Transaction | None = None) -> int:
        """End at most `limit` leases (1 to 1,000) whose time is over by the store's clock; return their number.

        Items go back to their places, or to the dead after their last attempt. Sweeps call this until it returns 0. A
        call stops early at 1 MB of values.
        """
        self._own(_WHY_NOT)
        check_limit(limit)
        now_ms = self._context.now_ms()
        return self._context.transact(
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

        def look(tr: ReadTransaction, config: Config, behind: bytes | None, limit: int) -> list[tuple[bytes, Item]]:
            return page(tr, self._keys, config, "leased", after=behind, limit=limit, preview=preview)

        return self._state_page("leased", look, limit=limit, after=after, tr=tr)

    def _expires_ms(self, seconds: Duration) -> int:
        """Return when a lease ends that begins now."""
        held = seconds_of(seconds, LEASE, above_zero=True)
        expires_ms = math.ceil((self._context.clock() + held) * 1000)
        if expires_ms > ids.LAST_MS:
            raise BadTime("A lease ends before the year 10000.")
        return expires_ms


def stale() -> StaleLease:
    """Build the error of an acknowledgement that comes too late."""
    return StaleLease("This lease is over: it ended before it was acknowledged, so the item may be worked on again.")


def leasing(n: int, end: End, terms: leased.Terms) -> Take:
    """Return the take of a lease."""
    return Take(n=n, end=end, now_ms=terms.now_ms, late_ms=terms.now_ms - LATE_MS, terms=terms)


def _as_lease(there: StoredItem, config: Config, binding: Binding) -> Lease:
    token = f"{there.rand.hex()}-{there.nonce.hex()}"
    item = as_item(there, fifo=config.fifo, codec=config.values)
    return bound(Lease(item=item, token=token, expires_at=ids.at(there.expires_ms)), binding)


def _token(lease: Lease | str) -> str:
    token = lease.token if isinstance(lease, Lease) else lease
    if not isinstance(token, str):
        raise BadToken("A lease or its token is needed here, not {type}.", type=type(token).__name__)
    return token


def _parse(lease: Lease | str) -> tuple[bytes, bytes]:
    """Return (rand, nonce) of a lease; raise `BadToken`."""
    item_id, _, rest = _token(lease).partition("-")
    rand = ids.parse(item_id)
    try:
        nonce = bytes.fromhex(rest)
    except ValueError:
        nonce = b""
    if rand is None or len(nonce) != NONCE_SIZE:
        raise BadToken("This is not the token of a lease.")
    return rand, nonce


def _worker(name: str | None) -> str:
    """Return who leases: by default this process and its machine."""
    if name is None:
        return f"{socket.gethostname()}:{os.getpid()}"[:MAX_WORKER]
    if not isinstance(name, str):
        raise BadValue("A worker's name is text, not {type}.", type=type(name).__name__)
    return name[:MAX_WORKER]


def _reason(reason: str) -> str:
    if not isinstance(reason, str):
        raise BadValue("A reason is text, not {type}.", type=type(reason).__name__)
    return check_text(reason, MAX_REASON)
