"""The command line: `pqadmin COMMAND` and `manage.py COMMAND` are the same."""

import os
import sys
from typing import NoReturn

from pqadmin.commands import stop_signals
from pqadmin.commands.error_line import asks_json, json_error
from pqadmin.commands.exit_codes import Exit


def main(argv: list[str] | None = None) -> None:
    """Run the command in `argv`; a setting that cannot be used ends with exit code 2."""
    if sys.stdout is None:
        sys.exit("Standard output is closed: nothing was done. Send it to a file, or /dev/null.")
    arguments = sys.argv if argv is None else argv
    try:
        _run(arguments)
    except SystemExit as ended:
        if ended.code != Exit.INTERRUPTED or not stop_signals.only_sigint():
            raise
    except KeyboardInterrupt:  # before the command handles it, as while it is imported
        _fail(arguments, "Interrupted", "Interrupted.")
    else:
        return
    _die_of_interrupt()


def _run(arguments: list[str]) -> None:
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
    from pqadmin.conf import environment

    used = os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
    try:
        environment.read(os.environ)
    except environment.BadSetting as error:
        _fail(arguments, "UsageError", f"pqadmin: {error}")
        raise SystemExit(Exit.USAGE) from None
    from pqadmin.commands.help import Commands  # after the settings are known to be good

    Commands(arguments, settings_of_site=used == "pqadmin.settings").execute()


def _fail(arguments: list[str], code: str, told: str) -> None:
    sys.stderr.write((json_error(code, told) if asks_json(arguments) else told) + "\n")


def _die_of_interrupt() -> NoReturn:
    """End by SIGINT, once all is closed: a shell that runs a script or a loop ends that too."""
    sys.excepthook = lambda *told: None
    raise KeyboardInterrupt
