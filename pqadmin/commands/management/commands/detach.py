"""`pqadmin detach`: forget a queue that other programs write."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import queue_shape
from pqadmin.commands.store_command import StoreCommand
from queues import Store


class Command(StoreCommand):
    """Detach an attached queue; the act is audited."""

    help = "Forget an attached queue. Its items stay where they are; other programs notice nothing."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Detach the queue."""
        queue = store.queue(options["queue"])
        self.acts(store).detach(queue.name, expect_id=queue.id, reason=options["reason"])
        if options["json"]:
            self.print_json(queue_shape(queue))
        else:
            self.stdout.write(f"Detached {queue.name}. Its items stay where they are.")
