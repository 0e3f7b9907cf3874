"""`pqadmin create_queue`: create a queue."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import queue_shape
from pqadmin.commands.store_command import StoreCommand
from queues import Store
from queues.model.priority import TYPES


class Command(StoreCommand):
    """Create a queue; the act is audited."""

    help = "Create a queue."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue", help="1 to 200 letters, digits and . _ : -")
        parser.add_argument("--kind", choices=("priority", "fifo"), default="priority")
        parser.add_argument("--priority-type", choices=TYPES, default="int")

    def may_make_store(self, options: dict[str, Any]) -> bool:
        """Say whether a store that is not there is made."""
        return True

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Create the queue."""
        queue = self.acts(store).create_queue(
            options["queue"], kind=options["kind"], priority_type=options["priority_type"]
        )
        if options["json"]:
            self.print_json(queue_shape(queue))
        else:
            self.stdout.write(f"Created {queue.name}.")
