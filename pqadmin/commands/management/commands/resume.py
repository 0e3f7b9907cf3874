"""`pqadmin resume`: let items be taken again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from queues import Store


class Command(StoreCommand):
    """Let items be taken from a paused queue again."""

    help = "Let items be taken from a paused queue again."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Resume the queue."""
        self.acts(store).resume(options["queue"])
        name = store.queue(options["queue"]).name
        if options["json"]:
            self.print_json({"queue": name, "pause": None})
        else:
            self.stdout.write(f"Resumed {name}.")
