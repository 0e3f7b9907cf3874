"""Site of a remote store: what it tells of queues beside their verbs, as its pages show them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from queues.health import Verdict
from queues.model.config import Pause
from queues.model.item import Item
from queues.model.priority import Priority
from queues.status.status import QueueStatus, Snapshot


class JudgedQueue(NamedTuple):
    """Status of a queue with the verdict and the rates that a site tells."""

    status: QueueStatus
    verdict: Verdict
    rate_in: float | None
    rate_out: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLook:
    """Counters of a queue and the items near its ends, at one version."""

    at: datetime
    #: Differs when the queue was changed.
    change: int
    #: Items by verb since the queue was created; None of an attached queue: nothing counts its traffic.
    traffic: Mapping[str, int] | None
    #: By their ids.
    items: Mapping[str, Item]
    #: Whether every item is among these.
    whole: bool
    pause: Pause | None
    #: What `Store.wait_for_change` waits with; None where a site tells.
    snapshot: Snapshot | None = None


class Site(Protocol):
    """What the site of a remote store tells of its queues."""

    def queues(self, prefix: str) -> tuple[list[JudgedQueue], datetime]:
        """Return the queues that the token may see, by name, and the time by the store's clock."""

    def following(self) -> AbstractContextManager[Callable[[float], object]]:
        """Follow the changes of all queues: what is returned waits for one, at most so many seconds."""

    def look(self, queue: Any, *, change: int | None = None) -> QueueLook | None:
        """Return a look at a queue. None if it is as it was at this change."""

    def targets(self, queue: str) -> Mapping[str, Any]:
        """Return the limits of a queue as JSON: where each comes from, and the share of the last day beyond it."""

    def push_chunk(
        self, queue: Any, items: Sequence[tuple[bytes, Priority | None]], *, source: str, last_line: int
    ) -> None:
        """Push a chunk of an import in one transaction, with its mark in the audit."""
