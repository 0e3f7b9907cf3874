"""Knows whether this thread is inside a transaction's function, on every engine alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from queues.kv.errors import NestedTransaction


class _Mark(threading.local):
    """One flag per thread."""

    running = False


mark = _Mark()


def in_transaction() -> bool:
    """Tell whether the calling thread runs a function that was given to `transact` or `read`."""
    return mark.running


def refuse_nesting() -> None:
    """Raise `NestedTransaction` when the calling thread is inside a transaction."""
    if mark.running:
        raise NestedTransaction("A transaction was begun inside another one; pass tr= to join the one that is running.")


@contextmanager
def running() -> Iterator[None]:
    """Mark the calling thread as inside a transaction."""
    mark.running = True
    try:
        yield
    finally:
        mark.running = False


def enter() -> None:
    """Mark the calling thread; for loops where a context manager costs too much. Pair with `leave`."""
    mark.running = True


def leave() -> None:
    """Take the calling thread's mark away."""
    mark.running = False
