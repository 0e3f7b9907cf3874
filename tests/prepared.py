"""Data folders for sites of tests, with tables and static files as a first start makes them: a second less each."""

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.programs import run_to_end

#: Where they are made: while tests run a folder of pytest, which removes also what a killed process left there.
parent: Path | None = None
ROOT = Path(__file__).resolve().parents[1]
_MAKE = """
import os
import django
os.umask(0o077)  # as a server's files
django.setup()
from django.core.management import call_command
from pqadmin.server import assets
call_command("migrate", interactive=False, verbosity=0)
assets.prepare()
"""
#: What is copied: neither a key nor an admin.
_PARTS = ("site.sqlite3", "static", "joined")


def prepare(data: Path) -> None:
    """Copy tables and static files into a data folder that has none; a start makes all the rest."""
    if any((data / part).exists() for part in _PARTS):
        return
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for part in _PARTS:
        made = _made(parent) / part
        if made.is_dir():
            shutil.copytree(made, data / part)
        else:
            shutil.copy(made, data / part)


@cache
def _made(where: Path | None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pqadmin-prepared-", dir=where))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
    variables = {"PQADMIN_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "pqadmin.settings", "PYTHONPATH": str(ROOT)}
    run_to_end([sys.executable, "-c", _MAKE], env=clean | variables, check=True)
    return folder
