"""Heartbeats: what keeps the leases of a pool's tasks alive while handlers run."""

from __future__ import annotations

import logging

from queues.workers.keeper import Held, Keeper
from queues.workers.task import Task

log = logging.getLogger("queues.workers")


class Heartbeats:
    """Extends the leases of tasks for as long as they are kept. `run` is the body of its thread."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._keeper = Keeper(lost=self._tell_lost)

    def keep(self, task: Task) -> None:
        """Extend a task's lease from now on."""
        token = task.lease.token
        self._tasks[token] = task
        self._keeper.keep(
            Held(queue=lambda: task.queue, name=task.queue.name, token=token, seconds=task.handler.seconds)
        )

    def drop(self, task: Task) -> None:
        """Extend a task's lease no longer."""
        self._tasks.pop(task.lease.token, None)
        self._keeper.drop(task.lease.token)

    def run(self) -> None:
        """Extend leases until told to stop."""
        self._keeper.run()

    def stop(self) -> None:
        """Let `run` end."""
        self._keeper.stop()

    def _tell_lost(self, token: str) -> None:
        task = self._tasks.get(token)
        if task is not None and not task.settling:
            log.warning("%s: the lease of item %s is lost while it is worked on", task.queue.name, task.lease.item.id)
