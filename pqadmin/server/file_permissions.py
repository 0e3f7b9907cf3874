"""Permissions of what the site keeps: its data folder 0700, the files in it 0600, whatever the umask is."""

import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from pqadmin.conf import secret_key

log = logging.getLogger(__name__)

#: The file by which starts at the same time wait for each other.
MARK = ".starting"
#: What SQLite writes beside its file; it gives these the file's rights, but they may be there from before.
_BESIDE = ("", "-wal", "-shm", "-journal")
#: What may be there before the first start: a store, and what a file system has in its own root.
_BEFORE = {"store", "lost+found"}


def protect(data: Path) -> None:
    """Create data folder and tables, and remove rights of other users; raises OSError.

    What belongs to another user cannot be repaired; a warning says so.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(data)
    if _narrow(data, 0o700):
        log.warning(
            "A store that a group shares belongs in a folder of its own outside %s: make it by "
            "“install -d -g GROUP -m 2770 FOLDER”, and set PQADMIN_STORE.",
            data,
        )
    _narrow(data / MARK, 0o600)
    for table in _tables():
        with contextlib.suppress(OSError):  # the database says by itself what keeps it from its file
            os.close(os.open(table, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for beside in _BESIDE:
            _narrow(table.with_name(table.name + beside), 0o600)
    if _narrow(data / secret_key.FILE, 0o600):
        log.warning(
            "The secret key %s could be read by other users, which lets them sign sessions: stop the site, delete the "
            "file and start again if you do not trust them.",
            data / secret_key.FILE,
        )


def _refuse_foreign(data: Path) -> None:
    """Raise OSError for a folder that is not the site's, such as `/var`.

    Before the first start other users may open it only as long as it holds nothing.
    """
    there = {path.name for path in data.iterdir()}
    own = {MARK, secret_key.FILE, *(table.name for table in _tables() if table.parent == data)}
    if there & own or there <= _BEFORE or not data.stat().st_mode & 0o077:
        return
    raise OSError("it holds files of other programs, and other users may open it; set PQADMIN_DATA")


def _narrow(path: Path, most: int) -> bool:
    """Take away the rights beyond `most`; return whether there were any."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    now = stat.S_IMODE(found.st_mode)
    wanted = now & ~(0o777 & ~most)
    if now == wanted:
        return False
    if found.st_uid == os.geteuid():
        path.chmod(wanted)
        log.warning("%s had the rights %04o, and has %04o now.", path, now, wanted)
    else:
        log.warning("%s has the rights %04o and belongs to another user: chmod %04o it.", path, now, wanted)
    return True


def _tables() -> Iterator[Path]:
    for database in settings.DATABASES.values():
        name = str(database["NAME"])
        if database["ENGINE"] == "django.db.backends.sqlite3" and not name.startswith((":memory:", "file:")):
            yield Path(name)
