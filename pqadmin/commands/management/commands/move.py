"""`pqadmin move`: move items from one queue to another."""

from django.core.management.base import CommandError

from pqadmin.commands.arguments import REASON, Argument, OneOf, flag, read_priority
from pqadmin.commands.bulk_jobs import check_done, run_jobs
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Job, Store


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
        job: Job | None = None
        trash_id = None
        if options["ids"]:
            changed = acts.move_items(source.name, options["ids"], target.name, priority=priority, reason=reason)
            count, trash_id = changed.count, changed.trash_id
        else:

            def begin() -> list[str]:
                if not options["resume"]:
                    return [acts.begin_bulk("move", source.name, to=target.name, priority=priority, reason=reason).id]
                resumed = acts.job(options["resume"])
                if (resumed.act, resumed.queue_id, resumed.to_id) != ("move", source.id, target.id):
                    raise CommandError(f"{resumed.id} is no move from {source.name} to {target.name}.")
                return [resumed.id]

            (job,) = run_jobs(self, acts, begin)
            check_done(self, [job])
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
