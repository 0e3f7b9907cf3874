"""`create_user NAME --role viewer|operator|admin`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, transaction

from pqadmin.accounts.passwords import new_password
from pqadmin.accounts.roles import GROUPS, Role, grant
from pqadmin.server import first_start


class Command(BaseCommand):
    """Makes a user with one role."""

    help = "Create a user with a role; prints a password that the site made up, or reads one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the name, the role and where the password comes from."""
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=[role.value for role in GROUPS])
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password's line from standard input"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the user, wholly or not at all."""
        prepare_tables(self)
        user = User(username=options["name"])
        password = read_password(user) if options["password_stdin"] else new_password()
        try:
            user.set_password(password)
            user.full_clean()
            with transaction.atomic():
                user.save(force_insert=True)
                grant(user, Role(options["role"]))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        except IntegrityError:
            raise CommandError(f"A user named {user.username!r} exists.") from None
        self.stdout.write(f"Created {user.username} ({options['role']}).")
        if not options["password_stdin"]:
            self.stdout.write(f"Password, shown once: {password}")


def prepare_tables(command: BaseCommand) -> None:
    """Make what a first start makes, and show its admin's password; raises CommandError."""
    try:
        admin = first_start.prepare()
    except first_start.CannotStart as error:
        raise CommandError(str(error)) from None
    if admin is not None:
        command.stdout.write(f"First start: created {admin.name} (admin).\nPassword, shown once: {admin.password}")


def read_password(user: User) -> str:
    """Return the first line of standard input if it will do as the user's password; raises CommandError."""
    password = sys.stdin.readline().rstrip("\r\n")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    return password
