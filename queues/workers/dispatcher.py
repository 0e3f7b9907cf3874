"""Dispatcher: makes delayed items ready when they are due, and ends leases when they expire.

One thread for all queues of a process. It sleeps until the next due time; an earlier one wakes it.
"""

import logging
import threading
from collections.abc import Sequence

from queues.errors import ForkedStore, QueueError, QueueNotFound, StoreClosed, StoreError
from queues.operations.wait import LONGEST, Outlook
from queues.queue import Queue
from queues.store import Store
from queues.workers.rests import AFTER_TROUBLE

log = logging.getLogger("queues.workers")


class Dispatcher:
    """Does what is due in some queues. `run` is the body of its thread."""

    def __init__(self, store: Store, queues: Sequence[Queue]) -> None:
        self._store = store
        self._queues = tuple(queues)
        self._stop = threading.Event()

    def __repr__(self) -> str:
        return f"<Dispatcher of {', '.join(repr(queue.name) for queue in self._queues)}>"

    def run(self) -> None:
        """Do what is due until `stop`."""
        while not self._stop.is_set():
            try:
                outlooks = self._store.outlooks(self._queues)
                if not tend(outlooks):
                    rest = min((outlook.rest for outlook in outlooks.values()), default=LONGEST)
                    self._store.wait_for_items(outlooks.values(), timeout=min(rest, LONGEST))
            except (StoreClosed, ForkedStore):
                return
            except (StoreError, QueueError) as error:
                log.warning("The dispatcher rests for %g s: %s", AFTER_TROUBLE, error)
                self._stop.wait(AFTER_TROUBLE)

    def stop(self) -> None:
        """Make `run` end; it may sleep until the store's watches are interrupted."""
        self._stop.set()


def tend(outlooks: dict[Queue, Outlook]) -> bool:
    """Do what is due in these queues; return False when nothing was."""
    late = [queue for queue, outlook in outlooks.items() if outlook.late]
    for queue in late:
        try:
            queue.tend()
        except QueueNotFound:
            continue
    return bool(late)
