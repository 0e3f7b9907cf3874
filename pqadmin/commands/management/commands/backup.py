"""`pqadmin backup`: copy an embedded store while it is in use."""

from pqadmin.commands.arguments import Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.format import size
from pqadmin.files.shapes import backup_shape
from queues.admin import back_up


class Command(StoreCommand):
    """Copy the embedded store, while it is in use, to a new folder.

    The copy is the store as it was at one moment. The folder appears when the copy is complete. Clusters are backed up
    with fdbbackup.
    """

    on_servers = False
    arguments = (Argument("path", metavar="PATH", help="a folder that does not exist yet"),)

    def run_at(self, url: str, options: Options) -> None:
        """Back the store up, whatever its format."""
        path = options["path"]
        made = back_up(url, path)
        self.answer(backup_shape(url, path, made), f"Backed up {url} to {path} ({size(made.size)}).")
