"""The keeper: extends the leases of items that handlers work on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from queues.errors import QueueError, StaleLease, StoreError
from queues.leases import Lease
from queues.queue import Queue
from queues.workers.worker import Handler

log = logging.getLogger("queues.workers")

#: A lease is extended when this part of it is over.
PART = 1 / 3
#: Seconds until the next try, at most, when it could not be extended.
AFTER_TROUBLE = 1.0


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """A leased item on its way through a worker."""

    queue: Queue
    lease: Lease
    handler: Handler
    #: When it is extended next, by the keeper's clock.
    extend_at: float = field(default=0.0)


class Keeper:
    """Extends the leases of tasks for as long as they are kept. `run` is the body of its thread."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._condition = threading.Condition()
        self._kept: set[Task] = set()
        self._stopped = False

    def keep(self, task: Task) -> None:
        """Extend a task's lease from now on."""
        task.extend_at = self._monotonic() + task.handler.seconds * PART
        with self._condition:
            self._kept.add(task)
            self._condition.notify()

    def drop(self, task: Task) -> None:
        """Extend a task's lease no longer."""
        with self._condition:
            self._kept.discard(task)

    def stop(self) -> None:
        """Let `run` end."""
        with self._condition:
            self._stopped = True
            self._condition.notify()

    def run(self) -> None:
        """Extend leases until told to stop."""
        while (due := self._wait()) is not None:
            for task in due:
                self._extend(task)

    def _wait(self) -> list[Task] | None:
        with self._condition:
            while not self._stopped:
                now = self._monotonic()
                if due := [task for task in self._kept if task.extend_at <= now]:
                    return due
                nearest = min((task.extend_at for task in self._kept), default=None)
                self._condition.wait(None if nearest is None else nearest - now)
            return None

    def _extend(self, task: Task) -> None:
        name, item_id, seconds = task.queue.name, task.lease.item.id, task.handler.seconds
        try:
            task.queue.extend(task.lease, seconds=seconds)
        except StaleLease:
            with self._condition:
                lost = task in self._kept  # else it is done meanwhile
                self._kept.discard(task)
            if lost:
                log.warning(
                    "%s: the lease of item %s is lost while it is worked on", task.queue.name, task.lease.item.id
                )
        except (StoreError, QueueError) as error:
            log.warning("%s: the lease of item %s was not extended: %s", name, item_id, error)
            task.extend_at = self._monotonic() + min(AFTER_TROUBLE, seconds * PART)
        else:
            task.extend_at = self._monotonic() + seconds * PART
