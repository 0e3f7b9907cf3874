"""`pqadmin undo`: undo an action or a bulk job."""

from pqadmin.commands.arguments import REASON, Argument, flag
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Store
from queues.errors import JobNotFound


class Command(StoreCommand):
    """Undo an action by the id that it gave: items and queues return to what they were, where they were."""

    arguments = (
        Argument("id", metavar="ID", help="a trash id, or a bulk job"),
        flag("--partial", "leave alone the items that have changed since, undo the rest"),
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Undo it and print what came back."""
        acts, name = self.acts(store), options["id"]
        try:
            acts.job(name)
        except JobNotFound:
            undone = acts.undo(name, partial=options["partial"], reason=options["reason"])
        else:
            undone = acts.undo_bulk(name)
        skipped = [f"Left alone: {items(undone.skipped, 'have changed since')}."] if undone.skipped else []
        self.answer(
            {"queue": undone.queue.name, "items": undone.count, "skipped": undone.skipped},
            f"Undone in {undone.queue.name}: {items(undone.count, 'are as before')}.",
            *skipped,
        )
