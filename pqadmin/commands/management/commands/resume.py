"""`pqadmin resume`: resume a paused queue."""

from pqadmin.commands.arguments import QUEUE
from pqadmin.commands.store_command import Options, StoreCommand
from queues import Store


class Command(StoreCommand):
    """Resume a paused queue: items can be taken again."""

    arguments = (QUEUE,)

    def run(self, store: Store, options: Options) -> None:
        """Resume the queue."""
        self.actions(store).resume(options["queue"])
        name = store.queue(options["queue"]).name
        self.answer({"queue": name, "pause": None}, f"Resumed {name}.")
