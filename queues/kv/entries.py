"""One request on its way to be served with others: how far it is, and who is told of its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

from queues.kv.port import Landing, Refused, Server
from queues.kv.waking import chain


class State(Enum):
    """How far a request is."""

    WAITING = "may be taken back"
    TAKEN = "its batch is under way"
    ANSWERED = "done"


class Entry:
    """One request on its way, and who is told of its answer: a thread that sleeps, or a landing."""

    __slots__ = (
        "_turn",
        "_withdraw",
        "abandoned",
        "answer",
        "error",
        "landing",
        "leads",
        "others",
        "request",
        "server",
        "state",
        "told",
    )

    def __init__(
        self,
        server: Server[Any, Any],
        request: Any,
        landing: Landing | None = None,
        withdraw: Callable[[Entry], bool] = lambda entry: False,
    ) -> None:
        self.server = server
        self.request = request
        self.landing = landing
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
        self._withdraw = withdraw

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

    def withdraw(self) -> bool:
        """Take the request back; False when it is being served, or was."""
        return self._withdraw(self)

    def settle(self, answer: Any) -> None:
        """Keep what the server says."""
        if isinstance(answer, Refused):
            self.error = answer.error
        else:
            self.answer = answer

    def result(self) -> Any:
        """Return the answer, or raise what there is instead."""
        error = self.error
        if error is None:
            return self.answer
        try:
            raise error
        finally:
            del error
