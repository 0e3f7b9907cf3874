"""`create_user NAME --role none|viewer|operator|admin [--grant GLOB=ROLE …]`."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import IntegrityError, transaction
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.passwords import new_password
from pqadmin.accounts.rights import GRANTABLE
from pqadmin.accounts.roles import Role, grant
from pqadmin.commands.base import stdin_line
from pqadmin.server.site_command import SiteCommand
from queues.admin import check_glob
from queues.errors import BadGlob, BadName


class Command(SiteCommand):
    """Create a user with a role; prints a generated password, or reads one."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the name, the role and where the password comes from."""
        super().add_arguments(parser)
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=[role.value for role in Role], help="on all queues")
        parser.add_argument(
            "--grant",
            action="append",
            default=[],
            metavar="GLOB=ROLE",
            help="besides, viewer or operator on the queues that match, such as 'orders:*=operator'; repeatable",
        )
        add_password(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the user, or change nothing."""
        self.prepare_tables()
        user, grants = User(username=options["name"]), dict(read_grant(text) for text in options["grant"])
        password = choose_password(user, options)
        try:
            user.set_password(password)
            user.full_clean()
            with transaction.atomic():
                user.save(force_insert=True)
                grant(user, Role(options["role"]))
                now = timezone.now()
                for glob, role in grants.items():
                    Grant.objects.create(user=user, glob=glob, role=role.value, given_by="", given_at=now)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        except IntegrityError:
            raise CommandError(f"A user named {user.username!r} exists.") from None
        shown = [] if options["password_stdin"] else [f"Password, shown once: {password}"]
        given = {glob: role.value for glob, role in grants.items()}
        self.answer(
            {
                "user": user.username,
                "role": options["role"],
                "grants": given,
                "password": password if shown else None,
            },
            f"Created {user.username} ({options['role']}).",
            *(f"Granted {role} on {glob}." for glob, role in given.items()),
            *shown,
        )


def read_grant(text: str) -> tuple[str, Role]:
    """Return the glob and the role written as GLOB=ROLE; raises CommandError."""
    glob, equals, role = text.rpartition("=")
    if not equals or role not in GRANTABLE:
        raise CommandError(f"--grant {text!r}: write GLOB=viewer or GLOB=operator, such as 'orders:*=operator'.")
    try:
        return check_glob(glob), Role(role)
    except (BadGlob, BadName) as error:
        raise CommandError(f"--grant {text!r}: {error}") from None


def add_password(parser: ArgumentParser) -> None:
    """Declare where the password comes from."""
    parser.add_argument("--password-stdin", action="store_true", help="read the password's line from standard input")


def choose_password(user: User, options: dict[str, Any]) -> str:
    """Return a generated password, or the first line of standard input. Raises CommandError if that is too weak."""
    if not options["password_stdin"]:
        return new_password()
    password = stdin_line("the password")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    return password
