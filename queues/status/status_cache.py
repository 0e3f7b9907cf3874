"""Cache of the statuses that this process has read lately. Thread-safe."""

from collections.abc import Iterable, Mapping
from threading import Lock
from weakref import WeakValueDictionary

from queues.status.status import QueueStatus

#: Changed queues that are remembered until a caller asks for them: more than screens show.
_MOST = 1_000


class StatusCache:
    """The newest status of each queue that is still referenced, and which of them have changed.

    Attached queues are left out: their change numbers do not grow.
    """

    def __init__(self) -> None:
        self._newest: WeakValueDictionary[int, QueueStatus] = WeakValueDictionary()
        self._lock = Lock()
        #: Ids, the latest last.
        self._changed: dict[int, None] = {}

    def put(self, statuses: Mapping[int, QueueStatus]) -> None:
        """Add statuses that were read; older ones than those known are ignored."""
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
        """Return the newest status, which is valid while the queue's change number is the same."""
        return self._newest.get(queue_id)

    def take_changed(self) -> Iterable[int]:
        """Return the queues that have changed since the last call, the latest last."""
        with self._lock:
            taken, self._changed = self._changed, {}
        return taken
