"""`pqadmin attach`: show and use a queue that other programs write."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.shapes import queue_shape
from pqadmin.commands.store_command import StoreCommand
from pqadmin.display.prefixes import BadPrefixText, parse_prefix, prefix_text
from queues import Store
from queues.model.priority import TYPES


class Command(StoreCommand):
    """Attach a subspace in which others keep a queue; the act is audited."""

    help = "Show and use a queue that other programs keep in this store. It is kept by FoundationDB's recipes."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue", help="the name under which it is shown")
        parser.add_argument(
            "--prefix",
            required=True,
            metavar="P",
            help="""where the items lie: a tuple ('("legacy", "jobs")'), 0x and hexadecimal digits, """
            r"or bytes as fdbcli prints them ('\x02legacy\x00')",
        )
        parser.add_argument("--kind", choices=("priority", "fifo"), default="priority")
        parser.add_argument("--priority-type", choices=TYPES, default="int", help="what pushes from here take")
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Attach the queue."""
        try:
            prefix = parse_prefix(options["prefix"])
        except BadPrefixText as error:
            raise CommandError(str(error)) from None
        queue = self.acts(store).attach(
            options["queue"],
            prefix=prefix,
            kind=options["kind"],
            priority_type=options["priority_type"],
            reason=options["reason"],
        )
        if options["json"]:
            self.print_json(queue_shape(queue))
            return
        first = queue.items(limit=1).items
        what = "" if first else " Nothing lies there now."
        self.print_line(f"Attached {queue.name} at {prefix_text(queue.config.prefix)}.{what}")
