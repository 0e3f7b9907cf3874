"""`pqadmin move`: move items from one queue to another."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.store_command import EXIT_INTERRUPTED, StoreCommand
from pqadmin.files.plain_text import items
from queues import Acts, Job, Store
from queues.model.priority import parse_priority


class Command(StoreCommand):
    """Move items; each chunk is one transaction, audited, and can be undone."""

    help = "Move items to another queue: some by their ids, as one, or all, chunk by chunk."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("source", metavar="FROM")
        parser.add_argument("target", metavar="TO")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--ids", nargs="+", metavar="ID", help="these items, at most 1,000, as one")
        what.add_argument("--all", action="store_true", help="every item that is ready when the command begins")
        what.add_argument("--resume", metavar="JOB", help="go on with a move of all that was stopped")
        parser.add_argument("--priority", metavar="P", help="for all of them (default: keep each one's own)")
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Move the items and say how to undo it."""
        source, target = store.queue(options["source"]), store.queue(options["target"])
        given = options["priority"]
        priority = None
        if given is not None:
            if target.kind == "fifo":
                raise CommandError(f"{target.name} is a FIFO queue: it takes no --priority.")
            priority = parse_priority(given, target.priority_type)
        acts, reason = self.acts(store), options["reason"]
        if options["ids"]:
            changed = acts.move_items(source.name, options["ids"], target.name, priority=priority, reason=reason)
            self._show(source.name, target.name, changed.count, options, trash_id=changed.trash_id)
            return
        if options["resume"]:
            job = acts.job(options["resume"])
            if (job.act, job.queue_id, job.to_id) != ("move", source.id, target.id):
                raise CommandError(f"{job.id} is no move from {source.name} to {target.name}.")
        else:
            job = acts.begin_bulk("move", source.name, to=target.name, priority=priority, reason=reason)
        job = self._run(acts, job)
        if job.status == "failed":
            at = "" if job.failed_at is None else f"The item is {job.failed_at}. "
            raise CommandError(
                f"The job {job.id} has failed after {items(job.done)}: {job.failure} {at}Move or change it by its id, "
                f"then go on with: pqadmin jobs resume {job.id}"
            )
        self._show(source.name, target.name, job.done, options, job=job)

    def _run(self, acts: Acts, job: Job) -> Job:
        try:
            with Interruption() as stop, stop.held():
                return acts.run_bulk(job.id, progress=lambda _: not stop.requested)
        except Interrupted:
            raise CommandError(
                f"Interrupted. A running site goes on with it; else go on with: pqadmin move … --resume {job.id}. "
                f"To end it: pqadmin jobs cancel {job.id}",
                returncode=EXIT_INTERRUPTED,
            ) from None

    def _show(
        self,
        source: str,
        target: str,
        count: int,
        options: dict[str, Any],
        *,
        trash_id: str | None = None,
        job: Job | None = None,
    ) -> None:
        undo = trash_id if job is None else job.id
        if options["json"]:
            shape = {"from": source, "to": target, "items": count, "trash_id": trash_id}
            self.print_json(
                shape | {"job": None if job is None else job.id, "total": None if job is None else job.total}
            )
            return
        self.stdout.write(f"Moved {items(count)} from {source} to {target}.")
        if count:
            self.stdout.write(f"Undo: pqadmin undo {undo}")
