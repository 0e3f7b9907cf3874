"""Damage of a store's file, looked for before LMDB maps it: what the map cannot give ends the process.

A file that is shorter than its meta page says, or that a process died of, is first read whole by a child process.
"""

import contextlib
import logging
import os
from pathlib import Path

from queues.kv.embedded import write_ahead_log
from queues.kv.embedded.integrity_check import find_damage
from queues.kv.embedded.meta_pages import MetaPages
from queues.kv.errors import StoreDamaged, StoreUnavailable

log = logging.getLogger("queues.kv")

#: Lies beside a file that a process died of, until it was read whole.
SUSPECT = "suspect"


def refuse_empty(folder: Path, data: Path) -> None:
    """Raise `StoreDamaged` for an empty file that is not being created: its log is there before it."""
    with contextlib.suppress(FileNotFoundError):
        if not data.stat().st_size and not (folder / write_ahead_log.NAME).exists():
            raise damaged(str(folder), "its file data.mdb is empty")


def check(folder: Path, data: Path, *, opened_before: bool) -> None:
    """Raise `StoreDamaged` for a file that must not be mapped; nothing is done where there is none."""
    try:
        needed, size = _needed(data), data.stat().st_size
    except FileNotFoundError:
        return
    if size == 0:
        if opened_before:
            raise damaged(str(folder), "its file data.mdb is empty")
        return
    if needed is None:
        return  # LMDB itself says that this is none of its files
    mark = folder / SUSPECT
    if size >= needed and not mark.exists():
        return
    found = find_damage(str(folder))
    if found:
        raise damaged(str(folder), found)
    if found is None:
        if size < needed:
            raise StoreUnavailable(
                "The file of the store {path} is shorter than it should be, and could not be read whole to see what is "
                "missing; the log says why. Nothing was changed.",
                path=str(folder),
            )
        return
    if size < needed:  # what is missing was never written, nor is it ever read
        with data.open("r+b") as file:
            os.posix_fallocate(file.fileno(), size, needed - size)
    with contextlib.suppress(OSError):
        mark.unlink(missing_ok=True)


def refuse_cut_off(folder: Path, data: Path) -> None:
    """Raise `StoreDamaged` for a file that is shorter than its meta page says, and that nothing writes."""
    needed = _needed(data)
    if needed is not None and data.stat().st_size < needed:
        raise damaged(str(folder), "its file data.mdb was cut off")


def verify(folder: Path, of: str | None = None, *, private: bool = False, recovered: bool = True) -> None:
    """Have a child process read all of a store, or of a `private` copy `of` one.

    A file is not damaged that is not `recovered` yet. Raises `StoreDamaged`, and `StoreUnavailable` when it could not
    be read; the log says why.
    """
    refuse_empty(folder, folder / "data.mdb")
    path = of or str(folder)
    found = find_damage(str(folder), private=private)
    if found and not recovered and write_ahead_log.WriteAheadLog.holds_records(folder):
        log.warning(
            "The store %s was not read whole: its log holds transactions, which have to be executed again first, by a "
            "program that may write and opens it once the rest are stopped (%s)",
            path,
            found,
        )
        found = None
    if found is None:
        raise StoreUnavailable(
            "The file of the store {path} could not be read whole to look for damage; the log says why. "
            "Nothing was changed.",
            path=path,
        )
    if found:
        raise damaged(path, found)


def damaged(path: str, reason: str) -> StoreDamaged:
    """Return the error that says that a store is damaged, and what to do."""
    return StoreDamaged(
        "The store {path} is damaged: {reason}. Restore a backup into another folder, and keep the damaged one.",
        path=path,
        reason=reason,
    )


def _needed(data: Path) -> int | None:
    """Return the bytes that a file has to have by its newest meta page; None: it has none."""
    with data.open("rb") as file:
        try:
            pages = MetaPages.read(file.fileno())
        except EOFError:
            return 1 << 62
    return None if pages is None else pages.needed
