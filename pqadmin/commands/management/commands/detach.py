"""`pqadmin detach`: forget a queue that other programs write."""

from pqadmin.commands.arguments import QUEUE, REASON
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.shapes import queue_shape
from queues import Store


class Command(StoreCommand):
    """Forget an attached queue. Its items stay where they are; other programs notice nothing."""

    arguments = (QUEUE, REASON)

    def run(self, store: Store, options: Options) -> None:
        """Detach the queue."""
        queue = store.queue(options["queue"])
        self.actions(store).detach(queue.name, reason=options["reason"])
        self.answer(queue_shape(queue), f"Detached {queue.name}. Its items stay where they are.")
