"""`create_token NAME --queues PATTERN --verbs VERB,… [--days N] [--rate N] [--owner USER]`."""

from argparse import ArgumentTypeError
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from pqadmin import token_lifecycle
from pqadmin.accounts.caller import QUEUE_VERBS, Verb
from pqadmin.accounts.rights import Role
from pqadmin.commands.arguments import number
from pqadmin.commands.store_command import os_user
from pqadmin.display.format import visible
from pqadmin.server.site_command import SiteCommand
from pqadmin.site_audit import Author
from pqadmin.store import close_store, get_store
from pqadmin.token_lifecycle import token_shape
from queues.errors import QueueError, StoreError


def read_verbs(text: str) -> list[Verb]:
    """Read verbs by commas; `all` are all that are about queues."""
    parts = [part.strip() for part in text.split(",")]
    try:
        return [verb for part in parts for verb in (QUEUE_VERBS if part == "all" else (Verb(part),))]
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: write some of {', '.join(Verb)} by commas, or all") from None


class Command(SiteCommand):
    """Create a token for a program; prints it once, alone on the last line."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what the token may do."""
        super().add_arguments(parser)
        parser.add_argument("name", help="what the audit calls the program: token:NAME")
        parser.add_argument("--queues", required=True, metavar="PATTERN", help="by commas, such as 'orders:*,mail'")
        parser.add_argument(
            "--verbs",
            required=True,
            type=read_verbs,
            metavar="VERB,…",
            help=f"{', '.join(QUEUE_VERBS)}, or all; {Verb.ADMINISTER} for itself",
        )
        days = number(
            int, 1, token_lifecycle.MOST_DAYS, f"a whole number of days, from 1 to {token_lifecycle.MOST_DAYS}"
        )
        parser.add_argument("--days", type=days, metavar="N", help="until it expires (default: never)")
        rate = number(int, 1, token_lifecycle.MOST_RATE, f"a whole number from 1 to {token_lifecycle.MOST_RATE}")
        parser.add_argument("--rate", type=rate, metavar="N", help="requests a second (default: no limit)")
        parser.add_argument("--owner", metavar="USER", help="user that gives it the rights (default: the oldest admin)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the token, or change nothing."""
        self.prepare_tables()
        owner = _owner(options["owner"])
        try:
            token, secret = token_lifecycle.create(
                options["name"],
                owner,
                verbs=options["verbs"],
                queues=token_lifecycle.read_globs(options["queues"]),
                days=options["days"],
                rate=options["rate"],
                by=Author(name=os_user(), via="cli"),
                now=get_store().now(),
            )
        except (QueueError, StoreError) as error:
            raise CommandError(str(error)) from None
        finally:
            close_store()
        ends = "It does not expire" if token.expires_at is None else f"It expires {token.expires_at:%Y-%m-%d %H:%M} UTC"
        self.answer(
            {**token_shape(token), "secret": secret},
            f"Created the token {token.name}. It has no more rights than its owner, {owner.username}.",
            f"{ends}. It is shown once:",
            secret,
        )


def _owner(name: str | None) -> User:
    active = User.objects.filter(is_active=True)
    if name is None:
        admins = active.filter(Q(is_superuser=True) | Q(groups__name=Role.ADMIN.value))
        owner = admins.order_by("pk").first()
    else:
        owner = active.filter(username=name).first()
    if owner is None:
        raise CommandError(
            "No user is an active admin: name the owner by --owner."
            if name is None
            else f"No active user is named {visible(name)!r}."
        )
    return owner
