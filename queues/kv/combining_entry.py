"""One request on its way to be served with others: how far it is, and who is told of its answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from queues.kv.port import Refused, Server, Ticket
from queues.kv.wakeup import chain


class State(Enum):
    """How far a request is."""

    WAITING = "may be taken back"
    TAKEN = "its batch is under way"
    ANSWERED = "done"


class Entry:
    """One request on its way, and who is told of its answer: a thread that sleeps, or a ticket's landing."""

    __slots__ = (
        "_turn",
        "abandoned",
        "answer",
        "error",
        "leads",
        "others",
        "request",
        "server",
        "state",
        "ticket",
        "told",
    )

    def __init__(self, server: Server[Any, Any], request: Any, ticket: Ticket | None = None) -> None:
        self.server = server
        self.request = request
        #: What lands when no thread waits for the answer.
        self.ticket = ticket
        self.state = State.WAITING
        #: Whether its thread is to serve the next batch.
        self.leads = False
        #: Whether its thread was interrupted while it was being served, so that it must not wait again.
        self.abandoned = False
        self.answer: Any = None
        self.error: BaseException | None = None
        #: Whether its thread has something to do: to go on with the answer, or to serve others.
        self.told = False
        #: Wakes the next thread of the batch, at each step one.
        self.others: Iterator[object] = iter(())
        self._turn = threading.Lock()
        self._turn.acquire()

    def tell(self) -> None:
        """Wake the thread."""
        self.told = True
        self._turn.release()

    @classmethod
    def chain(cls, entries: Sequence[Entry]) -> Iterator[object]:
        """Return what wakes these threads, at each step one; each goes on with it when it is awake."""
        others = chain([entry._turn.release for entry in entries])  # noqa: SLF001 - its own
        for entry in entries:
            entry.told = True
            entry.others = others
        return others

    def heed(self, timeout: float = -1) -> None:
        """Sleep until told something."""
        if self._turn.acquire(timeout=timeout):
            self.told = False

    def settle(self, answer: Any) -> None:
        """Keep what the server says."""
        if isinstance(answer, Refused):
            self.error = answer.error
        else:
            self.answer = answer

    def told_ticket(self) -> Ticket | None:
        """Return its ticket with what came of it; None when a thread waits."""
        ticket = self.ticket
        if ticket is not None:
            ticket.answer, ticket.error = self.answer, self.error
        return ticket

    def result(self) -> Any:
        """Return the answer, or raise what there is instead."""
        error = self.error
        if error is None:
            return self.answer
        try:
            raise error
        finally:
            del error
