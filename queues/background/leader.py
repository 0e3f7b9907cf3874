"""Elections: one process at a time does a role, and when it dies another takes over within a few seconds.

The record of a role says who holds it, in which term, and until when by the holder's own clock. Holders renew it; a
candidate takes what stayed the same for as long as a holding lasts, by the candidate's own count of seconds. So no two
clocks are compared, and a minute between them harms nothing: the written expiry counts only where it passed longer ago
than clocks are apart.

A holder that was held up may go on for a moment after another took over. Whatever must not happen then calls `check` in
its transaction: it reads the term, which the next holder changes, so nothing of an earlier term commits after that.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from queues.context import StoreContext
from queues.errors import NotElected
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records

#: How long a holding lasts without being renewed, in seconds; it is renewed three times as often.
SECONDS = 4.0
#: How far apart clocks may be, in milliseconds.
SKEW_MS = 60_000
_KNOWN = frozenset({"holder", "name", "term", "expires", "renewed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Who does a role."""

    #: 32 hexadecimal digits, new in each process; empty: given up.
    holder: str
    #: Machine and process, for people.
    name: str
    #: Grows by one whenever somebody takes the role.
    term: int
    #: Until when it holds without being renewed, by the store's clock, in milliseconds.
    expires_ms: int
    #: Grows with every renewal, so that each can be seen, whatever the clock says.
    renewed: int = 0
    #: What a later build of this format keeps here besides: written again as it was read.
    unknown: dict[str, Any] = field(default_factory=dict, hash=False)

    def encode(self) -> bytes:
        """Return the holding as the store keeps it."""
        header = self.unknown | {"holder": self.holder, "name": self.name, "term": self.term}
        return records.encode(header | {"expires": self.expires_ms, "renewed": self.renewed})

    @classmethod
    def decode(cls, record: bytes) -> Holding:
        """Read a holding from the store."""
        header, _ = records.decode(record)
        return cls(
            holder=header["holder"],
            name=header["name"],
            term=header["term"],
            expires_ms=header["expires"],
            renewed=header["renewed"],
            unknown=records.unknown(header, _KNOWN),
        )


class Candidate:
    """One process's part in the election of a role. One thread calls `step`; any may ask and `check`.

    Call `step`, sleep for `rest` seconds, or until what is `known` changes, and again.
    """

    def __init__(
        self,
        context: StoreContext,
        role: str,
        *,
        seconds: float = SECONDS,
        name: str | None = None,
        count: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._key = context.keyspace.elected(role)
        self._seconds = seconds
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._id = os.urandom(16).hex()
        self._count = count
        #: The record as it was seen last, and since when it has been the same.
        self._seen: bytes | None = None
        self._seen_at: float | None = None
        #: The term that is ours, and until when without being renewed.
        self._term: int | None = None
        self._ours_until = 0.0

    @property
    def elected(self) -> bool:
        """Say whether this process does the role now; without being renewed that ends by itself."""
        return self._term is not None and self._count() < self._ours_until

    @property
    def rest(self) -> float:
        """Return the seconds after which to take the next step."""
        if self._term is not None:
            return self._seconds / 3
        return 0.0 if self._seen_at is None else max(0.0, self._seen_at + self._seconds - self._count())

    @property
    def known(self) -> Mapping[bytes, bytes | None]:
        """Return what to watch while somebody else does the role: giving it up changes it at once."""
        return {self._key: self._seen}

    def step(self) -> bool:
        """Renew, or take the role if nobody does it; say whether it is ours."""
        if self._term is not None and self._renew(self._term):
            return True
        self._term = None
        record = self._context.read(lambda tr: tr.get(self._key).wait(), None)
        if record != self._seen or self._seen_at is None:
            self._seen, self._seen_at = record, self._count()
        if self._is_free(record, self._seen_at):
            self._take(record)
        return self.elected

    def check(self, tr: ReadTransaction) -> None:
        """Raise `NotElected` unless the role is still ours when `tr` commits."""
        if self._ours(tr, self._term) is None:
            raise NotElected("Another process does this now. Nothing was changed.")

    def resign(self) -> None:
        """Give the role up, if it is ours: another process takes it at once."""
        term, self._term = self._term, None

        def give_up(tr: Transaction) -> None:
            held = self._ours(tr, term)
            if held is not None:
                tr.use_reserve()
                tr.set(self._key, replace(held, holder="", expires_ms=0).encode())

        if term is not None:
            self._context.transact(give_up, None)

    def _is_free(self, record: bytes | None, since: float) -> bool:
        """Say whether nobody does the role any more; the record has been the same since then."""
        if record is None:
            return True
        held = Holding.decode(record)
        if not held.holder or held.expires_ms + SKEW_MS < self._context.now_ms():
            return True
        return self._count() - since >= self._seconds

    def _take(self, seen: bytes | None) -> None:
        began, expires_ms = self._count(), self._expires_ms()
        term = 1 if seen is None else Holding.decode(seen).term + 1
        record = Holding(holder=self._id, name=self._name, term=term, expires_ms=expires_ms).encode()

        def take(tr: Transaction) -> bool:
            if tr.get(self._key).wait() != seen:
                return False  # it is alive, or another one was faster
            tr.use_reserve()
            tr.set(self._key, record)
            return True

        if self._context.transact(take, None):
            self._seen, self._term = record, term
            self._ours_until = began + self._seconds

    def _renew(self, term: int) -> bool:
        """Write a later expiry; False when the role is no longer ours."""
        began, expires_ms = self._count(), self._expires_ms()

        def renew(tr: Transaction) -> bool:
            held = self._ours(tr, term)
            if held is None:
                return False
            tr.use_reserve()
            tr.set(self._key, replace(held, expires_ms=expires_ms, renewed=held.renewed + 1).encode())
            return True

        if not self._context.transact(renew, None):
            return False
        self._ours_until = began + self._seconds
        return True

    def _ours(self, tr: ReadTransaction, term: int | None) -> Holding | None:
        """Return the holding if it is ours, in this term."""
        record = tr.get(self._key).wait()
        held = None if record is None else Holding.decode(record)
        return held if held is not None and (held.holder, held.term) == (self._id, term) else None

    def _expires_ms(self) -> int:
        return self._context.now_ms() + int(self._seconds * 1000)
