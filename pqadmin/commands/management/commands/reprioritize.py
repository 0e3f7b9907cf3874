"""`pqadmin reprioritize`: give items another priority, or another place."""

from typing import Any

from pqadmin.commands.arguments import Argument, OneOf, flag, read_priority
from pqadmin.commands.item_command import ItemCommand
from pqadmin.commands.store_command import Options
from queues import Actions, Changed, Queue


class Command(ItemCommand):
    """Give items another priority or place: a priority, their own shifted by a number, the front, or the back."""

    arguments = (
        *ItemCommand.arguments,
        OneOf(
            Argument("--priority", metavar="P", help="the new priority"),
            Argument("--shift", metavar="N", help="add N to each item's priority: --shift=-5"),
            flag("--front", "to the front, in their present order"),
            flag("--back", "to the back, in their present order"),
            required=True,
        ),
    )
    verb = "reprioritize"
    done = "have a new place"

    def change(self, acts: Actions, queue: Queue, options: Options, **more: Any) -> Changed:
        """Read the priority by the queue's type, then act."""
        for name in ("priority", "shift"):
            more[name] = read_priority(queue, options[name], refusal="its items have no priority")
        place = "front" if options["front"] else "back" if options["back"] else None
        return super().change(acts, queue, options, place=place, **more)
