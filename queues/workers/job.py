"""Job: the argument of a handler, which may complete it itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from queues.kv.port import Transaction
from queues.model.item import Item
from queues.operations.lease import Lease
from queues.store import Store

T = TypeVar("T")


class Stopped(Exception):
    """Raised by a handler that ends early because `job.stopping()` is true.

    A stop is not a failure: the item returns to its place at once, and the lease counts as no attempt. Raised while the
    pool is not stopping, it is an error like any other: the pool would lease the item again at once, for ever.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Job:
    """A leased item, as a handler gets it."""

    #: The queue's name when the item was leased.
    queue: str
    #: The item; `item.attempts` is the number of its leases, this one included.
    item: Item
    #: Whether the pool is stopping: a long handler may then end early by raising `Stopped`.
    stopping: Callable[[], bool]
    #: The lease, as it began; it is extended while the handler runs.
    lease: Lease
    #: The pool's open store.
    store: Store
    _complete: Callable[[Callable[[Transaction], Any]], Any]

    def __repr__(self) -> str:
        return f"<Job of {self.queue!r}: item {self.item.id}, attempt {self.item.attempts}>"

    def complete(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn(tr)` and acknowledge the item in one transaction, and return what `fn` returned.

        All of it happens, or nothing. As with `Store.transact`, `fn` may run more than once, and every verb in it needs
        its `tr`. After it the pool acknowledges nothing, even if the handler fails. Raises `StaleLease`, before `fn`
        runs, when another worker has taken the item: the handler has nothing left to do then. Raises `RuntimeError`
        after a call that succeeded; after an error it may be called again.
        """
        result: T = self._complete(fn)
        return result
