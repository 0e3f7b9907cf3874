"""`pqadmin ack`: say that leased items are done."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.files.plain_text import items
from queues import Store
from queues.errors import StaleLease


class Command(StoreCommand):
    """Acknowledge leases by their tokens; doing it again changes nothing."""

    help = "Say that leased items are done: they are gone for good. Acknowledging again changes nothing."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("tokens", nargs="+", metavar="TOKEN", help="at most 1,000")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Acknowledge the leases; stale ones are named, and end the command with an error."""
        queue = store.queue(options["queue"])
        tokens = options["tokens"]
        stale = queue.ack_many(tokens)
        if options["json"]:
            self.print_json({"queue": queue.name, "acked": len(tokens) - len(stale), "stale": stale})
        else:
            self.stdout.write(f"{queue.name}: {items(len(tokens) - len(stale), 'are done')}.")
        if stale:
            raise StaleLease(f"These leases are over, and somebody else may hold the items: {', '.join(stale)}")
