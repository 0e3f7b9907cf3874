"""The identity and size of a file, asked without its times.

Once a program has asked for a file's times, Linux (6.13 and later) notes the next change of it to the nanosecond. Then
each commit changes the data file's inode, and a flush of the log may write that block, too: a fifth of a small commit.
"""

import ctypes
import os
import struct
from typing import NamedTuple

#: Of linux/stat.h: a path relative to the working directory; the mask of inode and size.
_AT_FDCWD, _STATX_INO_SIZE = -100, 0x300
#: `struct statx`: inode, size; major and minor number of the device.
_STATX = ctypes.c_char * 256
_FIELDS = struct.Struct("=32xQQ88xII")


class FileStatus(NamedTuple):
    """What tells one file from another one, and how many bytes it has."""

    identity: tuple[int, int]
    size: int


def file_status(path: bytes) -> FileStatus:
    """Return the status of the file at a path. Raises OSError."""
    status = _STATX()
    # It failed where the file is gone, and where a container's filter of system calls does not know it.
    if _statx is None or _statx(_AT_FDCWD, path, 0, _STATX_INO_SIZE, status):
        found = os.stat(path)  # noqa: PTH116
        return FileStatus((found.st_dev, found.st_ino), found.st_size)
    inode, size, major, minor = _FIELDS.unpack_from(status)
    return FileStatus((os.makedev(major, minor), inode), size)


def _find() -> "ctypes._NamedFuncPointer | None":
    # With the interpreter's lock held: giving it up and taking it again costs more than the call.
    try:
        statx = ctypes.PyDLL(None).statx
    except (AttributeError, OSError):  # another system
        return None
    statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return statx


_statx = _find()
