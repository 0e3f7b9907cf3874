"""`pqadmin depth`: tell how many items queues hold."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.operations.command import StoreCommand
from pqadmin.operations.shapes import depth_shape
from queues import Store


class Command(StoreCommand):
    """Print the exact number of ready items of one queue or of several."""

    help = "Print how many items are ready in a queue, exactly, without counting them."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue", nargs="+", help="one queue prints the number alone; several, a line each")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Read all depths in one transaction, so that their sum is true."""
        queues = [store.queue(name) for name in options["queue"]]
        depths = store.read(lambda tr: [(queue.name, queue.totals(tr=tr)) for queue in queues])
        if options["json"]:
            self.print_json({"depths": [depth_shape(name, totals) for name, totals in depths]})
        elif len(depths) == 1:
            self.stdout.write(str(depths[0][1].ready))
        else:
            for name, totals in depths:
                self.stdout.write(f"{totals.ready}\t{name}")
