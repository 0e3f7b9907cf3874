"""The sample load that the site offers for an empty store: one at a time, ended by a timer."""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pqadmin.load.pace import Pace
from pqadmin.load.plan import QueuePlan, plans, with_trouble
from pqadmin.load.run import LoadRun, ProcessFailed
from pqadmin.store import store_now
from queues.errors import QueueError

log = logging.getLogger(__name__)

#: Queues, pushes a second, and seconds until it ends by itself.
QUEUES, PUSHED, SECONDS = 24, 40.0, 300.0
#: How many times as fast as they fill most queues are served: one that is hardly faster grows for minutes by chance.
_SERVED = 1.5
PREFIX = "demo:"


class SampleRuns(QueueError):
    """A sample load is at work already."""


class SampleLoad:
    """The sample load of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run: LoadRun | None = None
        self._timer: threading.Timer | None = None
        self._until = 0.0

    @property
    def ends_at(self) -> datetime | None:
        """When it ends by itself; None while none is at work."""
        with self._lock:
            if not self._at_work():
                return None
            return store_now() + timedelta(seconds=max(0.0, self._until - time.monotonic()))

    def start(self, store_url: str, planned: Sequence[QueuePlan], *, seconds: float = SECONDS) -> None:
        """Start its two processes on queues that are there; raise `SampleRuns`."""
        with self._lock:
            if self._at_work():
                raise SampleRuns("A sample load is at work already.")
            run = start_sample(store_url, planned)
            self._run, self._until = run, time.monotonic() + seconds
            self._timer = threading.Timer(seconds, self.stop)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> bool:
        """End it after its current transactions; return whether one was running."""
        with self._lock:
            run = self._let_go() if self._at_work() else None
        if run is None:
            return False
        run.stop()
        return True

    def _at_work(self) -> bool:
        """Return whether one is running; drop one with dead processes."""
        if self._run is None:
            return False
        try:
            self._run.stats()
        except ProcessFailed as error:
            log.warning("the sample load: %s", error)
            # What is left of it may take a while to end: no page waits for that.
            threading.Thread(target=self._let_go().stop, name="pqadmin-sample-ends", daemon=True).start()
            return False
        return True

    def _let_go(self) -> LoadRun:
        assert self._run is not None
        run, self._run = self._run, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return run


def sample_plans(queues: int = QUEUES) -> Sequence[QueuePlan]:
    """Return the queues of the sample load: most are served faster than they fill, some are in trouble."""
    return with_trouble(
        [
            replace(plan, pop_weight=_SERVED * plan.push_weight) if plan.pop_weight >= plan.push_weight else plan
            for plan in plans(queues, prefix=PREFIX, seed=0)
        ]
    )


def take_rate(planned: Sequence[QueuePlan]) -> float:
    """Return the takes a second of all queues together, by the weights of their plans."""
    return PUSHED * sum(plan.pop_weight for plan in planned) / sum(plan.push_weight for plan in planned)


def start_sample(store_url: str, planned: Sequence[QueuePlan]) -> LoadRun:
    """Start the two processes of the sample load on queues that are there."""
    run = LoadRun(store_url, planned, seed=0)
    run.start(producers=1, push_pace=Pace(rate=PUSHED), workers=1, pop_pace=Pace(rate=take_rate(planned)))
    return run


#: The one of this process; its processes end with it.
sample_load = SampleLoad()
