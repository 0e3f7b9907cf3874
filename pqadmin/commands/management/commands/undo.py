"""`pqadmin undo`: undo an action or a bulk job."""

from pqadmin.commands.arguments import REASON, Argument, flag
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Store
from queues.errors import JobEnded


class Command(StoreCommand):
    """Undo an action by the id that it gave: items and queues return to what they were, where they were."""

    arguments = (
        Argument("id", metavar="ID", help="a trash id, or a bulk job"),
        flag("--partial", "leave alone the items that have changed since, undo the rest"),
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Undo it and print what came back."""
        actions = self.actions(store)
        undone = actions.undo(options["id"], partial=options["partial"], reason=options["reason"])
        count, skipped = undone.count, undone.skipped
        if undone.job is not None:
            job = actions.run_bulk(undone.job.id)
            count, skipped = job.done, job.skipped
            if job.failure:
                raise JobEnded("Undoing has failed after {count:,} items: {failure}", count=count, failure=job.failure)
        more = [f"Left alone: {items(skipped, 'have changed since')}."] if skipped else []
        self.answer(
            {"queue": undone.queue, "items": count, "skipped": skipped},
            f"Undone in {undone.queue}: {items(count, 'are as before')}.",
            *more,
        )
