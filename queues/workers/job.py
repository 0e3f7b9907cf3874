"""Jobs: what a handler is given, how it completes one itself, and how it says that it was stopped half way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from queues.kv.port import Transaction
from queues.model.item import Item
from queues.operations.lease import Lease
from queues.store import Store

T = TypeVar("T")


class Complete(Protocol):
    """Acknowledges an item in the transaction of a function."""

    def __call__(self, fn: Callable[[Transaction], T], /) -> T:
        """Return what the function returned."""


class Stopped(Exception):
    """Raised by a handler that ends early because `job.stopping()` is true.

    A stop is not a failure: the item is back at its place at once, and the lease counts as no attempt. Raised while the
    pool goes on, it is an error as any other: the pool would lease the item again at once, for ever.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a handler is given."""

    #: The queue's name when the item was leased.
    queue: str
    #: The item; `item.attempts` says how often it was leased, this time included.
    item: Item
    #: Whether the pool is stopping: a long handler may then end early by raising `Stopped`.
    stopping: Callable[[], bool]
    #: The lease, as it began: it is extended for as long as the handler runs.
    lease: Lease
    #: The pool's open store.
    store: Store
    _complete: Complete

    def complete(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn(tr)` and acknowledge the item in one transaction, and return what `fn` returned.

        All of it happens, or nothing. As with `Store.transact`, `fn` may run more than once, and every verb in it needs
        its `tr`. After it the pool acknowledges nothing, whatever the handler still does. Raises `StaleLease`, before
        `fn` runs, when another worker has taken the item: the handler has nothing left to do then. Raises
        `RuntimeError` when it has returned before; after an error it may be called again.
        """
        return self._complete(fn)
