"""What the killed children do: move all items of a queue to another one, telling of every chunk."""

from queues import Job, open_store
from tests.crash.harness import Report


def move_all(report: Report, url: str, job_id: str) -> None:
    """Run a job until it is done or this process is killed."""
    with open_store(url) as store:

        def progress(job: Job) -> bool:
            report.acknowledge(f"chunk {job.chunks} {job.done}")
            report.begin(f"chunk {job.chunks + 1}")
            return True

        store.actions("ann", via="cli").run_bulk(job_id, progress=progress)
