"""Permissions of a store's files: the owner's alone, and the group's where the folder lets its group write.

They do not depend on the umask. A folder that was made for a group (mode 2770, say) is shared by that group; in any
other one the files are for the user that made them.
"""

import contextlib
import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)

#: Of a folder that a store makes for itself.
FOLDER = 0o700
_OWN, _SHARED = 0o600, 0o660


def file_mode(folder: Path) -> int:
    """Return the mode of the store's files in this folder. Raises OSError."""
    return _SHARED if folder.stat().st_mode & stat.S_IWGRP else _OWN


def open_file(path: Path, *, size: int = 0) -> int:
    """Open a file of the store for reading and writing, made if it is not there. Raises OSError.

    It gets real blocks for `size` bytes: to write into a hole of a mapped file would kill the process on a full disk.
    """
    mode = file_mode(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        _settle(path, mode)
        found = os.fstat(descriptor)
        if min(found.st_size, found.st_blocks * 512) < size:  # of release 0.1, it may be shorter
            os.posix_fallocate(descriptor, 0, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def settle(path: Path) -> None:
    """Give a file of the store the rights that it should have, if it is there and ours. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        _settle(path, file_mode(path.parent))


def warn_of_writers(folder: Path) -> None:
    """Warn of a folder in which every user may write: such a user could replace the store. Raises OSError."""
    if folder.stat().st_mode & stat.S_IWOTH:
        log.warning("every user of this machine may write in the store's folder %s: chmod o-w it", folder)


def _settle(path: Path, mode: int) -> None:
    found = path.stat()
    now = stat.S_IMODE(found.st_mode)
    if now == mode:
        return
    if found.st_uid == os.geteuid():
        path.chmod(mode)
    elif now & ~_SHARED:
        log.warning("%s has the rights %04o, and belongs to another user: chmod %04o it", path, now, mode)
