"""Settlement of a leased item when its handler has ended: acknowledgement or release."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from queues.errors import (
    Conflict,
    ForkedStore,
    OutcomeUnknown,
    QueueError,
    StaleLease,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from queues.kv.port import Transaction
from queues.model.item import Item
from queues.operations.lease import Lease
from queues.operations.lease_block import told
from queues.operations.settle import ack_request, settled
from queues.queue import Queue
from queues.store import Store
from queues.workers.error_text import said
from queues.workers.rests import REFUSED
from queues.workers.worker import Handler

T = TypeVar("T")
log = logging.getLogger("queues.workers")

#: Seconds between two tries: at first, and at most.
_FIRST_REST, _LONGEST_REST = 0.05, 2.0


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """A leased item on its way through a pool."""

    queue: Queue
    lease: Lease
    handler: Handler
    #: When the lease was asked for, in seconds since the machine's start.
    asked_at: float
    #: The pool ends its lease: the end is not reported as lost.
    settling: bool = False
    #: Its handler acknowledged it.
    completed: bool = False


class Settling:
    """Settles tasks and counts them. Thread-safe.

    While the store cannot be reached it retries until the lease would be over; then the item returns by itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = float("inf")
        self._given_back: set[Task] = set()
        #: Handlers that have ended, by result.
        self.counts: Counter[str] = Counter()

    def may_begin(self, task: Task, now: float) -> bool:
        """Return whether a task's handler may begin at `now`; a lease that may be over is extended first."""
        if now - task.asked_at < task.handler.seconds:
            return True
        task.settling = True  # the end is told here
        try:
            task.queue.extend(task.lease, seconds=task.handler.seconds)
        except StaleLease:
            log.warning("%s: the lease of item %s ended before its handler began", task.queue.name, task.lease.item.id)
            return False
        except (QueueError, StoreError):
            log.info("%s: item %s is begun with a lease that may be over", task.queue.name, task.lease.item.id)
        task.settling = False
        return True

    def complete(self, store: Store, task: Task, fn: Callable[[Transaction], T]) -> T:
        """Acknowledge the item in the transaction of `fn`, for its handler: see `Job.complete`."""
        if task.completed:
            raise RuntimeError("This job is completed already: complete() acknowledges once.")

        def acknowledge_too(tr: Transaction) -> T:
            task.queue.ack(task.lease, must_hold=True, tr=tr)
            return fn(tr)

        task.settling = True
        try:
            result = store.transact(acknowledge_too)
            task.completed = True
        finally:
            task.settling = task.completed
        self._count("done")
        return result

    def finish(self, task: Task) -> None:
        """Acknowledge the item, unless its handler did."""
        if task.completed:
            return
        task.settling = True
        if self._persist(task, lambda: task.queue.ack(task.lease), "acknowledged"):
            self._count("done")

    def fail(self, task: Task, error: BaseException) -> None:
        """Release the item, to return after the handler's backoff."""
        delay = task.handler.backoff.delay(task.lease.item.attempts)
        if self._release(task, delay, **told(error)):
            self._count("failed")

    # The pool stops: the item is released at once, and the lease counts as no attempt

    def stop(self, task: Task) -> None:
        """Release the item of a handler that raised `Stopped`."""
        if self._release(task, timedelta(0), count_attempt=False):
            self._count("stopped")

    def give_back(self, task: Task) -> None:
        """Release the item while its handler may still run; the handler's result is ignored."""
        with self._lock:
            self._given_back.add(task)
            self._until = float("-inf")
        if self._release(task, timedelta(0), count_attempt=False):
            self._count("cut_off")

    def give_back_unbegun(self, task: Task) -> None:
        """Release an item before its handler has begun."""
        self._release(task, timedelta(0), count_attempt=False)

    def hurry(self, grace: float) -> None:
        """Retry for at most `grace` seconds from now: the process ends."""
        self._until = time.monotonic() + grace

    def _release(
        self, task: Task, delay: timedelta, *, reason: str = "", traceback: str = "", count_attempt: bool = True
    ) -> bool:
        if task.completed:
            return False
        task.settling = True

        def release() -> None:
            item: Item = task.queue.release(
                task.lease, delay=delay, reason=reason, traceback=traceback, count_attempt=count_attempt
            )
            if item.state == "dead":
                self._count("dead")
                log.error("%s: item %s is dead after %d attempts", task.queue.name, item.id, item.attempts)

        return self._persist(task, release, "released", once=True)

    def _persist(self, task: Task, settle: Callable[[], None], verb: str, *, once: bool = False) -> bool:
        """Retry until it is done or given up; `once`: a repetition of an applied settlement is refused."""
        done = self._try(task, settle, verb, once=once)
        if not done:  # the lease is left to expire
            opened = task.queue.opened
            settled(opened, ack_request(opened, [task.lease]).leases)
        return done

    def _try(self, task: Task, settle: Callable[[], None], verb: str, *, once: bool) -> bool:
        name, item_id = task.queue.name, task.lease.item.id
        until = time.monotonic() + task.handler.seconds
        rest = _FIRST_REST
        tried = False
        while True:
            try:
                settle()
                return True
            except StaleLease as error:
                if tried and once:
                    return True  # an earlier try was applied although it was not answered
                if task not in self._given_back:
                    log.warning("%s: item %s was not %s: %s", name, item_id, verb, error)
                return False
            except (StoreClosed, ForkedStore, QueueError, *REFUSED) as error:
                log.warning("%s: item %s was not %s: %s", name, item_id, verb, error)
                return False
            except (StoreUnavailable, Conflict, OutcomeUnknown) as error:
                tried = tried or isinstance(error, OutcomeUnknown)
                if time.monotonic() + rest > min(until, self._until):
                    log.warning("%s: item %s was not %s: %s", name, item_id, verb, error)
                    return False
            except Exception as error:  # the thread goes on with other items
                log.error("%s: item %s was not %s: %s", name, item_id, verb, said(error))  # noqa: TRY400
                return False
            threading.Event().wait(rest)
            rest = min(_LONGEST_REST, rest * 2)

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1
