"""`pqadmin restore_backup`: restore a backup of an embedded store."""

from pqadmin.commands.arguments import Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.format import size
from pqadmin.files.shapes import backup_shape
from queues.admin import restore_backup


class Command(StoreCommand):
    """Restore a backup to a place without a store.

    The store's folder must be absent or empty: move the old store away first, with everything that uses it stopped. The
    backup stays as it is.
    """

    on_servers = False
    arguments = (Argument("backup", metavar="BACKUP", help="the folder of the backup"),)
    creates_store = True

    def run_at(self, url: str, options: Options) -> None:
        """Restore the backup."""
        backup = options["backup"]
        restored = restore_backup(backup, url)
        line = f"Restored {backup} to {url} ({size(restored.size)})."
        self.answer(backup_shape(url, backup, restored), line)
