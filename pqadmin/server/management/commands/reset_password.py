"""`reset_password NAME`."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from pqadmin.server.management.commands.create_user import add_password, choose_password
from pqadmin.server.site_command import SiteCommand


class Command(SiteCommand):
    """Give a user a new password and end the user's sessions. Prints it, or reads one."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the name and where the password comes from."""
        super().add_arguments(parser)
        parser.add_argument("name")
        add_password(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Set the password; sessions end because they are bound to the old one."""
        self.prepare_tables()
        try:
            user = User.objects.get(username=options["name"])
        except User.DoesNotExist:
            raise CommandError(f"No user is named {options['name']!r}.") from None
        password = choose_password(user, options)
        user.set_password(password)
        user.save(update_fields=["password"])
        shown = [] if options["password_stdin"] else [f"Password, shown once: {password}"]
        if not user.is_active:
            shown.append(f"{user.username} is deactivated and cannot sign in: an admin reactivates users at /people/.")
        self.answer(
            {"user": user.username, "password": None if options["password_stdin"] else password},
            f"Changed the password of {user.username}; all sessions of that user have ended.",
            *shown,
        )
