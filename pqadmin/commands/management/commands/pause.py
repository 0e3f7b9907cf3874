"""`pqadmin pause`: stop taking from a queue."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import pause_shape
from pqadmin.commands.store_command import StoreCommand
from pqadmin.commands.times import moment
from queues import Store


class Command(StoreCommand):
    """Stop taking from a queue; pushing goes on."""

    help = "Stop taking from a queue, with a reason; pushing goes on."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--reason", required=True, help="why, for everybody who looks at the queue")
        parser.add_argument(
            "--until",
            type=moment,
            metavar="TIME",
            help="resume by itself at this time, ISO 8601; without a zone it is UTC",
        )

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Pause the queue."""
        self.acts(store).pause(options["queue"], reason=options["reason"], until=options["until"])
        queue = store.queue(options["queue"])
        if options["json"]:
            self.print_json({"queue": queue.name, "pause": pause_shape(queue.pause_state, store.now())})
        else:
            self.stdout.write(f"Paused {queue.name}.")
