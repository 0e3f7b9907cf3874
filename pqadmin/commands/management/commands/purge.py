"""`pqadmin purge`: purge a queue."""

from pqadmin.commands.arguments import CONFIRM, KEEP, QUEUE, REASON
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Store


class Command(StoreCommand):
    """Remove all ready and delayed items of a queue; the trash keeps them.

    It is done at once, however many there are. Leased and dead items stay.
    """

    arguments = (QUEUE, CONFIRM, KEEP, REASON)

    def run(self, store: Store, options: Options) -> None:
        """Purge the queue and print how to undo it."""
        name = store.queue(options["queue"]).name
        purged = self.actions(store, keep=options["keep"]).purge(
            name, confirm=options["confirm"], reason=options["reason"]
        )
        done = items(purged.count, "are in the trash" if purged.trash_ids else "are gone")
        self.answer(
            {
                "queue": name,
                "items": purged.count,
                "skipped": purged.skipped,
                "trash_ids": list(purged.trash_ids),
                "finished": purged.finished,
            },
            f"Purged {name}: {done}." if purged.count else f"{name} held nothing to purge.",
            *(line for trash_id in purged.trash_ids for line in self.undo_line(trash_id)),
        )
        if purged.failure is not None:  # after what was done, which is in the trash
            raise purged.failure
