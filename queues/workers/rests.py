"""Rests after trouble: a second, and ever longer while a server refuses the token."""

import logging
import time
from collections.abc import Iterable

from queues.errors import (
    Conflict,
    ForkedStore,
    NotAuthenticated,
    NotPermitted,
    OutcomeUnknown,
    StoreClosed,
    StoreUnavailable,
    TransactionTooOld,
)
from queues.queue import Queue
from queues.workers.error_text import said

log = logging.getLogger("queues.workers")

#: Seconds to rest after the store failed, and at most.
AFTER_TROUBLE, LONGEST_REST = 1.0, 60.0
#: Errors after which the same request is refused again, until a person changes something.
REFUSED = (NotAuthenticated, NotPermitted)
#: Errors of the whole store: what is asked of another queue fails too.
OF_THE_STORE = (
    StoreClosed,
    ForkedStore,
    StoreUnavailable,
    NotAuthenticated,
    Conflict,
    OutcomeUnknown,
    TransactionTooOld,
)


def rest_after(error: BaseException, before: float) -> float:
    """Return the seconds to rest after an error; `before` are those of the rest before it, 0 without one."""
    return min(LONGEST_REST, before * 2) if before and isinstance(error, REFUSED) else AFTER_TROUBLE


class QueueRests:
    """Queues that failed, each left alone for a time. Used by one thread at a time."""

    def __init__(self) -> None:
        self._until: dict[Queue, float] = {}
        #: Seconds of the last rest of each.
        self._last: dict[Queue, float] = {}

    def __contains__(self, queue: Queue) -> bool:
        return queue in self._until

    def awake(self, queues: Iterable[Queue]) -> list[Queue]:
        """Return the queues that do not rest."""
        now = time.monotonic()
        self._until = {queue: until for queue, until in self._until.items() if until > now}
        return [queue for queue in queues if queue not in self._until]

    @property
    def left(self) -> float | None:
        """The seconds until the first rest ends; None where no queue rests."""
        return max(0.0, min(self._until.values()) - time.monotonic()) if self._until else None

    def failed(self, queue: Queue, error: Exception) -> None:
        """Let a queue rest after this error."""
        rest = self._last[queue] = rest_after(error, self._last.get(queue, 0.0))
        log.warning("%s: rests for %g s: %s", queue.name, rest, said(error))
        self._until[queue] = time.monotonic() + rest

    def worked(self, queue: Queue) -> None:
        """Note that a queue did not fail."""
        self._last.pop(queue, None)
