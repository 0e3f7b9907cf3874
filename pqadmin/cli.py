"""The command line: `pqadmin COMMAND` and `manage.py COMMAND` are the same."""

import os
import sys

from pqadmin.commands.exit_codes import Exit
from pqadmin.conf import environment


def main(argv: list[str] | None = None) -> None:
    """Run the command in `argv`; a setting that cannot be used ends with exit code 2."""
    if sys.stdout is None:
        sys.exit("Standard output is closed: nothing was done. Send it to a file, or /dev/null.")
    arguments = sys.argv if argv is None else argv
    if "_ARGCOMPLETE" in os.environ:
        from pqadmin.commands.shell_completion import complete

        complete()
    if arguments[1:2] == ["completion"]:  # run by every shell that starts: Django is not set up for it
        from pqadmin.commands.management.commands.completion import Command as Completion

        Completion().run_from_argv(arguments)
        return
    if arguments[1:2] == ["work"]:  # runs a program's handlers, under that program's Django settings: not the site's
        from pqadmin.commands.management.commands.work import Command

        Command().run_from_argv(arguments)
        return
    used = os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
    try:
        environment.read(os.environ)
    except environment.BadSetting as error:
        sys.stderr.write(f"pqadmin: {error}\n")
        raise SystemExit(Exit.USAGE) from None
    from pqadmin.commands.help import Commands  # after the settings are known to be good

    Commands(arguments, settings_of_site=used == "pqadmin.settings").execute()
