"""`pqadmin create_queue`: create a queue."""

from pqadmin.commands.arguments import CODEC, KIND, PRIORITY_TYPE, Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.shapes import queue_shape
from queues import Store


class Command(StoreCommand):
    """Create a queue."""

    arguments = (Argument("queue", help="1 to 200 letters, digits and . _ : -"), KIND, PRIORITY_TYPE, CODEC)
    creates_store = True

    def run(self, store: Store, options: Options) -> None:
        """Create the queue."""
        queue = self.create(store, options)
        self.answer(queue_shape(queue), f"Created {queue.name}.")
