"""`pqadmin edit_item`: give an item another value."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.commands.value_argument import add_value, read_value
from queues import Store
from queues.errors import ItemNotFound


class Command(StoreCommand):
    """Give an item another value; it keeps its place."""

    help = "Give an item another value; it keeps its place. Somebody else's edit in between is not overwritten."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("id", metavar="ID")
        add_value(parser)
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Edit the item."""
        queue = store.queue(options["queue"])
        value = read_value(options)
        item = queue.find(options["id"])
        if item is None:
            raise ItemNotFound(f"{queue.name} has no item {options['id']}.")
        changed = self.acts(store).edit_item(
            queue.name, item.id, value, expect=item.value, reason=options["reason"], expect_id=queue.id
        )
        if options["json"]:
            shape = {"queue": queue.name, "items": changed.count, "skipped": changed.skipped}
            self.print_json(shape | {"trash_id": changed.trash_id})
        elif changed.trash_id is None:
            self.stdout.write("The item has this value already.")
        else:
            self.stdout.write(f"{queue.name}: the item has its new value.")
            self.stdout.write(f"Undo: pqadmin undo {changed.trash_id}")
