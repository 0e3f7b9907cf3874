"""`pqadmin peek`: look at the items at one end of a queue."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.operations.command import ENDS, StoreCommand, whole_number
from pqadmin.operations.shapes import item_shape
from pqadmin.operations.tables import console, print_items
from queues import Store


class Command(StoreCommand):
    """Show the items at one end, changing nothing."""

    help = "Show the items at one end of a queue, changing nothing."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--end", choices=ENDS, default="min", help="FIFO: head or tail (default: %(default)s)")
        parser.add_argument("-n", type=whole_number, default=1, metavar="N", help="at most N items, up to 1,000")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Show the items, the first to leave first."""
        queue = store.queue(options["queue"])
        items = queue.items(end=options["end"], limit=options["n"]).items
        if options["json"]:
            self.print_json({"queue": queue.name, "items": [item_shape(item) for item in items]})
        elif items:
            print_items(console(self.stdout), items)
        else:
            self.stdout.write(f"{queue.name} is empty.")
