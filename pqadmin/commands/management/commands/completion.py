"""`pqadmin completion`: the code by which a shell completes pqadmin."""

from typing import Any

from argcomplete.shell_integration import shellcode
from django.core.management.base import CommandParser

from pqadmin.commands.base import OwnCommand


class Command(OwnCommand):
    """Print the code by which a shell completes pqadmin."""

    requires_system_checks: list[str] = []
    takes_no_server = "This command asks no site: it prints code for a shell."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the shell."""
        parser.add_argument("shell", choices=["bash", "zsh", "fish"])

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the code."""
        self.stdout.write(shellcode(["pqadmin"], shell=options["shell"]))
