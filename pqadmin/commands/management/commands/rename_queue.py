"""`pqadmin rename_queue`: give a queue another name."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import queue_shape
from pqadmin.commands.store_command import StoreCommand
from queues import Store


class Command(StoreCommand):
    """Rename a queue; its items, its audit and its workers' handles stay."""

    help = "Give a queue another name; its items, its audit and what workers hold of it stay."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("new", metavar="NEW")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Rename the queue."""
        old = store.queue(options["queue"]).name
        queue = self.acts(store).rename_queue(old, options["new"])
        if options["json"]:
            self.print_json(queue_shape(queue))
        else:
            self.stdout.write(f"Renamed {old} to {queue.name}.")
