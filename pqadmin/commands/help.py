"""The list of commands that `pqadmin` prints: its own, a line each; with `--all` also Django's."""

import contextlib
import io
import logging.config
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import NoReturn

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, ManagementUtility, get_commands, load_command_class
from django.db import DEFAULT_DB_ALIAS, connections

from pqadmin import __version__
from pqadmin.commands.base import print_or_end, program
from pqadmin.commands.error_line import asks_json, json_error
from pqadmin.commands.exit_codes import Exit

#: The commands by task, in the order of the list.
GROUPS = {
    "See what goes on": ("queues", "top", "tail", "depth", "peek", "show"),
    "Push and take": ("push", "pop", "import_items", "export_items"),
    "Work": ("work", "lease", "ack", "extend", "release", "sweep"),
    "Put items right": (
        *("move", "edit_item", "reprioritize", "promote", "reschedule", "retry_dead", "release_items"),
        *("delete_items", "purge", "undo", "jobs"),
    ),
    "Set up and stop queues": (
        *("create_queue", "configure", "targets", "pause", "resume", "rename_queue", "delete_queue"),
        *("attach", "detach"),
    ),
    "Look after the store": ("doctor", "backup", "restore_backup", "copy_store", "load"),
    "The site and its users": ("serve", "create_user", "reset_password", "create_token", "tokens", "revoke_token"),
    "This command line": ("login", "logout", "completion"),
}
#: Width of a line: it fits on every terminal.
WIDTH = 80
#: Engines of the databases that the site's tables can be in.
_DATABASES = ("django.db.backends.sqlite3", "django.db.backends.postgresql")
#: The app with the commands on stores.
_STORES = "pqadmin.commands"
_NAME = max(len(name) for names in GROUPS.values() for name in names)


def summary(name: str) -> str:
    """Return the first sentence of a command's help, up to a colon or semicolon."""
    text = load_command_class(get_commands()[name], name).help
    return re.split(r"[.;:](?:\s|$)", text, maxsplit=1)[0]


def ours() -> str:
    """Return the list of pqadmin's own commands."""
    lines = []
    for group, names in GROUPS.items():
        lines += ["", group, *(f"  {name:<{_NAME}}  {summary(name)}" for name in names)]
    return "\n".join(lines)


class Commands(ManagementUtility):
    """Django's command runner, with our list of commands and our version."""

    def __init__(self, argv: list[str] | None = None, *, settings_of_site: bool = False) -> None:
        super().__init__(argv)
        named = any(word.startswith(("--settings", "--pythonpath")) for word in self.argv)
        self._settings_of_site = settings_of_site and not named
        self.prog_name = program(self.argv[0])

    def main_help_text(self, commands_only: bool = False) -> str:
        """Return our commands, and with `--all` also Django's."""
        # Where the settings do not import, Django's list says why, and only its own commands are known.
        if commands_only or getattr(self, "settings_exception", None) is not None:
            return str(super().main_help_text(commands_only=commands_only))
        program = self.prog_name
        text = (
            f"Usage: {program} COMMAND [OPTIONS]\n\nDurable priority queues and their site, pqadmin {__version__}.\n"
            f"{ours()}\n\n{program} COMMAND --help tells more."
        )
        if "--all" not in self.argv:
            return f"{text}\n{program} help --all lists Django's commands too."
        named = {name for names in GROUPS.values() for name in names}
        rest = sorted(name for name in get_commands() if name not in named)
        return "\n".join([text, "", "Of Django and its parts", *(f"  {name}" for name in rest)])

    def fetch_command(self, subcommand: str) -> BaseCommand:
        """Return a command; end with one line where none has this name."""
        known = get_commands()
        if subcommand in known or getattr(self, "settings_exception", None) is not None:
            return super().fetch_command(subcommand)
        near = get_close_matches(subcommand, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return self._refuse(f"no command is named {subcommand!a}.{hint} See {self.prog_name} help.", near)

    def _refuse(self, why: str, suggestions: Sequence[str] = ()) -> NoReturn:
        told = f"{self.prog_name}: {why}"
        sys.stderr.write((json_error("UsageError", told, suggestions) if asks_json(self.argv) else told) + "\n")
        raise SystemExit(Exit.USAGE)

    def execute(self) -> None:
        """Run the command that is asked for."""
        if self.argv[1:] in (["--version"], ["version"]):
            print_or_end(f"{__version__}\n")
        elif self.argv[1:] == ["--all"]:
            Commands([self.argv[0], "help", "--all"]).execute()
        elif command := self._command_without_apps():
            logging.config.dictConfig(settings.LOGGING)
            apps.populate(())
            command.run_from_argv(self.argv)
        else:
            if self._settings_of_site:
                self._check_database()
            self._execute()

    def _execute(self) -> None:
        if self.argv[1:2] not in ([], ["help"], ["--help"], ["-h"]):
            super().execute()
            return
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            super().execute()
        print_or_end(shown.getvalue())

    def _check_database(self) -> None:
        """End with one line where the site's tables cannot be in the database that DATABASE_URL names."""
        if settings.DATABASES[DEFAULT_DB_ALIAS]["ENGINE"] not in _DATABASES:
            kept = "people and sessions are kept in SQLite or PostgreSQL"
            self._refuse(f"DATABASE_URL: {kept}, sqlite:////PATH or postgres://USER:PASSWORD@HOST/NAME.")
        try:
            connections[DEFAULT_DB_ALIAS]
        except ImproperlyConfigured as error:
            self._refuse(f"DATABASE_URL: the extra postgres is not installed: {error}.")

    def _command_without_apps(self) -> BaseCommand | None:
        """Return the command if it is one on stores that starts sooner without the site's models and pages."""
        name = self.argv[1] if len(self.argv) > 1 else ""
        if (
            not self._settings_of_site
            or not name.isidentifier()
            or find_spec(f"{_STORES}.management.commands.{name}") is None
        ):
            return None
        command = load_command_class(_STORES, name)
        return None if getattr(command, "uses_models", True) else command
