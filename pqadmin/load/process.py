"""One process of a load: it pushes or takes by a schedule.

It imports little beside the queue core, opens the store for itself, and counts in memory that it shares with the
command.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from ctypes import Array, c_double, c_longlong
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.synchronize import Barrier, Event
from random import Random
from threading import BrokenBarrierError
from typing import Literal

from pqadmin.conf.log import log_lines
from pqadmin.load import plan as planning
from pqadmin.load.pace import Pace
from pqadmin.load.plan import QueuePlan
from queues import AnyQueue, open_store
from queues.errors import QueueClosed, QueueError, QueueNotFound, QueuePaused, StoreError

Role = Literal["producer", "worker"]
#: Operations between two readings of the clock.
_BATCH = 200
#: Seconds; work that is later than this (a suspended machine, a disk that cannot keep up) is dropped and counted.
_TOO_LATE = 5.0
#: Seconds between two checks that the command is still there.
_PATIENCE = 0.5
#: Seconds in which all processes of a load start.
_BEGIN_WITHIN = 60.0


class Count(IntEnum):
    """The counters of a process; the numbers are places in the shared array."""

    PUSHED = 0
    TAKEN = 1
    #: Takes that found the queue empty.
    EMPTY = 2
    #: Pushes and takes that were refused: paused, closed, deleted queues, a full store.
    REFUSED = 3
    #: Operations that came too late and were dropped.
    DROPPED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The task of one process."""

    role: Role
    number: int
    store_url: str
    plans: Sequence[QueuePlan]
    pace: Pace
    seed: int


def main(job: Job, counts: Array[c_longlong], together: Barrier, began: c_double, stop: Event) -> None:
    """Work until stopped or until the command is gone. The entry of a spawned process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command handles it
    log_lines()
    try:
        with open_store(job.store_url) as store:
            work = _Work(job, counts, {plan.name: store.queue(plan.name) for plan in job.plans})
            signal.signal(signal.SIGTERM, lambda number, frame: work.end())
            work.run(together, began, stop)
    except (QueueError, StoreError) as error:
        raise SystemExit(f"{job.role} {job.number}: {error}") from None


class _Work:
    def __init__(self, job: Job, counts: Array[c_longlong], queues: dict[str, AnyQueue]) -> None:
        self._job = job
        self._counts = counts
        self._queues = queues
        self._random = Random(f"{job.seed} {job.role} {job.number}")  # noqa: S311 - traffic, no secrets
        producer = job.role == "producer"
        self._weights = [plan.push_weight if producer else plan.pop_weight for plan in job.plans]
        self._ended = False
        self._start = 0.0
        self._act = self._push if producer else self._take

    def end(self) -> None:
        self._ended = True

    def run(self, together: Barrier, began: c_double, stop: Event) -> None:
        parent = multiprocessing.parent_process()

        def wanted() -> bool:
            return not (stop.is_set() or self._ended) and (parent is None or parent.is_alive())

        pace = self._job.pace
        with suppress(BrokenBarrierError):  # the load was stopped, or the command is gone
            if together.wait(_BEGIN_WITHIN) == 0:
                began.value = time.monotonic()
        start = self._start = time.monotonic()
        done = 0
        while wanted():
            elapsed = time.monotonic() - start
            due = pace.due(elapsed)
            if due <= done:
                stop.wait(min(_PATIENCE, max(0.001, pace.moment(done + 1) - elapsed)))
                continue
            late = pace.due(max(0.0, elapsed - _TOO_LATE)) - done
            if late > 0:
                self._count(Count.DROPPED, late)
                done += late
            batch = min(due - done, _BATCH)
            for index, number in Counter(
                self._random.choices(range(len(self._job.plans)), self._weights, k=batch)
            ).items():
                self._one(self._job.plans[index], number)
            done += batch

    def _one(self, plan: QueuePlan, number: int) -> None:
        try:
            self._act(plan, number)
        except (QueuePaused, QueueClosed, QueueNotFound, StoreError):
            self._count(Count.REFUSED, number)

    def _push(self, plan: QueuePlan, number: int) -> None:
        planning.push(self._queues[plan.name], plan, self._random, number)
        self._count(Count.PUSHED, number)

    def _take(self, plan: QueuePlan, number: int) -> None:
        if plan.served_for is not None and time.monotonic() - self._start > plan.served_for:
            return
        taken = planning.take(self._queues[plan.name], plan, self._random, number)
        self._count(Count.TAKEN, taken)
        self._count(Count.EMPTY, number - taken)

    def _count(self, what: Count, number: int) -> None:
        self._counts[what] += number
