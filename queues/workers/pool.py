"""Pool: worker threads that lease items from some queues and run their handlers.

One of the idle threads is the feeder: it alone watches the store and leases, at most one item for each idle thread, so
no item is leased before a thread can begin with it. Threads that run a handler wait for nothing.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from queues.errors import (
    Conflict,
    ForkedStore,
    QueueNotFound,
    QueuePaused,
    StoreClosed,
    TooLarge,
)
from queues.kv.boottime import boottime
from queues.model.config import check_worker
from queues.model.duration import GRACE, Duration, seconds_of
from queues.operations.plain_functions import refuse_result
from queues.operations.wait import LONGEST, Outlook
from queues.queue import Queue
from queues.store import Store
from queues.workers.dispatcher import Dispatcher, outlooks_of, tend
from queues.workers.error_text import place_of, said
from queues.workers.forked_child import end_child
from queues.workers.heartbeats import Heartbeats
from queues.workers.job import Job, Stopped
from queues.workers.pool_queues import LOOK_FOR_NAME, PoolQueues
from queues.workers.rests import QueueRests, rest_after
from queues.workers.settling import Settling, Task
from queues.workers.worker import HANDLER, Worker

log = logging.getLogger("queues.workers")

#: Seconds between two interruptions of threads that still wait although the pool is stopped.
_NUDGE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """Numbers of handlers that a pool has run, by result."""

    #: Handlers that returned.
    done: int = 0
    #: Handlers that raised; their items return later, or are dead.
    failed: int = 0
    #: Of those that failed, items that are dead now.
    dead: int = 0
    #: Handlers that raised `Stopped` because the pool stopped; their items were released.
    stopped: int = 0
    #: Handlers that were cut off by the end of the pool; their items were released.
    cut_off: int = 0


class Pool:
    """Worker threads, a dispatcher and heartbeats. Start it, and stop it; it is used once.

    With `once`, it ends by itself when nothing is ready or due and no handler runs.
    """

    def __init__(
        self,
        store: Store,
        worker: Worker,
        queues: Sequence[str],
        *,
        threads: int = 4,
        once: bool = False,
        name: str | None = None,
    ) -> None:
        """Give it the names of its queues; `name` names its leases, by default this process.

        Raise `QueueNotFound`, `NotForAttached`, and `LookupError` for a queue without a handler. Raise `ValueError` for
        no queues or no threads, `TypeError` for one name in place of the queues.
        """
        if isinstance(queues, str):
            raise TypeError(f"A pool has a list of queues: [{queues!r}], not {queues!r}.")
        queues = list(dict.fromkeys(queues))
        if not queues:
            raise ValueError("A pool needs a queue.")
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"A pool has a whole number of threads, 1 or more, not {threads!r}.")
        self._store = store
        self._once = once
        self._name = None if name is None else check_worker(name)
        self._queues = PoolQueues(store, worker, queues)
        self._dispatcher = Dispatcher(store, tuple(self._queues))
        self._heartbeats = Heartbeats(store)
        self._settling = Settling()
        self._condition = threading.Condition()
        self._leased: deque[Task] = deque()
        self._running: set[Task] = set()
        self._idle = 0
        self._feeding = False
        #: Used by the feeder only: queues that failed, and the seconds of the last rest of all.
        self._rests = QueueRests()
        self._rested = 0.0
        self._at_work = 0
        self._started = False
        self._stopping = threading.Event()
        self._pause = threading.Event()
        self._workers = [self._thread(self._work, f"pqadmin-worker-{n}") for n in range(threads)]
        self._helpers = [self._thread(self._heartbeats.run, "pqadmin-heartbeats")]
        if not once and store.tended:  # else the feeder, or the server, does what is due
            self._helpers.append(self._thread(self._dispatcher.run, "pqadmin-dispatcher"))

    def __repr__(self) -> str:
        state = "stopping" if self.stopping else "started" if self._started else "not started"
        queues = ", ".join(repr(queue.name) for queue in self._queues)
        return f"<Pool of {queues}: {len(self._workers)} threads, {state}>"

    def start(self) -> None:
        """Begin to work; raise `RuntimeError` the second time."""
        if self._started:
            raise RuntimeError("A pool is started once: make another one.")
        self._started = True
        self._at_work = len(self._workers)
        for queue in self._queues:
            self._attend(queue)
        for thread in (*self._helpers, *self._workers):
            thread.start()

    def wait(self) -> None:
        """Wait until the pool is stopped, or has ended, and no handler runs.

        A signal's exception may end the wait, as it may end that of `stop`: call `stop` then.
        """
        with self._condition:
            self._condition.wait_for(lambda: not self._at_work)
        self._end()

    def stop(self, grace: Duration) -> PoolStats:
        """Stop leasing, wait `grace` seconds for handlers, and release the items of the rest."""
        seconds = seconds_of(grace, GRACE, endless=True)
        self._stopping.set()
        self._settling.hurry(seconds)
        deadline = time.monotonic() + seconds
        while self._held_up() or (time.monotonic() < deadline and self._alive(self._workers)):
            self._store.interrupt()
            with self._condition:
                self._condition.notify_all()
                self._condition.wait(_NUDGE)
        with self._condition:
            left = list(self._running)
        for task in left:
            self._heartbeats.drop(task)
            self._settling.give_back(task)
        self._end()
        return self.stats()

    def stats(self) -> PoolStats:
        """Return the numbers so far."""
        return PoolStats(**self._settling.counts)

    @property
    def stopping(self) -> bool:
        """Whether the pool was told to stop."""
        return self._stopping.is_set()

    def _held_up(self) -> bool:
        """Return whether a thread is alive that runs no handler."""
        with self._condition:
            return len(self._running) < self._alive(self._workers)

    def _end(self) -> None:
        """Make the helper threads end."""
        for queue in self._queues:
            queue.opened.consumption.desert(self)
        self._heartbeats.stop()
        self._dispatcher.stop()
        while self._alive(self._helpers):
            self._store.interrupt()
            self._pause.wait(_NUDGE)

    def _attend(self, queue: Queue) -> None:
        """Tell other processes that this pool consumes the queue."""
        queue.opened.consumption.attend(self, lambda: self._idle, self._name)

    @staticmethod
    def _alive(threads: Sequence[threading.Thread]) -> int:
        # Not joined: when a signal's exception ends a join, Python 3.11 considers a running thread as ended.
        return sum(thread.is_alive() for thread in threads)

    def _thread(self, body: Callable[[], None], name: str) -> threading.Thread:
        return threading.Thread(target=body, name=name, daemon=True)

    # A worker thread

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                try:
                    self._run(task)
                finally:
                    with self._condition:
                        self._running.discard(task)
                        self._condition.notify_all()
            self._give_back_unbegun()
        finally:
            with self._condition:
                self._at_work -= 1
                self._condition.notify_all()

    def _next(self) -> Task | None:
        """Return an item to work on; None at the end."""
        with self._condition:
            self._idle += 1
            try:
                while True:
                    if self._stopping.is_set():
                        return None
                    if self._leased:
                        task = self._leased.popleft()
                        self._running.add(task)
                        return task
                    if self._feeding:
                        self._condition.wait()
                    else:
                        self._feed()
            finally:
                self._idle -= 1

    def _give_back_unbegun(self) -> None:
        """Release items that were leased but not begun; `stop` waits for it."""
        while True:
            with self._condition:
                if not self._leased:
                    return
                task = self._leased.popleft()
            self._heartbeats.drop(task)
            self._settling.give_back_unbegun(task)

    def _run(self, task: Task) -> None:
        name, item = task.queue.name, task.lease.item
        began = time.monotonic()
        try:
            if not self._settling.may_begin(task, boottime()):
                return
            self._handle(task)
        except BaseException as error:
            if task.completed:
                log.warning("%s: item %s failed after it was completed: %s", name, item.id, place_of(error))
                return
            if isinstance(error, Stopped) and self._stopping.is_set():
                log.info("%s: item %s was stopped after %.3f s", name, item.id, time.monotonic() - began)
                self._settling.stop(task)
                return
            log.warning(
                "%s: item %s failed after %.3f s at attempt %d: %s",
                name,
                item.id,
                time.monotonic() - began,
                item.attempts,
                place_of(error),
            )
            self._settling.fail(task, error)
        else:
            log.info("%s: item %s done in %.3f s", name, item.id, time.monotonic() - began)
            self._settling.finish(task)
        finally:
            self._heartbeats.drop(task)

    def _handle(self, task: Task) -> None:
        """Run the handler. A process that it forks ends with it there: item and lease are those of its parent."""
        process = os.getpid()
        try:
            refuse_result(task.handler.function(self._job(task)), HANDLER)
        except BaseException as error:
            if os.getpid() != process:
                end_child(error)
            raise
        if os.getpid() != process:
            end_child(None)

    def _job(self, task: Task) -> Job:
        return Job(
            queue=task.queue.name,
            item=task.lease.item,
            stopping=self._stopping.is_set,
            lease=task.lease,
            store=self._store,
            _complete=partial(self._settling.complete, self._store, task),
        )

    # The feeder: holds the condition, except while it waits or leases

    def _feed(self) -> None:
        """Lease for the idle threads; return when there are items, or at the end."""
        self._feeding = True
        try:
            while not self._stopping.is_set() and not self._leased:
                wanted, at_work = self._idle, bool(self._running)
                self._condition.release()
                try:
                    leased, nothing_due = self._lease(wanted)
                finally:
                    self._condition.acquire()
                self._leased.extend(leased)
                if self._once and nothing_due:
                    if not at_work:
                        self._stopping.set()
                    elif self._running:  # running handlers may push more
                        self._condition.wait()
        finally:
            self._feeding = False
            self._condition.notify_all()

    def _lease(self, wanted: int) -> tuple[list[Task], bool]:
        """Return at most `wanted` leased items, and whether nothing was due. Wait once if there are none."""
        self._heartbeats.await_ready(self._stopping)
        try:
            found = self._look(wanted)
            self._rested = 0.0
            return found
        except (StoreClosed, ForkedStore) as error:
            log.error("Work ends: %s", error)  # noqa: TRY400 # the message is complete
            self._stopping.set()
        except Exception as error:  # whatever it is: the next look may find the store well
            rest = self._rested = rest_after(error, self._rested)
            log.warning("Workers rest for %g s: %s", rest, said(error))
            self._stopping.wait(rest)
        return [], False

    def _look(self, wanted: int) -> tuple[list[Task], bool]:
        """Do what `_lease` does; raise what the store raises."""
        awake = self._rests.awake(self._queues.in_turn())
        outlooks = outlooks_of(self._store, awake, self._rests)
        deleted = [queue for queue in awake if queue not in outlooks and queue not in self._rests]
        if self._follow(deleted):
            return [], False
        ready = [queue for queue in awake if queue in outlooks and outlooks[queue].ready]
        if tasks := self._lease_in_turn(ready, outlooks, wanted):
            return tasks, False
        if ready or tend(outlooks, self._rests):
            return [], False
        rest = self._rests.left
        if not awake or (self._once and rest is not None):  # a resting queue may have items
            self._stopping.wait(rest)
            return [], False
        if not self._once:  # the dispatcher does what is due, which wakes the feeder
            longest = LOOK_FOR_NAME if deleted else LONGEST
            self._store.wait_for_items(outlooks.values(), timeout=longest if rest is None else min(rest, longest))
        return [], True

    def _follow(self, deleted: Sequence[Queue]) -> bool:
        """Work on the new queues of the names of deleted ones; return whether there are any."""
        new = self._queues.follow(deleted, self._rests)
        for old, found in new.items():
            old.opened.consumption.desert(self)
            self._attend(found)
        if new:
            self._dispatcher.follow(tuple(self._queues))
        return bool(new)

    def _lease_in_turn(self, ready: Sequence[Queue], outlooks: Mapping[Queue, Outlook], wanted: int) -> list[Task]:
        """Lease at most `wanted` items. A queue that fails rests, and items of other queues are kept."""
        tasks: list[Task] = []
        for queue in ready:
            if len(tasks) >= wanted or self._stopping.is_set():
                break
            try:
                tasks += self._lease_from(queue, min(wanted - len(tasks), outlooks[queue].ready))
            except (StoreClosed, ForkedStore):
                raise
            except Exception as error:
                self._rests.failed(queue, error)
                if tasks:  # they do not wait for further queues, which may be slow to fail too
                    break
            else:
                self._rests.worked(queue)
        return tasks

    def _lease_from(self, queue: Queue, n: int) -> list[Task]:
        handler = self._queues.handler(queue)
        while n:
            asked_at = boottime()
            try:
                leases = queue.lease_many(n, seconds=handler.seconds, end=handler.end, worker=self._name)
            except (QueueNotFound, QueuePaused, Conflict):  # other workers were faster: look again
                break
            except TooLarge:  # large items: fewer at once
                if n == 1:
                    raise
                n //= 2
            else:
                tasks = [Task(queue=queue, lease=lease, handler=handler, asked_at=asked_at) for lease in leases]
                for task in tasks:  # not as each begins: another one's handler may hold the interpreter then
                    self._heartbeats.keep(task)
                return tasks
        return []
