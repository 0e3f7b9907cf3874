"""`pqadmin undo`: undo an act from its trash entry, or an act on all items."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.files.plain_text import items
from queues import Store
from queues.errors import JobNotFound


class Command(StoreCommand):
    """Undo an act; the undo is audited."""

    help = "Undo an act, by the id that it gave: items and queues are again what they were, where they were."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("id", metavar="ID", help="a trash id, or the job of an act on all items")
        parser.add_argument(
            "--partial", action="store_true", help="leave alone the items that have gone on since, undo the others"
        )
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Undo it and say what came back."""
        acts, name = self.acts(store), options["id"]
        try:
            acts.job(name)
        except JobNotFound:
            undone = acts.undo(name, partial=options["partial"], reason=options["reason"])
        else:
            undone = acts.undo_bulk(name)
        if options["json"]:
            self.print_json({"queue": undone.queue.name, "items": undone.count, "skipped": undone.skipped})
            return
        self.stdout.write(f"Undone in {undone.queue.name}: {items(undone.count, 'are as before')}.")
        if undone.skipped:
            self.stdout.write(f"Left alone: {items(undone.skipped, 'have gone on since')}.")
