"""Combining: requests of one process that wait for the same server are served together, in one transaction.

Whoever comes while nothing of its server is under way serves its own request at once, and pays nothing for the others;
whoever comes meanwhile waits, and all who wait make the next batch. A batch is closed before its transaction begins, so
each request sees whatever was committed before it was made; and it is tried again exactly as it is, so what is
remembered of an attempt whose answer was lost fits it. Answers are handed out when the commit has been answered.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, TypeVar

from queues.kv.errors import (
    Conflict,
    ForkedStore,
    OutcomeUnknown,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    TransactionTooOld,
)
from queues.kv.lifecycle import Lifecycle
from queues.kv.port import Landing, Refused, Server, Transact

R = TypeVar("R")
A = TypeVar("A")

#: Requests of one batch.
MAX_REQUESTS = 200
#: Seconds that an interrupted caller waits for the outcome of a request that is being served.
_OUTCOME = 30.0
#: What is true of every request of a batch alike, so that nobody is served again.
_OF_ALL = (Conflict, ForkedStore, OutcomeUnknown, StoreClosed, StoreUnavailable, TransactionTooOld)


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
        self._turn = threading.Lock()
        self._turn.acquire()
        self._withdraw = withdraw

    def tell(self) -> None:
        """Wake the thread."""
        self.told = True
        self._turn.release()

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


class _Lane:
    """The requests that wait for one server."""

    __slots__ = ("led", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Entry] = deque()
        #: Whether somebody serves them, or was told to.
        self.led = False


class Combiner:
    """The requests of one open store. Thread-safe."""

    def __init__(
        self, transact: Transact, lifecycle: Lifecycle, *, sleep: Callable[[Entry, float], None] = Entry.heed
    ) -> None:
        self._transact = transact
        self._lifecycle = lifecycle
        #: Blocks until the entry is told something.
        self._sleep = sleep
        self._mutex = threading.Lock()
        self._lanes: dict[Server[Any, Any], _Lane] = {}

    def serve(self, server: Server[R, A], request: R) -> A:
        """Have the request served, and return its answer."""
        entry = Entry(server, request)
        try:
            if not self._join(entry):
                self._sleep(entry, -1)
            if entry.leads:
                self._lead(server)
        except BaseException:
            self._abandon(entry)
            raise
        answer: A = entry.result()
        return answer

    def submit(self, server: Server[R, A], request: R, landing: Landing) -> Entry:
        """Have the request served; its entry goes to `landing`. Ends an operation of the lifecycle when it does."""
        entry = Entry(server, request, landing, self._take_back)
        if self._join(entry):
            self._lead_aside(server)
        return entry

    # Who serves

    def _join(self, entry: Entry) -> bool:
        """Stand in line; True when nobody serves this line, so that the newcomer has to."""
        with self._mutex:
            lane = self._lanes.get(entry.server)
            if lane is None:
                lane = self._lanes[entry.server] = _Lane()
            lane.waiting.append(entry)
            if lane.led:
                return False
            lane.led = entry.leads = True
            return True

    def _lead(self, server: Server[Any, Any]) -> None:
        """Serve one batch, then let the first of those who wait serve the next."""
        batch: list[Entry] = []
        try:
            with self._mutex:
                batch = self._take(server)
            self._serve(server, batch)
        finally:
            try:
                self._answer(batch)
            finally:
                head = self._pass_on(server, batch)
            if head is not None and head.landing is not None:
                self._lead_aside(server)

    def _lead_aside(self, server: Server[Any, Any]) -> None:
        """Serve in a thread of our own, as no caller's can: those who wait are not threads."""

        def lead() -> None:
            while True:
                with self._mutex:
                    batch = self._take(server)
                try:
                    self._serve(server, batch)
                finally:
                    self._answer(batch)
                    head = self._pass_on(server, batch)
                if head is None or head.landing is None:
                    return

        try:
            threading.Thread(target=lead, name="pq-combining", daemon=True).start()
        except Exception as error:  # the machine, or its limits, let no other thread begin
            self._turn_away(server, error)

    def _turn_away(self, server: Server[Any, Any], reason: Exception) -> None:
        """Refuse those who wait and are not threads, up to the first who is: that one leads."""
        refused: list[Entry] = []
        with self._mutex:
            lane = self._lanes[server]
            while lane.waiting and lane.waiting[0].landing is not None:
                refused.append(lane.waiting.popleft())
            for entry in refused:
                entry.state, entry.leads = State.ANSWERED, False
                entry.error = StoreUnavailable(f"No thread could be started to serve this request: {reason}.")
            self._appoint(server, lane)
        self._answer(refused)

    def _take(self, server: Server[Any, Any]) -> list[Entry]:
        waiting = self._lanes[server].waiting
        batch = [waiting.popleft() for _ in range(min(len(waiting), MAX_REQUESTS))]
        for entry in batch:
            entry.state, entry.leads = State.TAKEN, False
        return batch

    def _pass_on(self, server: Server[Any, Any], batch: Sequence[Entry]) -> Entry | None:
        """Let the first who waits lead, and return it; those of the batch without an answer wait first.

        But for those whose threads were interrupted meanwhile: they would never lead.
        """
        with self._mutex:
            lane = self._lanes[server]
            for entry in reversed(batch):
                if entry.state is not State.TAKEN:
                    continue
                if entry.abandoned:
                    entry.state = State.ANSWERED
                    entry.tell()
                else:
                    entry.state = State.WAITING
                    lane.waiting.appendleft(entry)
            return self._appoint(server, lane)

    def _appoint(self, server: Server[Any, Any], lane: _Lane) -> Entry | None:
        if not lane.waiting:
            del self._lanes[server]
            return None
        head = lane.waiting[0]
        head.leads = True
        if head.landing is None:
            head.tell()
        return head

    # Serving

    def _serve(self, server: Server[Any, Any], batch: Sequence[Entry]) -> None:
        if not batch:  # whoever was to be served was interrupted
            return
        try:
            self._settle(batch, server.conduct(self._transact, [entry.request for entry in batch]))
        except Exception as error:
            if len(batch) == 1 or isinstance(error, _OF_ALL):
                self._fail(batch, error)
            else:
                self._serve_alone(server, batch)
        except BaseException:
            self._fail(batch, _interrupted())
            raise

    def _serve_alone(self, server: Server[Any, Any], batch: Iterable[Entry]) -> None:
        """Serve each request in a transaction of its own, so that only the guilty one fails."""
        for entry in batch:
            try:
                self._settle([entry], server.conduct(self._transact, [entry.request]))
            except Exception as error:
                self._fail([entry], error)
            except BaseException:
                self._fail([entry], _interrupted())
                raise

    def _settle(self, batch: Sequence[Entry], answers: Sequence[Any]) -> None:
        for entry, answer in zip(batch, answers, strict=False):
            entry.settle(answer)
            entry.state = State.ANSWERED

    def _fail(self, batch: Sequence[Entry], error: Exception) -> None:
        for entry in batch:
            # Each thread raises its own.
            entry.error = type(error)(*error.args) if len(batch) > 1 and isinstance(error, StoreError) else error
            entry.state = State.ANSWERED

    def _answer(self, batch: Iterable[Entry]) -> None:
        """Tell everybody of a batch who has an answer; each landing once."""
        landings: dict[int, tuple[Landing, list[Entry]]] = {}
        for entry in batch:
            if entry.state is not State.ANSWERED:
                continue
            if entry.landing is None:
                entry.tell()
            else:
                landings.setdefault(id(entry.landing), (entry.landing, []))[1].append(entry)
        for landing, entries in landings.values():
            landing.land(entries)
            for _ in entries:
                self._lifecycle.leave()

    # Who gives up

    def _take_back(self, entry: Entry) -> bool:
        with self._mutex:
            if entry.state is not State.WAITING or entry.leads:
                return False
            self._lanes[entry.server].waiting.remove(entry)
            entry.state = State.ANSWERED
        self._lifecycle.leave()
        return True

    def _abandon(self, entry: Entry) -> None:
        """Leave the line, or wait for the outcome of what is being served."""
        with self._mutex:
            taken = entry.abandoned = entry.state is State.TAKEN
            head = None
            lane = self._lanes.get(entry.server)
            if lane is not None and entry in lane.waiting:
                lane.waiting.remove(entry)
                entry.state = State.ANSWERED
                if entry.leads:
                    head = self._appoint(entry.server, lane)
        if head is not None and head.landing is not None:
            self._lead_aside(entry.server)
        if taken:
            self._sleep(entry, _OUTCOME)


def _interrupted() -> OutcomeUnknown:
    return OutcomeUnknown("The thread that served this request was interrupted: look before you repeat it.")
