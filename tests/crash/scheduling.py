"""What the killed and suspended children do: work on a schedule that pushes its own next run."""

import sys
import threading

from queues import Transaction, open_store
from queues.workers import Backoff, Job, Pool, Worker

#: Seconds of a lease: short, so that those of killed and suspended children expire soon.
SECONDS = 0.3
worker = Worker()


@worker.handles("schedule", seconds=SECONDS, backoff=Backoff(first=0, jitter=0))
def run(job: Job) -> None:
    """Note this run and push the next one."""
    threading.Event().wait(0.02)

    def finish(tr: Transaction) -> None:
        job.store.queue("log", tr=tr).push(job.item.value, priority=0, tr=tr)
        job.store.queue("schedule", tr=tr).push(b"%d" % (int(job.item.value) + 1), priority=0, tr=tr)

    job.complete(finish)


def main() -> None:
    """Work until killed."""
    with open_store(sys.argv[1]) as store:
        pool = Pool(store, worker, ["schedule"], threads=2)
        pool.start()
        pool.wait()


if __name__ == "__main__":
    main()
