"""Workers: threads that run handlers on leased items, and a dispatcher of due items.

    from queues.workers import Job, Worker

    worker = Worker()

    @worker.handles("mail")
    def send(job: Job) -> None:
        deliver(job.item.value)

`manage.py work mail --handlers shop.jobs` runs it; a program of its own does so with `Pool`.
"""

from queues.workers.dispatcher import Dispatcher
from queues.workers.job import Job, Stopped
from queues.workers.pool import Pool, PoolStats
from queues.workers.worker import Backoff, Function, Handler, Worker

__all__ = ["Backoff", "Dispatcher", "Function", "Handler", "Job", "Pool", "PoolStats", "Stopped", "Worker"]
