"""What this process has read of queues lately, for whoever would read the same again. Thread-safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from weakref import WeakValueDictionary

from queues.status.status import QueueStatus

#: Changed queues that are remembered where nobody asks for them: more than anybody looks at.
_MOST = 1_000


class Seen:
    """The newest status of each own queue that somebody keeps, and which of them were seen to change.

    The change numbers of attached queues do not grow, and nobody asks for those.
    """

    def __init__(self) -> None:
        self._newest: WeakValueDictionary[int, QueueStatus] = WeakValueDictionary()
        self._lock = Lock()
        #: Ids, the latest last.
        self._changed: dict[int, None] = {}

    def put(self, statuses: Mapping[int, QueueStatus]) -> None:
        """Take in what was committed when it was read, the very objects of before among it.

        Who comes late with an older reading changes nothing.
        """
        for queue_id, status in statuses.items():
            before = self._newest.get(queue_id)
            if before is status or status.attached or (before is not None and before.change > status.change):
                continue
            self._newest[queue_id] = status
            if before is not None and before.change != status.change:
                with self._lock:
                    self._changed.pop(queue_id, None)
                    self._changed[queue_id] = None
                    if len(self._changed) > _MOST:
                        del self._changed[next(iter(self._changed))]

    def get(self, queue_id: int) -> QueueStatus | None:
        """Return the newest status that anybody keeps: if the queue's change is still the same, it holds."""
        return self._newest.get(queue_id)

    def take_changed(self) -> Iterable[int]:
        """Return the queues that were seen to change since this was asked last, the latest last."""
        with self._lock:
            taken, self._changed = self._changed, {}
        return taken
