"""Heartbeats: what keeps the leases of a pool's tasks alive while handlers run."""

from __future__ import annotations

import logging
import threading

from queues.store import Store
from queues.workers.keeper import Held, Keeper
from queues.workers.keeper_process import KeeperProcess, NoProcess
from queues.workers.task import Task

log = logging.getLogger("queues.workers")


class Heartbeats:
    """Extends the leases of tasks for as long as they are kept. `run` is the body of its thread.

    A process of its own does it, unless no other process can open the store: handlers may hold the interpreter.
    """

    def __init__(self, store: Store) -> None:
        self._tasks: dict[str, Task] = {}
        self._stopped = False
        self._keeper: Keeper | KeeperProcess
        if store.address is None:
            self._keeper = Keeper(lost=self._tell_lost)
        else:
            self._keeper = KeeperProcess(store.address, lost=self._tell_lost)

    def await_ready(self, given_up: threading.Event) -> None:
        """Wait until leases can be extended, some seconds at most, before any is taken."""
        self._keeper.await_ready(given_up)

    def keep(self, task: Task) -> None:
        """Extend a task's lease from now on; call it before its handler begins."""
        self._tasks[task.lease.token] = task
        self._keeper.keep(_held(task))

    def drop(self, task: Task) -> None:
        """Extend a task's lease no longer."""
        self._tasks.pop(task.lease.token, None)
        self._keeper.drop(task.lease.token)

    def run(self) -> None:
        """Extend leases until told to stop."""
        try:
            self._keeper.run()
        except NoProcess as error:
            log.warning("Leases are extended by a thread, as no process can be started: %s", error)
            self._keeper = Keeper(lost=self._tell_lost)
            for task in list(self._tasks.values()):
                self._keeper.keep(_held(task), at_once=True)
            if not self._stopped:
                self._keeper.run()

    def stop(self) -> None:
        """Let `run` end."""
        self._stopped = True
        self._keeper.stop()

    def _tell_lost(self, token: str) -> None:
        task = self._tasks.get(token)
        if task is not None and not task.settling:
            log.warning("%s: the lease of item %s is lost while it is worked on", task.queue.name, task.lease.item.id)


def _held(task: Task) -> Held:
    return Held(queue=lambda: task.queue, name=task.queue.name, token=task.lease.token, seconds=task.handler.seconds)
