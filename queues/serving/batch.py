"""Batches: concurrent requests to one queue, executed in one transaction.

A batch knows nothing of verbs: it is handed the function that executes its requests.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from queues.kv.port import Transact, Transaction, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How requests of some kinds are executed: the first of a batch, one at least, in one transaction."""

    run: Callable[[Any, Transaction, Sequence[Any]], Sequence[Any]]
    #: Whether its transactions take from each other: see `Server.contended`.
    contended: bool
    #: What serves its batches.
    batch: "Callable[..., Batch]"
    #: Chooses, before the transaction, the ids and times that requests leave open.
    prepare: Callable[[Any, Sequence[Any]], Sequence[Any]] | None


class Batch:
    """Executes requests of concurrent callers to one queue; the server of the storage port."""

    __slots__ = ("__weakref__", "contended", "execute", "prepare", "queue", "wire")

    def __init__(self, queue: Any, execution: Execution) -> None:
        self.queue = queue
        #: What carries its requests to another process of this machine; None: it executes them itself.
        self.wire: Wire | None = None if queue.foreign is not None else queue.context.wire
        self.contended = execution.contended
        #: Executes the first of some prepared requests, one at least, in a transaction.
        self.execute: Callable[[Transaction, Sequence[Any]], Sequence[Any]] = partial(execution.run, queue)
        #: Returns requests with all that they leave open.
        self.prepare: Callable[[Sequence[Any]], Sequence[Any]] = list
        if execution.prepare is not None:
            self.prepare = partial(execution.prepare, queue)

    def conduct(self, transact: Transact, requests: Sequence[Any]) -> Sequence[Any]:
        """Execute a batch in one transaction, which may be tried again: so it is prepared before."""
        prepared = self.prepare(requests)
        answers: Sequence[Any] = transact(lambda tr: self.execute(tr, prepared))
        return answers

    def stop(self) -> None:
        """End what it does by itself: nothing."""
