"""`reset_password NAME`."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from pqadmin.commands.base import OwnCommand
from pqadmin.server.management.commands.create_user import add_password, choose_password, prepare_tables


class Command(OwnCommand):
    """Give a user a new password and end the user's sessions. Prints it, or reads one."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the name and where the password comes from."""
        parser.add_argument("name")
        add_password(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Set the password; sessions end because they are bound to the old one."""
        prepare_tables(self)
        try:
            user = User.objects.get(username=options["name"])
        except User.DoesNotExist:
            raise CommandError(f"No user is named {options['name']!r}.") from None
        password = choose_password(user, options)
        user.set_password(password)
        user.save(update_fields=["password"])
        self.stdout.write(f"Changed the password of {user.username}; all sessions of that user have ended.")
        if not options["password_stdin"]:
            self.stdout.write(f"Password, shown once: {password}")
