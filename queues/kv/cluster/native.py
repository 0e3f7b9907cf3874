"""The client library itself, for what is called so often that the binding's way to it costs more than the call.

Writes only append to the transaction in this process, so the interpreter's lock is kept meanwhile: given up for every
key, it goes to another thread each time, and the one that serves a batch waits in line for it again. A wait gives it up
and sleeps in the library: the binding's way has the network thread take that lock for a callback, and all that the
process asks of the cluster waits with it.
"""

import ctypes
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

#: FoundationDB's numbers: the mutations, and the kind of conflict range.
_ADD, _MAX, _READ = 2, 12, 0


class Writes:
    """The calls that write to a transaction. Keys and values are bytes."""

    __slots__ = ("_add_conflict", "_atomic", "_clear", "_pointer", "_set")

    def __init__(self, transaction: Any) -> None:
        library = _library(transaction.capi)
        self._pointer: int = transaction.tpointer
        self._set = library.fdb_transaction_set
        self._clear = library.fdb_transaction_clear
        self._atomic = library.fdb_transaction_atomic_op
        self._add_conflict = library.fdb_transaction_add_conflict_range

    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair."""
        self._set(self._pointer, key, len(key), value, len(value))

    def clear(self, key: bytes) -> None:
        """Remove one key."""
        self._clear(self._pointer, key, len(key))

    def set_all(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs."""
        write, pointer = self._set, self._pointer
        for key, value in zip(keys, values, strict=True):
            write(pointer, key, len(key), value, len(value))

    def clear_all(self, keys: Sequence[bytes]) -> None:
        """Remove keys."""
        clear, pointer = self._clear, self._pointer
        for key in keys:
            clear(pointer, key, len(key))

    def add(self, key: bytes, delta: bytes) -> None:
        """Add eight little-endian bytes."""
        self._atomic(self._pointer, key, len(key), delta, len(delta), _ADD)

    def max(self, key: bytes, value: bytes) -> None:
        """Raise to eight little-endian bytes."""
        self._atomic(self._pointer, key, len(key), value, len(value), _MAX)

    def conflict_all(self, keys: Sequence[bytes]) -> None:
        """Fail the commit if another transaction writes one of the keys first."""
        conflict, pointer = self._add_conflict, self._pointer
        for key in keys:
            conflict(pointer, key, len(key), key + b"\x00", len(key) + 1, _READ)


@lru_cache(maxsize=1)
def _library(capi: Any) -> Any:
    """Return the same library, called without giving the interpreter's lock up."""
    library = ctypes.PyDLL(capi._name, handle=capi._handle)  # noqa: SLF001 - ctypes has no other names for them
    for name in (
        "fdb_transaction_set",
        "fdb_transaction_clear",
        "fdb_transaction_atomic_op",
        "fdb_transaction_add_conflict_range",
    ):
        theirs, ours = getattr(capi, name), getattr(library, name)
        ours.argtypes, ours.restype = theirs.argtypes, theirs.restype
        if theirs.errcheck is not None:
            ours.errcheck = theirs.errcheck
    return library


def block(future: Any) -> None:
    """Sleep until the binding's future is ready, whatever came of it.

    In the main thread on a lock, as signals are handled there, each wait on one of its own: an interrupted wait leaves
    a callback behind. The binding has one semaphore for all waits of a thread, which that callback would release.
    """
    pointer = getattr(future, "fpointer", None)
    if not pointer:
        return
    if threading.current_thread() is not threading.main_thread():
        future.capi.fdb_future_block_until_ready(pointer)
    elif not future.is_ready():
        ready = threading.Lock()
        ready.acquire()
        future.on_ready(lambda _: ready.release())
        ready.acquire()
