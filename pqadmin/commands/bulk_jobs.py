"""Bulk jobs that a command runs: how a stop signal ends it, and how a job is told that is not done."""

from collections.abc import Callable, Sequence

from django.core.management.base import CommandError

from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import StoreCommand
from pqadmin.display.format import visible
from pqadmin.display.values import what_searchers_see
from pqadmin.files.plain_text import items
from queues import Actions, Job


def run_jobs(
    command: StoreCommand,
    acts: Actions,
    begin: Callable[[], Sequence[str]],
    *,
    quiet: bool = False,
    show: Callable[[list[Job]], object] = lambda ended: None,
) -> list[Job]:
    """Begin jobs, run them here and now, and return them; raise `CommandError` when a stop signal leaves some.

    `begin` returns their ids. A stop signal waits for it, and for the chunk that is being done; `show` tells the jobs
    that ended before.
    """
    ended: list[Job] = []
    left: list[str] | None = None
    stop = Interruption()
    try:
        with stop, stop.held():
            left = [*begin()]
            while left and not stop.requested:
                job = acts.run_bulk(left[0], progress=_progress(command, stop, quiet=quiet), shown=what_searchers_see)
                if job.running and stop.requested:
                    break
                ended.append(job)
                del left[0]
    except Interrupted:
        if left is None:
            raise
        if left:
            if ended:
                show(ended)
            raise CommandError(
                "Interrupted. A running site continues the job; otherwise run: "
                f"{command.command_line('jobs', 'run', left[0])}. "
                f"To end it: {command.command_line('jobs', 'cancel', left[0])}",
                returncode=Exit.INTERRUPTED,
            ) from None
    return ended


def check_done(command: StoreCommand, jobs: Sequence[Job]) -> None:
    """Raise `CommandError` for the first of the jobs that is not done."""
    for job in jobs:
        if job.running:
            show = command.command_line("jobs", "show", job.id)
            raise CommandError(f"Another process runs the job {job.id} now, {counted(job)} looked at: {show}")
        again = command.command_line("jobs", "resume", job.id)
        if job.status == "canceled":
            raise CommandError(f"The job {job.id} was canceled after {counted(job)}: continue with {again}")
        if job.status == "failed":
            at = "" if job.failed_at is None else f" The item is {job.failed_at}."
            raise CommandError(
                f"The job {job.id} has failed after {items(job.done)}: {visible(job.failure)}{at} "
                f"What it did can be undone; correct the cause, then continue with: {again}"
            )


def counted(job: Job) -> str:
    """Return how many items a job has looked at, of how many."""
    return items(job.met) if job.total is None else f"{job.met:,} of {items(job.total)}"


def _progress(command: StoreCommand, stop: Interruption, *, quiet: bool) -> Callable[[Job], bool]:
    told = 0

    def progress(job: Job) -> bool:
        nonlocal told
        part = 10 * job.met // job.total if job.total else job.met // 10_000
        if part > told and command.stderr.isatty() and not (quiet or command.prints_json):
            told = part
            command.tell(f"{job.id}: {counted(job)}")
        return not stop.requested

    return progress
