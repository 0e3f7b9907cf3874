"""`pqadmin delete_queue`: delete a queue with all its items."""

from pqadmin.commands.arguments import CONFIRM, QUEUE, REASON
from pqadmin.commands.store_command import Options, StoreCommand
from queues import Store


class Command(StoreCommand):
    """Delete a queue with all its items. The trash keeps them."""

    arguments = (QUEUE, CONFIRM, REASON)

    def run(self, store: Store, options: Options) -> None:
        """Delete the queue and print how to undo it."""
        queue = store.queue(options["queue"])
        trash_id = self.actions(store).delete_queue(queue.name, confirm=options["confirm"], reason=options["reason"])
        self.answer(
            {"queue": queue.name, "trash_id": trash_id},
            f"{queue.name} is in the trash with all its items.",
            *self.undo_line(trash_id),
        )
