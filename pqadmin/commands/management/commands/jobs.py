"""`pqadmin jobs`: list bulk jobs; show, run, cancel, resume or undo one."""

from collections.abc import Callable, Sequence

from django.core.management.base import CommandError

from pqadmin.commands.arguments import REASON, Argument, flag, whole_number
from pqadmin.commands.bulk_jobs import check_done, run_jobs
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_jobs
from pqadmin.display.format import age, visible
from pqadmin.files.shapes import job_shape
from queues import Actions, Job, Store

_ON_ONE = ("show", "cancel", "resume", "undo")
#: Why an ended job is not canceled.
_ENDED = {
    "done": "This job is done: nothing was canceled.",
    "failed": "This job has failed: nothing was canceled.",
    "canceled": "This job was canceled already: nothing was changed.",
}


class Command(StoreCommand):
    """Show, run, cancel, resume and undo bulk jobs.

    `run` does the rest of one job, or of all, here and now. A running site runs jobs by itself.
    """

    arguments = (
        Argument("what", nargs="?", default="list", choices=["list", "run", *_ON_ONE]),
        Argument("job", nargs="?", metavar="JOB", help="a job's id; run without one runs all"),
        Argument("--limit", type=whole_number, default=20, metavar="N", help="of a list (default: %(default)s)"),
        flag("--running", "list only jobs that have not ended"),
        REASON,
        flag("--quiet", "no progress on standard error"),
    )
    listed = "jobs"

    def run(self, store: Store, options: Options) -> None:
        """Run the subcommand."""
        acts, what, job_id, reason = self.actions(store), options["what"], options["job"], options["reason"]
        if what in _ON_ONE and not job_id:
            raise CommandError(f"Name the job: pqadmin jobs {what} JOB.")
        if what == "list":
            self._list(acts, store, options)
        elif what == "show":
            self._show([acts.job(job_id)])
        elif what == "cancel":
            status = acts.job(job_id).status
            if status in _ENDED:
                raise CommandError(_ENDED[status])
            self._show([acts.cancel_bulk(job_id, reason=reason)])
        elif what == "resume":
            self._run(acts, lambda: [acts.resume_bulk(job_id, reason=reason).id], options)
        elif what == "undo":
            acts.job(job_id)  # or JobNotFound: another id would undo something else
            self._run(acts, lambda: [job.id for job in [acts.undo(job_id, reason=reason).job] if job], options)
        else:
            self._run(acts, lambda: [job_id] if job_id else [job.id for job in acts.running_jobs()], options)

    def _list(self, acts: Actions, store: Store, options: Options) -> None:
        jobs = acts.running_jobs()[::-1] if options["running"] else acts.jobs(options["limit"])
        jobs = jobs[: options["limit"]]
        if jobs and not options["json"]:
            print_jobs(console(self.stdout), jobs, store.now())
            return
        none = "No job is running." if options["running"] else "No jobs."
        self.answer({"jobs": [job_shape(job) for job in jobs]}, none)

    def _run(self, acts: Actions, begin: Callable[[], Sequence[str]], options: Options) -> None:
        ended = run_jobs(self, acts, begin, quiet=options["quiet"], show=self._show)
        self._show(ended)
        check_done(self, ended)

    def _show(self, jobs: list[Job]) -> None:
        shapes = [job_shape(job) for job in jobs]
        lines = [line for job in jobs for line in self._lines(job)] or ["No job is running."]
        self.answer(shapes[0] if len(shapes) == 1 else {"jobs": shapes}, *lines)

    def _lines(self, job: Job) -> list[str]:
        of = "" if job.total is None else f" of {job.total:,}"
        to = "" if job.to is None else f" to {visible(job.to)}"
        counts = f"{job.met:,}{of} looked at, {job.done:,} changed, {job.skipped:,} left alone"
        lines = [
            f"{job.id}  {job.act} {job.state} items of {visible(job.queue)}{to}: {job.status}",
            f"  {counts}; begun by {visible(job.by)}",
        ]
        left = job.seconds_left()
        if left is not None:
            lines.append(f"  about {age(left)} left, run by {visible(job.runner)}")
        if job.failure:
            at = "" if job.failed_at is None else f" (at item {job.failed_at})"
            lines.append(f"  failed{at}: {visible(job.failure)}")
        if job.of is not None:
            lines.append(f"  undoes {job.of}")
        elif job.undo is not None:
            lines.append(f"  undone by {job.undo}")
        elif job.done:
            lines.append(f"  Undo: {self.command_line('jobs', 'undo', job.id)}")
        return lines
