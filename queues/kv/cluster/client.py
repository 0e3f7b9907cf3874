"""FoundationDB's client library in this process: loaded on first use, with one network thread, lost in a fork."""

import os
import threading
from pathlib import Path
from typing import Any

import fdb

from queues.kv.cluster.failures import of_opening
from queues.kv.errors import ForkedStore, StoreUnreachable

API_VERSION = 730

_lock = threading.Lock()
#: The process that runs the client's network thread.
_owner: int | None = None


def open_database(cluster_file: str) -> Any:
    """Return the database of a cluster file, the default one for "". Connects in the background.

    Raises `StoreUnreachable` where the library or the file is missing or wrong, `ForkedStore` in a child of a
    process that had opened a cluster: the client does not survive a fork, and cannot be started twice.
    """
    global _owner
    with _lock:
        if _owner is not None and _owner != os.getpid():
            raise ForkedStore(
                "FoundationDB's client was started before this process was forked and does not survive that: "
                "open the first cluster store in the child, or start the child afresh (spawn)."
            )
        _load()
        if cluster_file and not Path(cluster_file).is_file():
            raise StoreUnreachable("The cluster file {path} is not there.", path=cluster_file)
        _owner = os.getpid()
        try:
            return fdb.open(cluster_file or None)
        except fdb.FDBError as error:
            raise of_opening(error, cluster_file) from error


def _load() -> None:
    """Load the library and choose the API version; does nothing the second time."""
    try:
        fdb.api_version(API_VERSION)
    except (OSError, AttributeError) as error:
        raise StoreUnreachable("FoundationDB's client library could not be used: {error}", error=str(error)) from error
    except RuntimeError as error:
        raise StoreUnreachable(
            "FoundationDB's client library does not fit: {error} pqadmin needs version 7.3 of it.", error=str(error)
        ) from error
    except Exception as error:  # the binding raises a bare Exception when it finds no library
        raise StoreUnreachable(
            "FoundationDB's client library (libfdb_c) is not installed on this machine: install version 7.3 of the "
            "FoundationDB clients package, or set LD_LIBRARY_PATH to where it is."
        ) from error


def _forget_lock() -> None:
    global _lock  # one held during the fork stays held in the child
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)
