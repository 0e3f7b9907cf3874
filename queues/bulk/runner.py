"""The runner does the bulk jobs of a store, a chunk of each in turn, in a thread of its own.

Of several runners on one store one runs a job at a time: it holds the job, and renews that with every chunk. Another
runner takes over the job of a holder that died (`queues.serving.leadership`). Every chunk checks the holder.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from queues.bulk.bulk_job import HELD_MS, Job, read_running
from queues.bulk.chunk import Shown, Steps, all_shown, runner_name
from queues.context import StoreContext
from queues.errors import JobNotFound, QueueError, StoreClosed, StoreError, Unreadable, Worded, Words
from queues.kv.port import ReadTransaction
from queues.serving.leadership import Leadership

log = logging.getLogger(__name__)

#: Jobs that one runner does at once, besides those that rest for their rates; further ones wait for it or for another
#: runner.
AT_ONCE = 8
#: Seconds for which a runner holds its job.
HELD = HELD_MS / 1000
#: Seconds after which it looks for jobs though nothing woke it, and while it is busy.
LONGEST, _LOOK_EVERY = 30.0, 0.5
#: Rests after each round for this share of its time, in favor of other work.
_REST = 0.5
#: Seconds for which a job is left alone when the store failed, doubled each time.
_SHORTEST_TROUBLE, _LONGEST_TROUBLE = 0.5, 30.0


@dataclass(slots=True)
class _Known:
    """A job that has not ended, as this runner knows it."""

    steps: Steps
    #: This runner's part in the leadership of the job.
    leadership: Leadership
    job: Job
    #: This runner holds it.
    mine: bool = False
    #: Its rate let it rest after its last chunk.
    rests: bool = False
    #: When it was last held or stepped, by our count.
    renewed: float = 0.0
    #: Not before.
    after: float = 0.0
    trouble: float = 0.0


class JobRunner:
    """One runner. One thread calls `run`; any may ask which jobs were `running` when it looked last."""

    def __init__(
        self,
        context: StoreContext,
        *,
        shown: Shown = all_shown,
        name: str = "",
        count: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._shown = shown
        self._count = count
        self._name = name or runner_name()
        self._known: dict[str, _Known] = {}
        self._looked = -LONGEST
        self._change: bytes | None = None
        #: Jobs that had not ended at the last look; None before it.
        self.running: tuple[Job, ...] | None = None

    def run(self, ended: threading.Event) -> None:
        """Run jobs until `ended` is set and the watches are interrupted. What is left goes on elsewhere at once."""
        trouble = 0.0
        try:
            while not ended.is_set():
                try:
                    rest = self.round()
                    trouble = 0.0
                    if self._mine():
                        ended.wait(rest)
                    elif not ended.is_set():
                        known = {self._context.keyspace.job_change: self._change}
                        self._context.kv.watch(known, timeout=rest)
                        self._looked = -LONGEST
                except StoreClosed:
                    return
                except (StoreError, JobNotFound, Unreadable) as error:
                    if not trouble and not ended.is_set():
                        log.warning("Jobs wait: %s: %s", type(error).__name__, error)
                    trouble = _longer(trouble)
                    ended.wait(trouble)
        finally:
            self._let_go()

    def round(self) -> float:
        """Do a chunk of each job that is ours and due. Return the seconds after which the next round is worth it."""
        began = self._count()
        if began - self._looked >= _LOOK_EVERY:
            self._look()
        waits = []
        for known in self._mine():
            wait = max(known.after - self._count(), known.job.wait(self._context.clock.now_ms()))
            if wait <= 0:
                wait = self._take(known)
            elif self._count() - known.renewed > HELD / 3:
                self._hold(known)
            waits.append(wait)
        if not self._mine():
            # Until jobs of other runners may have lapsed.
            return max(0.05, min([LONGEST, *(known.leadership.until_lapse for known in self._known.values())]))
        return max(min(*waits, _LOOK_EVERY), (self._count() - began) * _REST)

    def _mine(self) -> list[_Known]:
        return [known for known in self._known.values() if known.mine]

    def _look(self) -> None:
        """Look which jobs have not ended, and take those that no runner holds."""

        def look(tr: ReadTransaction) -> tuple[bytes | None, list[Job]]:
            return tr.get(self._context.keyspace.job_change).wait(), read_running(tr, self._context.keyspace)

        self._change, jobs = self._context.kv.read(look, background=True)
        self._looked = self._count()
        self.running = tuple(jobs)
        self._known = {job.id: self._known.get(job.id) or self._new(job) for job in jobs}
        for job in jobs:
            known = self._known[job.id]
            busy = sum(not mine.rests for mine in self._mine())
            if not known.mine and busy < AT_ONCE and known.leadership.is_free(job.holding):
                self._hold(known)

    def _new(self, job: Job) -> _Known:
        steps = Steps(self._context, job.id, runner=self._name, shown=self._shown)
        now_ms, count = self._context.clock.now_ms, self._count
        leadership = Leadership(seconds=HELD, now_ms=now_ms, monotonic=count, holder=self._name, slack_ms=0)
        return _Known(steps, leadership, job)

    def _hold(self, known: _Known) -> None:
        """Hold a job that no other runner holds, or hold it longer."""
        held = known.steps.hold(is_free=lambda job: known.leadership.is_free(job.holding))
        known.mine = held is not None and held.running
        known.job, known.renewed = held or known.job, self._count()

    def _take(self, known: _Known) -> float:
        """Do a job's next chunk; return the seconds until the one after it."""
        try:
            known.job = known.steps.take(known.job)
            known.trouble, known.renewed = 0.0, self._count()
        except StoreError as error:
            if not known.trouble:
                log.warning("The job %s waits: %s: %s", known.job.id, type(error).__name__, error)
            known.trouble = _longer(known.trouble)
            known.after = self._count() + known.trouble
            return known.trouble
        except Exception as error:
            log.exception("The job %s has failed", known.job.id)
            words = Words("pqadmin has an error ({kind}); its log says more.", kind=type(error).__name__)
            known.job = known.steps.fail(Worded(words))
        if not known.job.running or not known.steps.holds(known.job):
            known.mine, self._looked = False, -LONGEST
            return 0.0
        wait = known.job.wait(self._context.clock.now_ms())
        known.rests = wait > 0
        return wait

    def _let_go(self) -> None:
        for known in self._mine():
            try:
                known.steps.let_go()
            except (StoreError, QueueError) as error:  # it lapses by itself
                log.info("The job %s was not let go: %s", known.job.id, error)
        self._known = {}


def _longer(trouble: float) -> float:
    return min(max(_SHORTEST_TROUBLE, 2 * trouble), _LONGEST_TROUBLE)
