"""Elections: one process at a time has a role, such as sweeping; see `queues.serving.leadership`."""

import os
import socket
import time
from collections.abc import Callable, Mapping

from queues.context import StoreContext
from queues.errors import NotElected
from queues.kv.port import ReadTransaction, Transaction
from queues.serving.leadership import Holding, Leadership

#: How long a holding lasts without being renewed, in seconds; it is renewed three times as often.
SECONDS = 4.0


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
        self._key = context.keyspace.elected.key(role)
        self._count = count
        self._leadership = Leadership(
            seconds=seconds,
            now_ms=context.clock.now_ms,
            monotonic=count,
            name=name or f"{socket.gethostname()}:{os.getpid()}",
        )
        #: The stored record when this process did not have the role.
        self._seen: bytes | None = None
        #: This process's term, and until when it lasts without being renewed.
        self.term: int | None = None
        self._until = 0.0

    @property
    def elected(self) -> bool:
        """Say whether this process has the role now; without being renewed that ends by itself."""
        return self.term is not None and self._count() < self._until

    @property
    def rest(self) -> float:
        """Return the seconds after which to take the next step."""
        return self._leadership.seconds / 3 if self.term is not None else max(0.0, self._leadership.until_lapse)

    @property
    def known(self) -> Mapping[bytes, bytes | None]:
        """Return what to watch while another process has the role: releasing it changes it at once."""
        return {self._key: self._seen}

    def step(self) -> bool:
        """Renew, or take the role if it is free; say whether this process has it."""
        if self.term is not None and self._renew(self.term):
            return True
        self.term = None
        self._seen = self._context.read(lambda tr: tr.get(self._key).wait(), None)
        if self._leadership.is_free(Holding.decode(self._seen)):
            self._take(self._seen)
        return self.elected

    def check(self, tr: ReadTransaction) -> None:
        """Raise `NotElected` unless this process still has the role when `tr` commits."""
        if self._ours(tr, self.term) is None:
            raise NotElected("Another process does this now. Nothing was changed.")

    def resign(self) -> None:
        """Release the role, if this process has it: another one takes it at once."""
        term, self.term = self.term, None
        if term is not None:
            self._write(term, self._leadership.released)

    def _take(self, seen: bytes | None) -> None:
        began, holding = self._count(), self._leadership.taken(Holding.decode(seen))

        def take(tr: Transaction) -> bool:
            if tr.get(self._key).wait() != seen:
                return False  # its holder is alive, or another process was faster
            tr.use_reserve()
            tr.set(self._key, holding.encode())
            return True

        if self._context.transact(take, None):
            self.term, self._until = holding.term, began + self._leadership.seconds

    def _renew(self, term: int) -> bool:
        """Write a later expiry; False when another process has the role."""
        began = self._count()
        renewed = self._write(term, self._leadership.renewed)
        if renewed:
            self._until = began + self._leadership.seconds
        return renewed

    def _write(self, term: int, change: Callable[[Holding], Holding]) -> bool:
        """Change the record while this process has the role in this term. False when it has not."""

        def write(tr: Transaction) -> bool:
            held = self._ours(tr, term)
            if held is not None:
                tr.use_reserve()
                tr.set(self._key, change(held).encode())
            return held is not None

        return self._context.transact(write, None)

    def _ours(self, tr: ReadTransaction, term: int | None) -> Holding | None:
        """Return the holding if it is this process's, in this term."""
        held = Holding.decode(tr.get(self._key).wait())
        return held if held is not None and self._leadership.holds(held) and held.term == term else None
