"""`revoke_token NAME`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from pqadmin import token_lifecycle
from pqadmin.accounts.models import Token
from pqadmin.commands.base import OwnCommand
from pqadmin.commands.store_command import os_user
from pqadmin.display.format import visible
from pqadmin.server.management.commands.create_user import prepare_tables
from pqadmin.site_audit import Author
from pqadmin.store import close_store, store_now
from queues.errors import QueueError, StoreError


class Command(OwnCommand):
    """Revoke a token: its requests are refused and its streams end at once."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the name."""
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke the token, or change nothing."""
        prepare_tables(self)
        token = Token.objects.filter(name=options["name"], revoked_at=None).first()
        if token is None:
            raise CommandError(f"No valid token is named {visible(options['name'])!r}.")
        try:
            token_lifecycle.revoke(token.pk, by=Author(name=os_user(), via="cli"), now=store_now())
        except (QueueError, StoreError) as error:
            raise CommandError(str(error)) from None
        finally:
            close_store()
        self.stdout.write(f"Revoked the token {token.name}.")
