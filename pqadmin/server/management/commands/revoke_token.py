"""`revoke_token NAME`."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin import token_lifecycle
from pqadmin.accounts.models import Token
from pqadmin.commands.store_command import os_user
from pqadmin.display.format import visible
from pqadmin.server.site_command import SiteCommand
from pqadmin.site_audit import Author
from pqadmin.store import close_store, get_store
from queues.errors import QueueError, StoreError


class Command(SiteCommand):
    """Revoke a token: its requests are refused and its streams end at once."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the name."""
        super().add_arguments(parser)
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke the token, or change nothing."""
        self.prepare_tables()
        token = Token.objects.filter(name=options["name"], revoked_at=None).first()
        if token is None:
            raise CommandError(f"No valid token is named {visible(options['name'])!r}.")
        try:
            token_lifecycle.revoke(token.pk, by=Author(name=os_user(), via="cli"), now=get_store().now())
        except (QueueError, StoreError) as error:
            raise CommandError(str(error)) from None
        finally:
            close_store()
        self.answer({"token": token.name}, f"Revoked the token {token.name}.")
