"""Leadership: at most one process has a role, and another one takes over within seconds when it dies.

The role has a record: its holder, the term, which grows with every holder, and when it expires by the store's clock.
The holder renews it. Another process takes a role that was released, that expired, or that has a record unchanged for
as long as a holding lasts, by that process's own monotonic clock. So nothing depends on two clocks being equal.

A holder that was suspended may go on for a moment after another process took over. So what only the holder may do
checks `holds` in its transaction (fencing): it reads the record, which the next holder changes.

The user keeps the record and writes it in its own transactions: elections (`queues.background.leader`), staging
(`queues.serving.staging`), and bulk jobs, which hold their record in the job (`queues.bulk.runner`).
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from queues.model import records
from queues.model.ids import LAST_MS
from queues.model.records import UNREADABLE

#: How far apart clocks may be, in milliseconds: an expiry counts only when it passed longer ago.
SLACK_MS = 60_000
#: The role of the process that sweeps, and records histories.
UPKEEP = "sweep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The record of a role: its holder, term and expiry."""

    #: New in each process; empty: the role was released.
    holder: str
    #: Machine and process, for people.
    name: str = ""
    #: Grows by one with every holder.
    term: int = 0
    #: By the store's clock, in milliseconds.
    expires_ms: int
    #: Grows with every renewal, so that each changes the record, whatever the clock says.
    renewed: int = 0

    def encode(self) -> bytes:
        """Return the record as the store keeps it."""
        header = {"holder": self.holder, "name": self.name, "term": self.term}
        return records.encode(header | {"expires": self.expires_ms, "renewed": self.renewed})

    @classmethod
    def decode(cls, record: bytes | None) -> "Holding | None":
        """Read a record from the store; one that cannot be read is of a holder that is unknown here."""
        if record is None:
            return None
        try:
            header, _ = records.decode(record)
            return cls(
                holder=header["holder"],
                name=header["name"],
                term=header["term"],
                expires_ms=header["expires"],
                renewed=header["renewed"],
            )
        except UNREADABLE:
            return cls(holder=record.hex(), expires_ms=LAST_MS)


class Leadership:
    """One process's view of a role, and its part in it."""

    def __init__(
        self,
        *,
        seconds: float,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        holder: str = "",
        name: str = "",
        slack_ms: int = SLACK_MS,
    ) -> None:
        self.seconds = seconds
        self._now_ms = now_ms
        self._monotonic = monotonic
        self.holder = holder or os.urandom(16).hex()
        self._name = name
        self._slack_ms = slack_ms
        #: The record as it was seen last, and since when it has been the same.
        self._seen: Holding | None = None
        self._seen_at: float | None = None

    def is_free(self, held: Holding | None) -> bool:
        """Say whether this process may take the role; it remembers the record, to see whether it changes."""
        if held != self._seen or self._seen_at is None:
            self._seen, self._seen_at = held, self._monotonic()
        if held is None or held.holder in ("", self.holder):
            return True
        return held.expires_ms + self._slack_ms < self._now_ms() or self.until_lapse <= 0

    @property
    def contested(self) -> bool:
        """Whether another process had the role when the record was seen last."""
        return self._seen is not None and self._seen.holder not in ("", self.holder)

    @property
    def until_lapse(self) -> float:
        """The seconds until the record seen last is free, unless it changes."""
        return 0.0 if self._seen_at is None else self._seen_at + self.seconds - self._monotonic()

    def holds(self, held: Holding | None) -> bool:
        """Say whether this process is the holder."""
        return held is not None and held.holder == self.holder

    def taken(self, held: Holding | None) -> Holding:
        """Return the record by which this process takes the role, for the next term."""
        term = 1 if held is None else held.term + 1
        return Holding(holder=self.holder, name=self._name, term=term, expires_ms=self._expires_ms())

    def renewed(self, held: Holding) -> Holding:
        """Return the record by which this process keeps the role."""
        return replace(held, expires_ms=self._expires_ms(), renewed=held.renewed + 1)

    @staticmethod
    def released(held: Holding) -> Holding:
        """Return the record by which this process releases the role: another one takes it at once."""
        return replace(held, holder="", expires_ms=0)

    def _expires_ms(self) -> int:
        return self._now_ms() + int(self.seconds * 1000)
