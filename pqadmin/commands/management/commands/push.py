"""`pqadmin push`: push one item."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.shapes import item_shape
from pqadmin.commands.store_command import StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.times import add_when
from pqadmin.commands.value_argument import add_value, read_value
from queues import Store
from queues.model.priority import parse_priority


class Command(StoreCommand):
    """Push one item; the push is audited."""

    help = (
        "Push one item. The value is the argument, a file, or standard input (-), byte for byte. "
        "What begins with - and is no plain number needs the equals sign: --priority=-1e3."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        add_value(parser)
        parser.add_argument("--priority", metavar="P", help="needed in a priority queue, refused in a FIFO queue")
        add_when(parser)

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Push the value."""
        queue = store.queue(options["queue"])
        given = options["priority"]
        if queue.kind == "fifo":
            if given is not None:
                raise CommandError(f"{queue.name} is a FIFO queue: it takes no --priority.")
            priority = None
        elif given is None:
            raise CommandError(f"{queue.name} is a priority queue: give --priority.")
        else:
            priority = parse_priority(given, queue.priority_type)
        item = self.acts(store).push(
            queue.name, read_value(options), priority=priority, delay=options["delay"], due=options["due"]
        )
        if options["json"]:
            self.print_json({"queue": queue.name, "item": item_shape(item)})
        else:
            print_items(console(self.stdout), [item], store.now())
