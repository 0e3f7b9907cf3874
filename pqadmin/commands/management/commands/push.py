"""`pqadmin push`: push one item."""

from django.core.management.base import CommandError

from pqadmin.commands.arguments import QUEUE, VALUE, VALUE_FILE, WHEN, Argument, read_priority, read_value_for
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.files.shapes import item_shape
from queues import Store


class Command(StoreCommand):
    """Push one item.

    The value is the argument, a file, or standard input (-), byte for byte. What begins with - and is no plain number
    needs the equals sign: --priority=-1e3.
    """

    arguments = (
        QUEUE,
        VALUE,
        VALUE_FILE,
        Argument("--priority", metavar="P", help="required in a priority queue, refused in a FIFO queue"),
        WHEN,
    )

    def run(self, store: Store, options: Options) -> None:
        """Push the value."""
        queue = store.queue(options["queue"])
        priority = read_priority(queue, options["priority"])
        if priority is None and queue.kind != "fifo":
            raise CommandError(f"{queue.name} is a priority queue: give --priority.")
        item = self.actions(store).push(
            queue.name, read_value_for(queue, options), priority=priority, delay=options["delay"], due=options["due"]
        )
        if options["json"]:
            self.answer({"queue": queue.name, "item": item_shape(item)})
        else:
            print_items(console(self.stdout), [item], store.now())
