"""`pqadmin backup`: copy an embedded store while it is in use."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.display.format import size
from queues.tools.backup import back_up


class Command(StoreCommand):
    """Write a consistent copy of an embedded store, which may be in use."""

    help = (
        "Copy the embedded store, while it is in use, to a new folder. The copy is the store as it was at one moment. "
        "The folder appears when the copy is whole. Clusters are backed up with fdbbackup."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("path", metavar="PATH", help="a folder that is not there yet")

    def run_at(self, url: str, options: dict[str, Any]) -> None:
        """Back the store up, whatever its format."""
        made = back_up(url, options["path"])
        if options["json"]:
            self.print_json(
                {
                    "store": url,
                    "backup": options["path"],
                    "store_id": made.store_id,
                    "format": made.format,
                    "bytes": made.size,
                }
            )
        else:
            self.print_line(f"Backed up {url} to {options['path']} ({size(made.size)}).")
