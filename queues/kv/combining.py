"""Combining: requests of one process that wait for the same server are served together, in one transaction.

Whoever comes while nobody serves its server leads: it serves its own request and those of all who came before its batch
was closed. Whoever comes meanwhile waits, and the first of those who wait leads the next batch. On a cluster, where a
transaction costs as much as dozens of requests, a leader first waits a moment for as many as came for the last batches,
and what conflicts with hardly anybody has two batches under way, each of half of them. A batch is closed before its
transaction begins, so each request sees whatever was committed before it was made; and it is tried again exactly as it
is, so what is remembered of an attempt whose answer was lost fits it. Answers are handed out when the commit has been
answered.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from queues.kv.combining_entry import Entry, State
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
from queues.kv.port import Server, Ticket, Transact
from queues.kv.wakeup import by_landing

R = TypeVar("R")
A = TypeVar("A")

#: Requests of one batch.
MAX_REQUESTS = 200
#: Batches under way at once where they do not take from each other: while one is written down, the next is made.
ABREAST = 2
#: Seconds that a batch is held back at most.
LONGEST_LINGER = 0.005
#: Seconds that an interrupted caller waits for the outcome of a request that is being served.
_OUTCOME = 30.0
#: What is true of every request of a batch alike, so that nobody is served again.
_OF_ALL = (Conflict, ForkedStore, OutcomeUnknown, StoreClosed, StoreUnavailable, TransactionTooOld)


class _Pace:
    """How one server's requests came and went last; what is expected of the next ones."""

    __slots__ = ("crowd", "took")

    def __init__(self) -> None:
        #: How many requests there were together: answered just now, being served, and waiting.
        self.crowd = 0
        #: Seconds from a batch's beginning to its answers.
        self.took = 0.0


class _Lane:
    """The requests that wait for one server."""

    __slots__ = ("appointed", "enough", "gathered", "pace", "served", "under_way", "waiting")

    def __init__(self, pace: _Pace) -> None:
        self.pace = pace
        self.waiting: deque[Entry] = deque()
        #: Whether somebody is about to take the next batch: at most one is.
        self.appointed = False
        #: Batches and requests that are being served.
        self.under_way = self.served = 0
        #: For how many the one who was appointed sleeps; 0 when he does not.
        self.enough = 0
        self.gathered = threading.Lock()
        self.gathered.acquire()


class Combiner:
    """The requests of one open store. Thread-safe."""

    def __init__(
        self,
        transact: Transact,
        lifecycle: Lifecycle,
        *,
        sleep: Callable[[Entry, float], None] = Entry.heed,
        linger: float = 0.0,
        wake: int = MAX_REQUESTS,
    ) -> None:
        self._transact = transact
        self._lifecycle = lifecycle
        #: Blocks until the entry is told something.
        self._sleep = sleep
        self._mutex = threading.Lock()
        self._lanes: dict[Server[Any, Any], _Lane] = {}
        self._paces: WeakKeyDictionary[Server[Any, Any], _Pace] = WeakKeyDictionary()
        #: The share of a batch's time for which the next one is held back until those of the last one are there again:
        #: a transaction costs as much as dozens of requests.
        self._linger = linger
        #: Threads of a batch that are woken at once; each wakes the next one.
        self._wake = wake

    def serve(self, server: Server[R, A], request: R) -> A:
        """Have the request served, and return its answer."""
        entry = Entry(server, request)
        try:
            if not self._join(entry):
                self._sleep(entry, -1)
            while entry.leads:
                if self._lead(server):
                    self._lead_aside(server)
                if entry.state is not State.ANSWERED:  # more came back unserved than a batch holds, and stand before it
                    self._sleep(entry, -1)
            next(entry.others, None)
        except BaseException:
            self._abandon(entry)
            raise
        answer: A = entry.result()
        return answer

    def submit(self, ticket: Ticket) -> None:
        """Have a request served; its ticket goes to its landing. Ends an operation of the lifecycle when it does."""
        server = ticket.server
        assert server is not None
        if self._join(Entry(server, ticket.request, ticket)):
            self._lead_aside(server)

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a request back; False when it is being served, or was, or leads those who wait."""
        with self._mutex:
            lane = None if ticket.server is None else self._lanes.get(ticket.server)
            waiting: Iterable[Entry] = () if lane is None else lane.waiting
            entry = next((entry for entry in waiting if entry.ticket is ticket and not entry.leads), None)
            if lane is None or entry is None:
                return False
            lane.waiting.remove(entry)
            entry.state = State.ANSWERED
        self._lifecycle.leave()
        return True

    # Who serves

    def _join(self, entry: Entry) -> bool:
        """Stand in line; True when nobody serves this line, so that the newcomer has to."""
        with self._mutex:
            lane = self._lanes.get(entry.server)
            if lane is None:
                lane = self._open_lane(entry.server)
            waiting = lane.waiting
            waiting.append(entry)
            if lane.appointed:
                if lane.enough and len(waiting) >= lane.enough:
                    lane.enough = 0
                    lane.gathered.release()
                return False
            if lane.under_way >= _abreast(entry.server):
                return False
            lane.appointed = entry.leads = True
            return True

    def _open_lane(self, server: Server[Any, Any]) -> _Lane:
        pace = self._paces.get(server)
        if pace is None:
            pace = self._paces[server] = _Pace()
        lane = self._lanes[server] = _Lane(pace)
        return lane

    def _lead(self, server: Server[Any, Any]) -> bool:
        """Serve one batch, then let the first of those who wait serve the next; True when that one is no thread."""
        batch: list[Entry] = []
        began = 0.0
        served = False
        try:
            self._gather(server)
            began = time.monotonic()
            with self._mutex:
                self._take(server, batch)
            self._serve(server, batch)
            served = True
        finally:
            # First, so that the next batch is on its way while those of this one are told.
            head, answered = self._pass_on(server, batch, began)
            self._answer(answered)
            aside = head is not None and head.ticket is not None
            if aside and not served:
                self._lead_aside(server)
        return aside

    def _lead_aside(self, server: Server[Any, Any]) -> None:
        """Serve in a thread of our own, as no caller's can: those who wait are not threads."""

        def lead() -> None:
            while self._lead(server):
                pass

        try:
            threading.Thread(target=lead, name="pq-combining", daemon=True).start()
        except Exception as error:  # the machine, or its limits, let no other thread begin
            self._turn_away(server, error)

    def _turn_away(self, server: Server[Any, Any], reason: Exception) -> None:
        """Refuse those who wait and are not threads, up to the first who is: that one leads."""
        refused: list[Entry] = []
        with self._mutex:
            lane = self._lanes[server]
            while lane.waiting and lane.waiting[0].ticket is not None:
                refused.append(lane.waiting.popleft())
            for entry in refused:
                entry.state, entry.leads = State.ANSWERED, False
                entry.error = StoreUnavailable(
                    "No thread could be started to serve this request: {reason}.", reason=str(reason)
                )
            lane.appointed = False
            self._appoint(server, lane)
        self._answer(refused)

    def _gather(self, server: Server[Any, Any]) -> None:
        """Hold the next batch back for a moment, until as many are there as came for the last ones."""
        if not self._linger:
            return
        with self._mutex:
            lane = self._lanes[server]
            enough = min(MAX_REQUESTS, lane.pace.crowd // _abreast(server))
            if len(lane.waiting) >= enough:
                lane.enough = 0
                return
            lane.enough = enough
        if lane.gathered.acquire(timeout=min(LONGEST_LINGER, self._linger * lane.pace.took)):
            return
        with self._mutex:
            if not lane.enough:  # it was told just now
                lane.gathered.acquire(blocking=False)
            lane.enough = 0

    def _take(self, server: Server[Any, Any], batch: list[Entry]) -> list[Entry]:
        """Fill the next batch, and close it."""
        lane = self._lanes[server]
        batch.extend(lane.waiting.popleft() for _ in range(min(len(lane.waiting), MAX_REQUESTS)))
        for entry in batch:
            entry.state, entry.leads = State.TAKEN, False
        lane.appointed = False
        lane.under_way += 1
        lane.served += len(batch)
        return batch

    def _pass_on(
        self, server: Server[Any, Any], batch: Sequence[Entry], began: float
    ) -> tuple[Entry | None, list[Entry]]:
        """Let the first who waits lead; return it, and those of the batch who are to be told.

        Those without an answer wait first, but for those whose threads were interrupted meanwhile: they would never
        lead.
        """
        if not batch:  # interrupted before: see `_abandon`
            return None, []
        with self._mutex:
            lane = self._lanes[server]
            answered = []
            for entry in reversed(batch):
                if entry.state is State.TAKEN and not entry.abandoned:
                    entry.state = State.WAITING
                    lane.waiting.appendleft(entry)
                else:
                    entry.state = State.ANSWERED
                    answered.append(entry)
            lane.under_way -= 1
            lane.served -= len(batch)
            lane.pace.crowd = len(answered) + len(lane.waiting) + lane.served
            lane.pace.took = time.monotonic() - began
            return self._appoint(server, lane), answered[::-1]

    def _appoint(self, server: Server[Any, Any], lane: _Lane) -> Entry | None:
        """Have the first who waits take the next batch, if it may be taken now and nobody is about to."""
        if not lane.waiting:
            if not lane.under_way:
                del self._lanes[server]
            return None
        if lane.appointed or lane.under_way >= _abreast(server):
            return None
        head = lane.waiting[0]
        lane.appointed = head.leads = True
        if head.ticket is None:
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

    def _answer(self, batch: Sequence[Entry]) -> None:
        """Tell everybody of a batch who has an answer; each landing once."""
        threads = [entry for entry in batch if entry.ticket is None]
        others = Entry.chain(threads)
        for _ in range(self._wake + sum(entry.abandoned for entry in threads)):
            next(others, None)
        tickets = [ticket for entry in batch if (ticket := entry.told_ticket()) is not None]
        for landing, landed in by_landing(tickets).items():
            landing.land(landed)
            for _ in landed:
                self._lifecycle.leave()

    # Who gives up

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
                    lane.appointed, lane.enough = False, 0
                    lane.gathered.acquire(blocking=False)  # told, but interrupted before it heard of it
                    head = self._appoint(entry.server, lane)
        if head is not None and head.ticket is not None:
            self._lead_aside(entry.server)
        if taken:
            self._sleep(entry, _OUTCOME)
        next(entry.others, None)  # one step too many does no harm


def _abreast(server: Server[Any, Any]) -> int:
    """Return how many batches of a server may be under way at once: those that take from each other would conflict."""
    return 1 if server.contended else ABREAST


def _interrupted() -> OutcomeUnknown:
    return OutcomeUnknown("The thread that served this request was interrupted: look before you repeat it.")
