"""What LMDB's errors mean to a user, each with the path and what to do."""

import errno
import os

import lmdb

from queues.kv.embedded.damage import damaged
from queues.kv.embedded.permission_errors import refused
from queues.kv.errors import StoreDamaged, StoreError, StoreFull, StoreUnavailable

#: This user may not write here, or no user may, or a file is in the place of a folder.
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


#: What LMDB says of pages that cannot be.
_DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.CursorFullError, lmdb.PanicError)


class EngineFailure(Exception):
    """LMDB refused an operation in a write transaction, which must now be aborted as a whole."""

    def __init__(self, cause: lmdb.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


class FileReplaced(StoreUnavailable):
    """Another file lies where the open one was; the writer opens it before its next commit."""


def is_interrupt(error: BaseException) -> bool:
    """Say whether a signal handler raised this, and no failure of the engine or the file system."""
    if isinstance(error, OSError):
        return error.errno is None  # such as a TimeoutError that a program raises
    return not isinstance(error, (lmdb.Error, MemoryError, StoreError))


def translate(error: Exception, path: str) -> StoreError:
    """Turn an error of LMDB or of the file system into one of ours. Raises what a signal handler raised."""
    if is_interrupt(error):
        raise error
    code = (error.errno if isinstance(error, OSError) else getattr(error, "code", 0)) or 0
    if isinstance(error, lmdb.MapFullError):
        return StoreFull(
            "The store {path} has no room left in its map; nothing was written. Let workers take items, or "
            "open it with a larger limit.",
            path=path,
        )
    if code in _NO_ROOM or isinstance(error, lmdb.DiskError):
        return StoreFull("The disk under the store {path} is full; nothing was written. Make room on it.", path=path)
    if code in _REFUSED or isinstance(error, lmdb.ReadonlyError):
        return refused(path, code, reason(error))
    if isinstance(error, _DAMAGE):
        return damaged(path, reason(error))
    if isinstance(error, (lmdb.InvalidError, lmdb.VersionMismatchError)):
        return StoreDamaged(
            "The store {path} is not a store that this release can read: {reason}. Restore it from a "
            "backup, or choose another folder.",
            path=path,
            reason=reason(error),
        )
    if isinstance(error, lmdb.ReadersFullError):
        return StoreUnavailable("The store {path} has too many readers at once. Close some of its programs.", path=path)
    if isinstance(error, lmdb.LockError):
        return StoreUnavailable(
            "Another process with the number of this one, {pid}, uses the store {path}: both are in containers that "
            "number processes by themselves. Let the containers share one PID namespace.",
            pid=str(os.getpid()),
            path=path,
        )
    if isinstance(error, lmdb.Error) and not code and "already open in this process" in str(error):
        return StoreUnavailable(
            "The store {path} cannot be opened a second time in this process: the process was forked in the middle of "
            "a commit, or another part of the program uses the package lmdb on it. Open it in a new process.",
            path=path,
        )
    if isinstance(error, lmdb.MapResizedError):
        return StoreUnavailable(
            "The store {path} was made larger than this process reserved. Open it here with the larger limit too.",
            path=path,
        )
    if isinstance(error, lmdb.MemoryError):
        return StoreUnavailable(
            "The store {path} could not be mapped into memory. Raise the process's address space limit (ulimit -v).",
            path=path,
        )
    if code in (errno.EMFILE, errno.ENFILE):
        return StoreUnavailable(
            "The store {path} cannot be opened: {reason}. Raise the process's limit of open files (ulimit -n).",
            path=path,
            reason=reason(error),
        )
    return StoreUnavailable(
        "The store {path} cannot be used now: {reason}. Check its disk and folder.", path=path, reason=reason(error)
    )


def reason(error: Exception) -> str:
    """Return why an operation of LMDB or of the file system failed."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str((getattr(error, "code", 0) and getattr(error, "reason", "")) or error)
