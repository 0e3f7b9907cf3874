"""Batches: concurrent requests to one queue, executed in one transaction.

A batch knows nothing of verbs: it is handed the function that executes its requests.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queues.errors import QueuePaused
from queues.kv.port import Refused, Transact, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How requests of some kinds are executed: the first of a batch, one at least, in one transaction."""

    run: Callable[[Transaction, Any, Sequence[Any]], Sequence[Any]]
    #: Whether its transactions take from each other: see `Server.contended`.
    contended: bool
    #: What serves its batches.
    batch: "Callable[..., Batch]"
    #: Chooses, before the transaction, the ids and times that requests leave open.
    prepare: Callable[[Any, Sequence[Any]], Sequence[Any]] | None


class Batch:
    """Executes requests of concurrent callers to one queue; the server of the storage port."""

    __slots__ = ("__weakref__", "_execution", "_queue", "contended")

    def __init__(self, queue: Any, execution: Execution) -> None:
        self._queue = queue
        self._execution = execution
        self.contended = execution.contended

    def serve(self, tr: Transaction, requests: Sequence[Any]) -> Sequence[Any]:
        """Execute as many of these requests as fit together; a pause refuses all of them."""
        try:
            return self.execute(tr, self.prepare(requests))
        except QueuePaused as paused:
            return refused(requests, paused)

    def conduct(self, transact: Transact, requests: Sequence[Any]) -> Sequence[Any]:
        """Execute a batch in one transaction, which may be tried again: so it is prepared before."""
        prepared = self.prepare(requests)
        try:
            answers: Sequence[Any] = transact(lambda tr: self.execute(tr, prepared))
        except QueuePaused as paused:
            return refused(requests, paused)
        return answers

    def prepare(self, requests: Sequence[Any]) -> Sequence[Any]:
        """Return the requests with all that they leave open."""
        prepare = self._execution.prepare
        return requests if prepare is None else prepare(self._queue, requests)

    def execute(self, tr: Transaction, prepared: Sequence[Any]) -> Sequence[Any]:
        """Execute the first of these requests, one at least."""
        return self._execution.run(tr, self._queue, prepared)

    def stop(self) -> None:
        """End what it does by itself: nothing."""


def refused(requests: Sequence[Any], paused: QueuePaused) -> list[Refused]:
    """Return the refusal of each request; each caller raises an error of its own."""
    return [Refused(QueuePaused(*paused.args)) for _ in requests]
