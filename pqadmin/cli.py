"""The command line: `pqadmin COMMAND` and `manage.py COMMAND` are the same."""

import os
import sys

from pqadmin.server import environment


def main(argv: list[str] | None = None) -> None:
    """Run the command in `argv`; a setting that can not be used ends with exit code 2."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
    try:
        environment.read(os.environ)
    except environment.BadSetting as error:
        sys.stderr.write(f"pqadmin: {error}\n")
        raise SystemExit(2) from None
    from pqadmin.help import Commands  # after the settings are known to be good

    Commands(sys.argv if argv is None else argv).execute()
