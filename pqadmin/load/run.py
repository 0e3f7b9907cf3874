"""One run of a load: its processes are started, watched and stopped, and their work is counted."""

import multiprocessing
import signal
import time
from collections.abc import Sequence
from ctypes import Array, c_longlong
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from pqadmin.load.pace import Pace
from pqadmin.load.plan import PREVIEW, QueuePlan
from pqadmin.load.process import Count, Job, Role, main
from queues import Store

#: Seconds that a process has to finish its transaction; a store's own limit for one is 5.
_GRACE = 10.0


class LoadStats(NamedTuple):
    """The work of all processes so far: seconds, and the counters in the order of `Count`."""

    seconds: float
    pushed: int
    taken: int
    empty: int
    refused: int
    dropped: int


class ProcessFailed(Exception):
    """A process of the load ended by itself; its error is on standard error."""


class LoadRun:
    """Producers and workers on one store. Use it in a `with` statement's place: `start`, `stats`, `stop`."""

    def __init__(self, store_url: str, plans: Sequence[QueuePlan], *, seed: int) -> None:
        self._store_url = store_url
        self._plans = plans
        self._seed = seed
        # Spawned, not forked: neither a store nor the site's threads survive a fork.
        self._context = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._processes: list[BaseProcess] = []
        # Without locks, as each has one writer: a process that is killed while it holds a lock keeps it.
        self._counts: list[Array[c_longlong]] = []
        #: When all processes began to work, by the machine's monotonic clock; 0: not yet.
        self._began = self._context.RawValue("d", 0.0)
        self._together = self._context.Barrier(1)
        self._stopping = False
        self._ended: float | None = None

    def start(self, *, producers: int, push_pace: Pace, workers: int, pop_pace: Pace) -> None:
        """Start the processes; each of a role has an equal part of its pace. A rate of 0 starts none."""
        processes = sum(n for n, pace in ((producers, push_pace), (workers, pop_pace)) if pace.rate > 0)
        self._together = self._context.Barrier(max(1, processes))
        self._began.value = 0.0 if processes else time.monotonic()
        # Spawned processes inherit the mask: Ctrl-C reaches the command alone, which stops them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._spawn("producer", producers, push_pace)
            self._spawn("worker", workers, pop_pace)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _spawn(self, role: Role, processes: int, pace: Pace) -> None:
        for number in range(processes if pace.rate > 0 else 0):
            job = Job(
                role=role,
                number=number,
                store_url=self._store_url,
                plans=self._plans,
                pace=pace.shared_by(processes),
                seed=self._seed,
            )
            counts = self._context.RawArray(c_longlong, len(Count))
            shared = (counts, self._together, self._began, self._stop)
            process = self._context.Process(target=main, args=(job, *shared), daemon=True)
            self._counts.append(counts)
            self._processes.append(process)
            process.start()

    def stats(self) -> LoadStats:
        """Return the work so far; raise `ProcessFailed` when a process ended without being stopped.

        Seconds count from the moment at which all processes work.
        """
        if not self._stopping and self._lost():
            raise ProcessFailed("A process of the load ended by itself.")
        totals = [sum(counts[what] for counts in self._counts) for what in Count]
        end, began = time.monotonic() if self._ended is None else self._ended, self._began.value
        return LoadStats(max(0.0, end - began) if began else 0.0, *totals)

    def stop(self) -> LoadStats:
        """Let every process finish its transaction, end them, and return the final stats."""
        self._stopping = True
        if self._lost():
            # What tells all of them would wait for one that was killed while it waited to be told.
            for process in self._processes:
                process.terminate()
        else:
            self._stop.set()
            self._together.abort()
        self._ended = time.monotonic()
        for process in self._processes:
            process.join(max(0.1, self._ended + _GRACE - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()
        return self.stats()

    def _lost(self) -> bool:
        """Return whether a process has ended."""
        return any(process.exitcode is not None for process in self._processes)


def create_queues(store: Store, plans: Sequence[QueuePlan]) -> None:
    """Create the missing queues; raise `QueueExists` when one of another kind exists."""
    there = store.directory()
    for plan in plans:
        bands = None if plan.name in there else plan.bands
        queue = store.create_queue(
            plan.name, kind=plan.kind, priority_type=plan.priority_type, bands=bands, exist_ok=True
        )
        if plan.max_attempts:
            queue.configure(max_attempts=plan.max_attempts)
        if plan.name not in there:
            queue.configure(preview=PREVIEW)
