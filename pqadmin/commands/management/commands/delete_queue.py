"""`pqadmin delete_queue`: take a queue with all its items into the trash."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from queues import Store


class Command(StoreCommand):
    """Delete a queue; the act is audited and can be undone."""

    help = "Take a queue with all its items into the trash."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--confirm", required=True, metavar="NAME", help="the queue's name again")
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Delete the queue and say how to undo it."""
        queue = store.queue(options["queue"])
        trash_id = self.acts(store).delete_queue(
            queue.name, confirm=options["confirm"], expect_id=queue.id, reason=options["reason"]
        )
        if options["json"]:
            self.print_json({"queue": queue.name, "trash_id": trash_id})
            return
        self.stdout.write(f"{queue.name} is in the trash with all its items.")
        self.stdout.write(f"Undo: pqadmin undo {trash_id}")
