"""`pqadmin peek`: look at the items at one end of a queue."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.shapes import item_shape
from pqadmin.commands.store_command import ENDS, StoreCommand, whole_number
from pqadmin.commands.tables import console, print_items
from queues import Item, Queue, Store

#: What an item can be.
STATES = ("ready", "delayed", "leased", "dead")


class Command(StoreCommand):
    """Show the items at one end, or those of another state, changing nothing."""

    help = "Show the items at one end of a queue, changing nothing."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--end", choices=ENDS, default="min", help="FIFO: head or tail (default: %(default)s)")
        parser.add_argument(
            "--state",
            choices=STATES,
            default="ready",
            help="delayed: the next due first; leased: the next to expire; dead: the first to die",
        )
        parser.add_argument("-n", type=whole_number, default=1, metavar="N", help="at most N items, up to 1,000")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Show the items, the first to leave first."""
        queue = store.queue(options["queue"])
        items = _items(queue, options["state"], options["end"], options["n"])
        if options["json"]:
            self.print_json({"queue": queue.name, "items": [item_shape(item) for item in items]})
        elif items:
            print_items(console(self.stdout), items, store.now())
        else:
            ready = options["state"] == "ready"
            none = "has nothing ready" if ready else f"has no {options['state']} items"
            self.stdout.write(f"{queue.name} {none}.")


def _items(queue: Queue, state: str, end: str, n: int) -> tuple[Item, ...]:
    if state == "ready":
        return queue.items(end=end, limit=n).items
    if end not in ("min", "head"):
        raise CommandError(f"--end is for ready items; {state} ones are listed by time.")
    pages = {"delayed": queue.delayed, "leased": queue.leased, "dead": queue.dead}
    return pages[state](limit=n).items
