"""`pqadmin move`: move items from one queue to another."""

from django.core.management.base import CommandError

from pqadmin.commands.arguments import REASON, Argument, OneOf, flag, read_priority
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Actions, Job, Store


class Command(StoreCommand):
    """Move items to another queue: some by their ids, in one transaction, or all ready items, chunk by chunk."""

    arguments = (
        Argument("source", metavar="FROM"),
        Argument("target", metavar="TO"),
        OneOf(
            Argument("--ids", nargs="+", metavar="ID", help="at most 1,000 items; all are moved, or none"),
            flag("--all", "every item that is ready when the command begins"),
            Argument("--resume", metavar="JOB", help="continue a move of all that was stopped"),
            required=True,
        ),
        Argument("--priority", metavar="P", help="for all of them (default: keep each item's own)"),
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Move the items and print how to undo it."""
        source, target = store.queue(options["source"]), store.queue(options["target"])
        priority = read_priority(target, options["priority"])
        acts, reason = self.actions(store), options["reason"]
        job, trash_id = None, None
        if options["ids"]:
            changed = acts.move_items(source.name, options["ids"], target.name, priority=priority, reason=reason)
            count, trash_id = changed.count, changed.trash_id
        else:
            if options["resume"]:
                job = acts.job(options["resume"])
                if (job.act, job.queue_id, job.to_id) != ("move", source.id, target.id):
                    raise CommandError(f"{job.id} is no move from {source.name} to {target.name}.")
            else:
                job = acts.begin_bulk("move", source.name, to=target.name, priority=priority, reason=reason)
            job = self._finished(acts, job)
            count = job.done
        self.answer(
            {
                "from": source.name,
                "to": target.name,
                "items": count,
                "trash_id": trash_id,
                "job": None if job is None else job.id,
                "total": None if job is None else job.total,
            },
            f"Moved {items(count)} from {source.name} to {target.name}.",
            *(self.undo_line(trash_id if job is None else job.id) if count else ()),
        )

    def _finished(self, acts: Actions, job: Job) -> Job:
        """Run a bulk job to its end; raise `CommandError` if it is interrupted or fails."""
        try:
            with Interruption() as stop, stop.held():
                job = acts.run_bulk(job.id, progress=lambda _: not stop.requested)
        except Interrupted:
            again = self.command_line("move", job.queue, str(job.to), "--resume", job.id)
            raise CommandError(
                f"Interrupted. A running site continues it; otherwise run: {again}. "
                f"To end it: {self.command_line('jobs', 'cancel', job.id)}",
                returncode=Exit.INTERRUPTED,
            ) from None
        if job.status == "failed":
            at = "" if job.failed_at is None else f"The item is {job.failed_at}. "
            raise CommandError(
                f"The job {job.id} has failed after {items(job.done)}: {job.failure} {at}Move or change it by its id, "
                f"then continue with: {self.command_line('jobs', 'resume', job.id)}"
            )
        return job
