"""`pqadmin login`: keep the token for a site."""

import getpass
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands import saved_tokens
from pqadmin.commands.base import OwnCommand, stdin_line
from pqadmin.commands.exit_codes import Exit
from queues import open_store
from queues.admin import check_address
from queues.errors import StoreError


class Command(OwnCommand):
    """Keep the token for a site, for commands with --server: it is read from the terminal or standard input.

    The site is asked first whether it accepts the token.
    """

    requires_system_checks: list[str] = []
    takes_no_server = "This command takes the address as its argument: pqadmin login https://HOST."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the site."""
        parser.add_argument("url", metavar="URL", help="the site, https://HOST")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the token and keep it."""
        url = options["url"]
        if not saved_tokens.is_server(url):
            raise CommandError("Write the address of the site: https://HOST.", returncode=Exit.USAGE)
        try:
            check_address(url, with_token=True)
            token = _token()
            with open_store(url, token=token) as store:
                told = f"{store.caller}: {', '.join(store.verbs)}"
        except StoreError as error:
            raise CommandError(str(error)) from error
        path = saved_tokens.keep(url, token)
        self.stdout.write(f"Logged in to {url} as {told}. The token is in {path}.")


def _token() -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        return stdin_line("the token").strip()
    try:
        return getpass.getpass("Token: ").strip()
    except EOFError:
        return ""
