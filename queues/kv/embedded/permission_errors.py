"""Permission errors: which file or folder keeps a store from being opened or written, and what helps."""

import errno
import os
import pwd
from pathlib import Path

from queues.kv.errors import StoreReadOnly


def refused(path: str, code: int, reason: str) -> StoreReadOnly:
    """Return the error of a store that may not be written: it names the file or folder that is the cause."""
    cause = _cause(Path(path))
    if not _is_folder(cause) and cause in (Path(path), *Path(path).parents):
        return StoreReadOnly(
            "The store {path} cannot be created: {file} is a file, not a folder. Choose another folder.",
            path=path,
            file=str(cause),
        )
    if code == errno.EROFS:
        return StoreReadOnly(
            "The store {path} cannot be written: {reason}. Mount the file system of {file} for writing, or choose "
            "another folder.",
            path=path,
            reason=reason,
            file=str(cause),
        )
    if _is_folder(cause):
        return StoreReadOnly(
            "The store {path} cannot be written: {reason}. Give this user write access to the folder {file}, which "
            "belongs to {owner}.",
            path=path,
            reason=reason,
            file=str(cause),
            owner=_owner(cause),
        )
    return StoreReadOnly(
        "The store {path} cannot be written: {reason}. Give this user read and write access to the file {file}, which "
        "belongs to {owner}.",
        path=path,
        reason=reason,
        file=str(cause),
        owner=_owner(cause),
    )


def _cause(folder: Path) -> Path:
    """Return the first file of the store that this user may not write, else the folder, or what is in its place."""
    while not _is_there(folder) and folder != folder.parent:
        folder = folder.parent
    if not _is_folder(folder) or not _may(folder, os.R_OK | os.X_OK):
        return folder
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file())
    except OSError:
        return folder
    return next((file for file in files if not _may(file, os.R_OK | os.W_OK)), folder)


def _may(path: Path, how: int) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(path, how, effective_ids=effective)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a folder that may not be looked into
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _owner(path: Path) -> str:
    try:
        number = path.stat().st_uid
    except OSError:
        return "?"
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"
