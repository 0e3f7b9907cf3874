"""`pqadmin logout`: forget the token for a site."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands import saved_tokens
from pqadmin.commands.base import OwnCommand


class Command(OwnCommand):
    """Forget the token that login kept for a site. The token itself stays valid: revoke it at the site."""

    requires_system_checks: list[str] = []
    takes_no_server = "This command takes the address as its argument: pqadmin logout https://HOST."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the site."""
        parser.add_argument("url", metavar="URL", help="the site, https://HOST")

    def handle(self, *args: Any, **options: Any) -> None:
        """Forget the token."""
        if not saved_tokens.forget(options["url"]):
            raise CommandError(f"No token is kept for {options['url']}.")
        self.stdout.write(f"The token for {options['url']} is forgotten here.")
