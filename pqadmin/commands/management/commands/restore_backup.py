"""`pqadmin restore_backup`: put a backup of an embedded store in its place."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.display.format import size
from queues.tools.backup import restore_backup


class Command(StoreCommand):
    """Put a backup into the store's folder, which is absent or empty."""

    help = (
        "Put a backup where no store is. The store's folder must be absent or empty: move the old store away first, "
        "with everything that uses it stopped. The backup stays as it is."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("backup", metavar="BACKUP", help="the folder of the backup")

    def may_make_store(self, options: dict[str, Any]) -> bool:
        """Say that the store is made."""
        return True

    def run_at(self, url: str, options: dict[str, Any]) -> None:
        """Restore the backup."""
        backup = options["backup"]
        restored = restore_backup(backup, url)
        if options["json"]:
            self.print_json(
                {
                    "store": url,
                    "backup": backup,
                    "store_id": restored.store_id,
                    "format": restored.format,
                    "bytes": restored.size,
                }
            )
            return
        self.print_line(f"Restored {backup} to {url} ({size(restored.size)}).")
