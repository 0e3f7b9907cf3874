"""`pqadmin reprioritize`: give items another priority, or another place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.item_command import ItemCommand
from queues import Acts, Changed, Store
from queues.model.priority import parse_priority


class Command(ItemCommand):
    """Give items another priority, shift theirs, or bring them to the front or the back."""

    help = "Give items another priority or place: a number, theirs shifted by one, the front, or the back."
    done = "have a new place"

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        super().add_own_arguments(parser)
        place = parser.add_mutually_exclusive_group(required=True)
        place.add_argument("--priority", metavar="P", help="the new priority")
        place.add_argument("--shift", metavar="N", help="add N to each one's priority: --shift=-5")
        place.add_argument("--front", action="store_true", help="to the front, one behind the other as they stood")
        place.add_argument("--back", action="store_true", help="to the back, likewise")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Read the priority by the queue's type, then act."""
        queue = store.queue(options["queue"])
        for option in ("priority", "shift"):
            if options[option] is not None:
                if queue.kind == "fifo":
                    raise CommandError(f"{queue.name} is a FIFO queue: its items have no priority.")
                options[option] = parse_priority(options[option], queue.priority_type)
        super().run(store, options)

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Re-prioritize the items."""
        place: Any = "front" if options["front"] else "back" if options["back"] else None
        return acts.reprioritize(name, ids, priority=options["priority"], shift=options["shift"], place=place, **shared)
