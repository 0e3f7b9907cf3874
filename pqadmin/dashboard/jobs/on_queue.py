"""Running bulk jobs of one queue, shown before another action on many of its items."""

from dataclasses import dataclass

from django.http import HttpRequest

from pqadmin.dashboard.jobs.words import Told, tell
from pqadmin.pages import visibility
from pqadmin.store import get_store, store_now
from queues import Job, ReadTransaction
from queues.admin import BULK_PUSH, BULK_UNDO

#: Jobs that are named; more are counted.
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsHere:
    """The running bulk jobs of one queue, as one user sees them."""

    #: The newest first.
    told: tuple[Told, ...] = ()
    #: How many more the user sees.
    more: int = 0
    #: One reaches a queue that the user does not see: no more is shown of it.
    unseen: bool = False
    #: Some may take or change present items; some add items.
    takes: bool = False
    brings: bool = False

    def __bool__(self) -> bool:
        return bool(self.told) or self.unseen


def jobs_here(request: HttpRequest, queue_id: int, *, tr: ReadTransaction) -> JobsHere:
    """Read the running bulk jobs that take items from a queue, change them or add some."""
    may, now = visibility.scope(request), store_now()
    running = get_store().actions(request.user.get_username()).running_jobs(tr=tr)
    here = [job for job in reversed(running) if queue_id in (job.queue_id, job.to_id)]
    seen = [job for job in here if visibility.sees_job(may, job)]
    return JobsHere(
        told=tuple(tell(job, now) for job in seen[:_NAMED]),
        more=max(0, len(seen) - _NAMED),
        unseen=len(seen) < len(here),
        takes=len(seen) < len(here) or any(_takes(job, queue_id) for job in seen),
        brings=any(job.act in (BULK_UNDO, BULK_PUSH) or job.to_id == queue_id for job in seen),
    )


def _takes(job: Job, queue_id: int) -> bool:
    return job.act == BULK_UNDO or (job.act != BULK_PUSH and job.queue_id == queue_id)
