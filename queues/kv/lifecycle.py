"""Whether a store may be used: open, closed, or carried into a forked child."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queues.kv.errors import ForkedStore, NestedTransaction, StoreClosed, StoreError


class _Mark(threading.local):
    """One flag per thread."""

    running = False


mark = _Mark()


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


class Lifecycle:
    """The state of one open store and the operations that are under way in it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._closed = False
        self._forked = False
        #: Neither; what is asked at every call.
        self.usable = True
        self._under_way = 0
        self._idle = threading.Condition(threading.RLock())
        _alive.add(self)

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Begin and end an operation; raise `NestedTransaction`, `StoreClosed` or `ForkedStore`."""
        refuse_nesting()
        if self._forked:
            raise self.refusal()
        with self._idle:
            if self._closed:
                raise self.refusal()
            self._under_way += 1
        try:
            yield
        finally:
            with self._idle:
                self._under_way -= 1
                if not self._under_way and self._closed:
                    self._idle.notify_all()

    def check(self) -> None:
        """Raise `StoreClosed` or `ForkedStore` when the store may not be used."""
        if not self.usable:
            raise self.refusal()

    @property
    def forked(self) -> bool:
        """Whether this is a forked child's copy of a store."""
        return self._forked

    def close(self) -> bool:
        """Refuse new operations from now on; False when it was closed already."""
        if self._forked:
            return False
        with self._idle:
            was_open = not self._closed
            self._closed = True
            self.usable = False
            return was_open

    def drain(self, timeout: float) -> bool:
        """Wait until no operation is under way; False when the time is up."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._under_way, timeout)

    def mark_forked(self) -> None:
        """Refuse everything: this is a child's copy."""
        self._forked = True
        self.usable = False

    def refusal(self) -> StoreError:
        """Return the error that says why the store may not be used."""
        if self._forked:
            return ForkedStore(
                "The store {url} was opened before this process was forked; open it again in the child.", url=self._url
            )
        return StoreClosed("The store {url} was closed; open it again.", url=self._url)


_alive: weakref.WeakSet[Lifecycle] = weakref.WeakSet()
_in_child: list[Callable[[], None]] = []


def on_fork(forget: Callable[[], None]) -> None:
    """Have `forget` called in every forked child, after all stores have been marked."""
    _in_child.append(forget)


def _after_fork() -> None:
    for lifecycle in list(_alive):
        lifecycle.mark_forked()
    for forget in _in_child:
        forget()


os.register_at_fork(after_in_child=_after_fork)
