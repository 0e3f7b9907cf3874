"""`pqadmin attach`: show and use a queue that other programs write."""

from django.core.management.base import CommandError

from pqadmin.commands.arguments import CODEC, KIND, PRIORITY_TYPE, REASON, Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.prefixes import BadPrefixText, parse_prefix, prefix_text
from pqadmin.files.shapes import queue_shape
from queues import Store


class Command(StoreCommand):
    """Show and use a queue that other programs keep in this store. It is kept by FoundationDB's recipes."""

    arguments = (
        Argument("queue", help="the name under which it is shown"),
        Argument(
            "--prefix",
            required=True,
            metavar="P",
            help="""where the items are: a tuple ('("legacy", "jobs")'), 0x and hexadecimal digits, """
            r"or bytes as fdbcli prints them ('\x02legacy\x00')",
        ),
        KIND,
        PRIORITY_TYPE,
        CODEC,
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Attach the queue."""
        try:
            prefix = parse_prefix(options["prefix"])
        except BadPrefixText as error:
            raise CommandError(str(error)) from None
        queue = self.actions(store).attach(
            options["queue"],
            prefix=prefix,
            kind=options["kind"],
            priority_type=options["priority_type"],
            codec=options["codec"],
            reason=options["reason"],
        )
        empty = "" if queue.items(limit=1).items else " It has no items now."
        self.answer(queue_shape(queue), f"Attached {queue.name} at {prefix_text(queue.config.prefix)}.{empty}")
