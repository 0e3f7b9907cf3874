"""`pqadmin find`: show one item by its id, with its attempts."""

from pqadmin.commands.arguments import QUEUE, Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_attempts, print_items
from pqadmin.files.shapes import item_shape
from queues import Store
from queues.errors import ItemNotFound


class Command(StoreCommand):
    """Show one item in whatever state, with its last attempts: worker, times, error and traceback."""

    arguments = (QUEUE, Argument("id", metavar="ID"))

    def run(self, store: Store, options: Options) -> None:
        """Show the item."""
        queue = store.queue(options["queue"])
        item = queue.find(options["id"])
        if item is None:
            raise ItemNotFound("{queue} has no item {id}.", queue=queue.name, id=options["id"])
        if options["json"]:
            self.answer({"queue": queue.name, "item": item_shape(item)})
            return
        output = console(self.stdout)
        print_items(output, [item], store.now())
        print_attempts(output, item)
