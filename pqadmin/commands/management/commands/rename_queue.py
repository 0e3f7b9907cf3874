"""`pqadmin rename_queue`: rename a queue."""

from pqadmin.commands.arguments import QUEUE, Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.shapes import queue_shape
from queues import Store


class Command(StoreCommand):
    """Rename a queue; its items and its audit stay, and its workers go on."""

    arguments = (QUEUE, Argument("new", metavar="NEW"))

    def run(self, store: Store, options: Options) -> None:
        """Rename the queue."""
        old = store.queue(options["queue"]).name
        queue = self.actions(store).rename_queue(old, options["new"])
        self.answer(queue_shape(queue), f"Renamed {old} to {queue.name}.")
