"""Backups of an embedded store: a consistent copy of a file in use, and the way back into an empty folder.

A backup is a folder with the one file `data.mdb`: the whole file as it was at one commit, free pages included. LMDB's
compact form would be smaller, but it begins to number commits anew, and with them the order of pushes.
"""

import errno
import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TypeVar

import lmdb

from queues.kv.embedded import file_permissions, write_ahead_log
from queues.kv.embedded.checkpoints import flush
from queues.kv.embedded.damage import SUSPECT, refuse_cut_off, verify
from queues.kv.embedded.failures import translate
from queues.kv.embedded.file_system import utf8_path
from queues.kv.embedded.store import open_embedded
from queues.kv.errors import PathTaken, StoreUnavailable
from queues.kv.port import KeyValueStore

T = TypeVar("T")

_DATA, _LOCK = "data.mdb", "lock.mdb"
#: A new volume may have it (ext4), and counts as empty.
_LOST_AND_FOUND = "lost+found"
#: What an open store keeps beside its file.
_BESIDE = (_LOCK, "turns", write_ahead_log.NAME, write_ahead_log.STATE_NAME, SUSPECT)


def back_up(path: str, to: str, check: Callable[[KeyValueStore], T]) -> T:
    """Copy the store in a folder, while it is in use, to a new folder; return what `check` says of the copy."""
    target = Path(utf8_path(os.path.abspath(to)))  # noqa: PTH100 - a name that is there is refused, a dangling link too
    if os.path.lexists(target):
        raise PathTaken("{to} is there already: name a new folder for the backup. Nothing was changed.", to=to)
    if not (Path(path) / _DATA).exists():
        raise StoreUnavailable("There is no store in {path}.", path=path)
    with closing(open_embedded(path, max_bytes=None, clock=time.monotonic)) as store, _beside(target) as part:
        store.copy_into(str(part))
        return _into_place(part, target, path, check)


def restore(backup: str, path: str, check: Callable[[KeyValueStore], T]) -> T:
    """Put a backup into an absent or empty folder, once `check` has passed on a copy of it; return what that says."""
    if not (Path(backup) / _DATA).is_file():
        raise StoreUnavailable("{backup} is no backup: there is no {data} in it.", backup=backup, data=_DATA)
    utf8_path(os.path.abspath(backup))  # noqa: PTH100 - as it is opened
    target = Path(utf8_path(os.path.realpath(path)))
    if target.exists() and (
        not target.is_dir() or {*target.iterdir()} - {*_parts_in(target), target / _LOST_AND_FOUND}
    ):
        raise PathTaken(
            "{path} is not empty: a backup is restored into an absent or empty folder only. Stop "
            "what uses the store there and move it away first. Nothing was changed.",
            path=path,
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with _inside(target) if target.exists() else _beside(target) as part:
        _copy(backup, part)
        return _into_place(part, target, backup, check)


def _copy(backup: str, part: Path) -> None:
    if any((Path(backup) / name).exists() for name in _BESIDE):  # it was opened as a store, and may be one in use
        with closing(open_embedded(backup, max_bytes=None, clock=time.monotonic)) as store:
            store.copy_into(str(part))
        return
    refuse_cut_off(Path(backup), Path(backup) / _DATA)
    try:
        with lmdb.open(backup, readonly=True, create=False, lock=False) as env:
            env.copy(str(part))
    except lmdb.Error as error:
        raise translate(error, backup) from error


def _beside(target: Path) -> AbstractContextManager[Path]:
    """Make a folder beside a place, to become it by one rename; remove it when it has not."""
    return _temporary(target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.part"))


@contextmanager
def _inside(target: Path) -> Iterator[Path]:
    """Make a folder inside an empty one; remove it at the end.

    The empty one keeps its rights, and may be a file system of its own. One process at a time makes a folder there,
    and first removes those that killed ones left.
    """
    folder = os.open(target, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PathTaken(
                "Another process is restoring a backup into {path}. Nothing was changed.", path=str(target)
            ) from None
        for left in _parts_in(target):
            shutil.rmtree(left, ignore_errors=True)
        with _temporary(target / f".{uuid.uuid4().hex}.part") as part:
            yield part
    finally:
        os.close(folder)


def _parts_in(target: Path) -> list[Path]:
    """Return the folders that restores have made inside a folder: running ones and killed ones."""
    return [path for path in target.iterdir() if re.fullmatch(r"\.[0-9a-f]{32}\.part", path.name)]


@contextmanager
def _temporary(part: Path) -> Iterator[Path]:
    try:
        part.mkdir(mode=0o700)
    except OSError as error:  # callers do not know the folder's own name
        raise OSError(error.errno, error.strerror, str(part.parent)) from error
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _into_place(part: Path, target: Path, of: str, check: Callable[[KeyValueStore], T]) -> T:
    verify(part, of, private=True)
    with closing(open_embedded(str(part), max_bytes=None, clock=time.monotonic)) as store:
        checked = check(store)
    for name in _BESIDE:
        (part / name).unlink(missing_ok=True)
    inside = part.parent == target
    if inside:
        (part / _DATA).chmod(file_permissions.file_mode(target))
    flush(part / _DATA)
    flush(part)
    try:
        if inside:
            (target / _DATA).hardlink_to(part / _DATA)
        else:
            part.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise PathTaken("{target} came to be meanwhile. Nothing was changed.", target=str(target)) from error
    flush(target if inside else target.parent)
    return checked
