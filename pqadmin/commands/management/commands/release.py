"""`pqadmin release`: give leased items back."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import item_shape
from pqadmin.commands.store_command import StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.times import span
from queues import Store


class Command(StoreCommand):
    """Give a leased item back to its place by its token, or let it come back later."""

    help = "Give a leased item back to its place. It may come back after a delay, and is dead after its last attempt."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("token", metavar="TOKEN")
        parser.add_argument("--delay", type=span, metavar="SPAN", help="come back after this span: 90s, 15m, 2h, 1d")
        parser.add_argument("--reason", default="", help="kept with the item if it dies of it")
        parser.add_argument("--no-attempt", action="store_true", help="this lease counts as no attempt")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Release the lease and show the item."""
        queue = store.queue(options["queue"])
        item = queue.release(
            options["token"],
            delay=options["delay"],
            reason=options["reason"],
            count_attempt=not options["no_attempt"],
        )
        if options["json"]:
            self.print_json({"queue": queue.name, "item": item_shape(item)})
        else:
            self.stdout.write(f"{queue.name}: the item is {item.state}.")
            print_items(console(self.stdout), [item], store.now())
