"""The command line: `pqadmin COMMAND` and `manage.py COMMAND` are the same."""

import os
import sys
from importlib import import_module

from pqadmin.conf import environment

#: Commands that run a program's handlers, under that program's Django settings instead of the site's.
_OF_PROGRAMS = ("work",)


def main(argv: list[str] | None = None) -> None:
    """Run the command in `argv`; a setting that can not be used ends with exit code 2."""
    arguments = sys.argv if argv is None else argv
    if arguments[1:2] and arguments[1] in _OF_PROGRAMS:
        module = import_module(f"pqadmin.operations.management.commands.{arguments[1]}")
        module.Command().run_from_argv(arguments)
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
    try:
        environment.read(os.environ)
    except environment.BadSetting as error:
        sys.stderr.write(f"pqadmin: {error}\n")
        raise SystemExit(2) from None
    from pqadmin.commands.help import Commands  # after the settings are known to be good

    Commands(arguments).execute()
