"""The base of commands about the site of this machine: its users and tokens."""

from django.conf import settings
from django.core.management.base import CommandError

from pqadmin.commands.base import OwnCommand, writing_stdout
from pqadmin.commands.store_command import StoreCommand
from pqadmin.server import first_start


class SiteCommand(StoreCommand):
    """A command on the tables of the site, which prints JSON on demand."""

    has_store = False
    takes_no_server = OwnCommand.takes_no_server

    def prepare_tables(self) -> None:
        """Prepare the site as its first start does, and print its admin's password; raises CommandError."""
        self.watch(settings.PQADMIN_STORE)
        try:
            first_start.prepare(show=self._show, for_command=True)
        except first_start.CannotStart as error:
            raise CommandError(str(error)) from None

    def _show(self, admin: first_start.FirstAdmin) -> None:
        words = (
            f"First start in {settings.PQADMIN_DATA}: created {admin.name} (admin).\n"
            f"Password, shown once: {admin.password}"
        )
        if self.prints_json:
            self.stderr.write(words)
            self.stderr.flush()
        else:
            with writing_stdout(first_start.NOT_MADE):
                self.stdout.write(words)
