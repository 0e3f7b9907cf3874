"""Queues of a pool: each has a handler, and the name that the program gave."""

import logging
import time
from collections.abc import Iterator, Sequence

from queues.errors import NotForAttached
from queues.queue import Queue
from queues.store import Store
from queues.workers.rests import OF_THE_STORE, QueueRests
from queues.workers.worker import Handler, Worker

log = logging.getLogger("queues.workers")

#: Seconds between two looks for a queue of the name of one that was deleted.
LOOK_FOR_NAME = 1.0


class PoolQueues:
    """The queues of one pool. The feeder changes them; any thread may go through them.

    A queue that was renamed is worked on, and a new queue with the name of a deleted one takes its place.
    """

    def __init__(self, store: Store, worker: Worker, names: Sequence[str]) -> None:
        """Open the queues; raise `QueueNotFound`, `NotForAttached`, `LookupError` for one without a handler."""
        self._store = store
        opened = [store.queue(name) for name in names]
        self._handlers: dict[Queue, Handler] = {queue: worker.handler(queue.name) for queue in opened}
        self._names: dict[Queue, str] = {queue: queue.name for queue in opened}
        for queue in opened:
            if queue.attached:
                raise NotForAttached(queue.name, "other programs ignore leases, so workers leave it alone.")
        self._turn = 0
        #: Queues that were deleted, as far as the log says so.
        self._deleted: set[Queue] = set()
        self._look_at = 0.0

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._handlers)

    def handler(self, queue: Queue) -> Handler:
        """Return what runs for the items of a queue."""
        return self._handlers[queue]

    def in_turn(self) -> list[Queue]:
        """Return the queues, beginning with another one each time, so that all get their turn."""
        queues = list(self._handlers)
        self._turn = (self._turn + 1) % len(queues)
        return queues[self._turn :] + queues[: self._turn]

    def follow(self, deleted: Sequence[Queue], rests: QueueRests) -> dict[Queue, Queue]:
        """Replace deleted queues by new ones of the same names; return the new ones by the old ones."""
        now = time.monotonic()
        if now < self._look_at or not (deleted or self._deleted):
            return {}
        self._look_at = now + LOOK_FOR_NAME
        for queue in self._deleted.difference(deleted):
            if queue not in rests:
                log.warning("%s: the queue was restored: work goes on", queue.name)
                self._deleted.discard(queue)
        new = {queue: found for queue in deleted if (found := self._successor(queue)) is not None}
        for queue, found in new.items():
            self._handlers = {found if each is queue else each: how for each, how in self._handlers.items()}
            self._names[found] = self._names.pop(queue)
            self._deleted.discard(queue)
            log.warning("%s: work goes on with a new queue of this name", found.name)
        return new

    def _successor(self, deleted: Queue) -> Queue | None:
        """Return the new queue with the name of a deleted one, if there is any."""
        name = self._names[deleted]
        if deleted not in self._deleted:
            log.warning("%s: the queue was deleted: work goes on when there is one named %s", deleted.name, name)
            self._deleted.add(deleted)
        try:
            found = self._store.queue(name)
        except OF_THE_STORE:
            raise
        except Exception:  # there is none, or none that can be read
            return None
        return None if found.attached or found.id in {each.id for each in self._handlers} else found
