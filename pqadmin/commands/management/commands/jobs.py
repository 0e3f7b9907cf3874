"""`pqadmin jobs`: list the acts on many items, look at one, run, cancel, resume or undo it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.shapes import Shape, job_shape
from pqadmin.commands.store_command import EXIT_INTERRUPTED, StoreCommand, whole_number
from pqadmin.commands.tables import console, print_jobs
from pqadmin.display.format import age, number, visible
from pqadmin.display.values.search_mask import what_searchers_see
from queues import Acts, Job, Store

_ON_ONE = ("show", "cancel", "resume", "undo")
#: What is said of a job that is to be canceled and has ended.
_ENDED = {
    "done": "This job is done: nothing was canceled.",
    "failed": "This job has failed: nothing was canceled.",
    "canceled": "This job was canceled already: nothing was changed.",
}


class Command(StoreCommand):
    """Work with jobs. The site runs them by itself; `run` is for where no site does."""

    help = (
        "Show, run, cancel, resume and undo acts on many items. `run` does what is left of one, or of all, here and "
        "now. A running site runs jobs by itself."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "what", nargs="?", default="list", choices=["list", "show", "run", "cancel", "resume", "undo"]
        )
        parser.add_argument("job", nargs="?", metavar="JOB", help="a job's id; run without one runs all")
        parser.add_argument(
            "--limit", type=whole_number, default=20, metavar="N", help="of a list (default: %(default)s)"
        )
        parser.add_argument("--running", action="store_true", help="list only those that have not ended")
        parser.add_argument("--reason", default="", help="why, for the audit trail")
        parser.add_argument("--quiet", action="store_true", help="no progress on standard error")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Do what was asked."""
        acts, what, job_id = self.acts(store), options["what"], options["job"]
        if what in _ON_ONE and not job_id:
            raise CommandError(f"Say which job: pqadmin jobs {what} JOB.")
        if what == "list":
            jobs = acts.running_jobs()[::-1] if options["running"] else acts.jobs(options["limit"])
            self._list(jobs[: options["limit"]], options, store.now())
        elif what == "show":
            self._show([acts.job(job_id)], options)
        elif what == "cancel":
            self._cancel(acts, job_id, options)
        elif what == "resume":
            acts.resume_bulk(job_id, reason=options["reason"])
            self._run(acts, [job_id], options)
        elif what == "undo":
            self._run(acts, [acts.begin_undo(job_id, reason=options["reason"]).id], options)
        else:
            self._run(acts, [job_id] if job_id else [job.id for job in acts.running_jobs()], options)

    def _cancel(self, acts: Acts, job_id: str, options: dict[str, Any]) -> None:
        status = acts.job(job_id).status
        if status in _ENDED:
            raise CommandError(_ENDED[status])
        self._show([acts.cancel_bulk(job_id, reason=options["reason"])], options)

    def _run(self, acts: Acts, job_ids: list[str], options: dict[str, Any]) -> None:
        ended = []
        stop = Interruption()
        try:
            with stop, stop.held():
                for job_id in job_ids:
                    if not stop.requested:
                        progress = self._progress(stop, options)
                        ended.append(acts.run_bulk(job_id, progress=progress, shown=what_searchers_see))
        except Interrupted:
            left = ended[-1].id if ended else job_ids[0]
            raise CommandError(
                f"Interrupted. A running site goes on; else go on with: pqadmin jobs run {left}",
                returncode=EXIT_INTERRUPTED,
            ) from None
        self._show(ended, options)
        failed = [job for job in ended if job.status == "failed"]
        if failed:
            raise CommandError(
                f"The job {failed[0].id} has failed after {failed[0].done:,} items: {visible(failed[0].failure)} "
                "What it did can be undone; mend what is wrong and resume it to go on."
            )

    def _progress(self, stop: Interruption, options: dict[str, Any]) -> Callable[[Job], bool]:
        told = 0

        def progress(job: Job) -> bool:
            nonlocal told
            part = 10 * job.met // job.total if job.total else job.met // 10_000
            if part > told and not options["quiet"] and not options["json"]:
                told = part
                total = "" if job.total is None else f" of {number(job.total)}"
                self.stderr.write(f"{job.id}: {number(job.met)}{total} items", lambda same: same)
            return not stop.requested

        return progress

    def _list(self, jobs: list[Job], options: dict[str, Any], now: datetime) -> None:
        if options["json"]:
            self.print_json({"jobs": [job_shape(job) for job in jobs]})
        elif jobs:
            print_jobs(console(self.stdout), jobs, now)
        else:
            self.stdout.write("No jobs." if not options["running"] else "No job is running.")

    def _show(self, jobs: list[Job], options: dict[str, Any]) -> None:
        if options["json"]:
            shapes: list[Shape] = [job_shape(job) for job in jobs]
            self.print_json(shapes[0] if len(shapes) == 1 else {"jobs": shapes})
            return
        if not jobs:
            self.stdout.write("No job is running.")
        for job in jobs:
            for line in _lines(job):
                self.stdout.write(line)


def _lines(job: Job) -> list[str]:
    to = "" if job.to is None else f" to {visible(job.to)}"
    total = "" if job.total is None else f" of {job.total:,}"
    lines = [
        f"{job.id}  {job.act} {job.state} items of {visible(job.queue)}{to}: {job.status}",
        f"  {job.met:,}{total} looked at, {job.done:,} changed, {job.skipped:,} left alone; begun by {visible(job.by)}",
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
        lines.append(f"  Undo: pqadmin jobs undo {job.id}")
    return lines
