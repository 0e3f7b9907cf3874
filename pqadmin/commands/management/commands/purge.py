"""`pqadmin purge`: take all ready and delayed items of a queue into the trash."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.commands.times import add_keep
from pqadmin.files.plain_text import items
from queues import Store


class Command(StoreCommand):
    """Purge a queue; the act is audited and can be undone."""

    help = (
        "Take all ready and delayed items of a queue into the trash. It is done at once, however many there are. "
        "Leased and dead items stay."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--confirm", required=True, metavar="NAME", help="the queue's name again")
        add_keep(parser)
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Purge the queue and say how to undo it."""
        name = store.queue(options["queue"]).name
        purged = self.acts(store, keep=options["keep"]).purge(
            name, confirm=options["confirm"], reason=options["reason"]
        )
        if options["json"]:
            self.print_json(
                {
                    "queue": name,
                    "items": purged.count,
                    "skipped": purged.skipped,
                    "trash_ids": list(purged.trash_ids),
                    "finished": purged.finished,
                }
            )
        elif not purged.count:
            self.stdout.write(f"{name} held nothing to purge.")
        else:
            done = "are in the trash" if purged.trash_ids else "are gone"
            self.stdout.write(f"Purged {name}: {items(purged.count, done)}.")
            for trash_id in purged.trash_ids:
                self.stdout.write(f"Undo: pqadmin undo {trash_id}")
        if purged.failure is not None:  # after what was done, which is in the trash
            raise purged.failure
