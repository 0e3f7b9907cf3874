"""The runner: does what is left of all jobs of a store, a chunk of each in turn, beside whatever else the process does.

Of several runners on one store one runs a job at a time: it holds the job, and renews that with every chunk. Another
runner takes over a job whose holder died (`queues.serving.leadership`). Every chunk checks the holder.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from queues.bulk.bulk_job import Job, read_running
from queues.bulk.step import HELD, Shown, Steps, all_shown, job_leadership, runner_name
from queues.context import StoreContext
from queues.errors import JobNotFound, QueueError, StoreClosed, StoreError, Unreadable, Worded, Words
from queues.kv.port import ReadTransaction
from queues.serving.leadership import Leadership

log = logging.getLogger(__name__)

#: Jobs that one runner does at once; further ones wait for it or for another runner.
AT_ONCE = 8
#: Seconds after which it looks for jobs though nothing woke it, and while it is busy.
LONGEST, _LOOK_EVERY = 30.0, 0.5
#: Rests after each round for this share of its time, in favor of other work.
_REST = 0.5
#: Seconds for which a job is left alone when the store failed, doubled each time.
_SHORTEST_TROUBLE, _LONGEST_TROUBLE = 0.5, 30.0


@dataclass(slots=True)
class _Mine:
    """A job that this runner holds."""

    steps: Steps
    job: Job
    #: When it was last held or stepped, by our count.
    renewed: float
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
        self._mine: dict[str, _Mine] = {}
        #: Of each job that has not ended.
        self._leaderships: dict[str, Leadership] = {}
        self._looked = -LONGEST
        self._change: bytes | None = None
        #: Jobs that had not ended at the last look; None before it.
        self.running: tuple[Job, ...] | None = None

    def run(self, ended: threading.Event) -> None:
        """Run jobs until `ended` is set and the watches are interrupted; what is left goes on elsewhere at once."""
        trouble = 0.0
        try:
            while not ended.is_set():
                try:
                    rest = self.round()
                    trouble = 0.0
                    if self._mine:
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
                    trouble = min(max(_SHORTEST_TROUBLE, 2 * trouble), _LONGEST_TROUBLE)
                    ended.wait(trouble)
        finally:
            self._let_go()

    def round(self) -> float:
        """Do a chunk of each job that is ours and due; return the seconds after which the next round is worth it."""
        began = self._count()
        if began - self._looked >= _LOOK_EVERY:
            self._look()
        waits = []
        for job_id, mine in list(self._mine.items()):
            wait = max(mine.after - self._count(), mine.job.wait(self._context.now_ms()))
            if wait <= 0:
                wait = self._take(job_id, mine)
            elif self._count() - mine.renewed > HELD / 3:
                self._renew(job_id, mine)
            waits.append(wait)
        if not self._mine:
            return self._until_lapse()
        return max(min(*waits, _LOOK_EVERY), (self._count() - began) * _REST)

    def _look(self) -> None:
        def look(tr: ReadTransaction) -> tuple[bytes | None, list[Job]]:
            return tr.get(self._context.keyspace.job_change).wait(), read_running(tr, self._context.keyspace)

        self._change, jobs = self._context.kv.read(look, background=True)
        self._looked = self._count()
        self.running = tuple(jobs)
        running = {job.id for job in jobs}
        self._mine = {job_id: mine for job_id, mine in self._mine.items() if job_id in running}
        self._leaderships = {job_id: one for job_id, one in self._leaderships.items() if job_id in running}
        for job in jobs:
            if job.id not in self._mine and len(self._mine) < AT_ONCE:
                self._try(job)

    def _try(self, job: Job) -> None:
        """Take a job that no runner holds."""
        leadership = self._leaderships.get(job.id)
        if leadership is None:
            leadership = self._leaderships[job.id] = job_leadership(self._context, self._name, self._count)
        if not leadership.is_free(job.holding):
            return
        steps = Steps(self._context, job.id, leadership, shown=self._shown)
        held = steps.hold()
        if held is not None and held.running:
            self._mine[job.id] = _Mine(steps, held, self._count())

    def _take(self, job_id: str, mine: _Mine) -> float:
        """Do a job's next chunk; return the seconds until the one after it."""
        try:
            mine.job = mine.steps.take(mine.job)
            mine.trouble, mine.renewed = 0.0, self._count()
        except StoreError as error:
            if not mine.trouble:
                log.warning("The job %s waits: %s: %s", job_id, type(error).__name__, error)
            mine.trouble = min(max(_SHORTEST_TROUBLE, 2 * mine.trouble), _LONGEST_TROUBLE)
            mine.after = self._count() + mine.trouble
            return mine.trouble
        except Exception as error:
            log.exception("The job %s has failed", job_id)
            words = Words("pqadmin has an error ({kind}); its log says more.", kind=type(error).__name__)
            mine.job = mine.steps.fail(Worded(words))
        if not mine.job.running or not self._leaderships[job_id].holds(mine.job.holding):
            del self._mine[job_id]
            self._looked = -LONGEST
            return 0.0
        return mine.job.wait(self._context.now_ms())

    def _renew(self, job_id: str, mine: _Mine) -> None:
        held = mine.steps.hold()
        if held is None or not held.running:
            del self._mine[job_id]
        else:
            mine.job, mine.renewed = held, self._count()

    def _until_lapse(self) -> float:
        """Return the seconds until jobs of other runners may have lapsed."""
        lapses = [one.until_lapse for one in self._leaderships.values()]
        return max(0.05, min([LONGEST, *lapses]))

    def _let_go(self) -> None:
        for mine in self._mine.values():
            try:
                mine.steps.let_go()
            except (StoreError, QueueError) as error:  # it lapses by itself
                log.info("The job %s was not let go: %s", mine.job.id, error)
        self._mine = {}
