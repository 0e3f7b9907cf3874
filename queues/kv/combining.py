"""Group commit within a process: requests that wait together are executed as one batch.

The first caller that finds the combiner idle becomes batch leader and executes in its own thread. Callers that come
meanwhile wait; when the batch is done, the first of them leads the next one. A helper thread leads where the first
request belongs to no thread, such as an event loop's. A leader waits a moment for the callers of the last batch, as a
commit costs as much as many requests. A batch is closed before its transaction reads, so each request sees whatever
was committed before it was made. The main thread, where signals are handled, executes no request but its own.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from itertools import repeat, starmap
from operator import call as run
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

from queues.kv.errors import (
    Conflict,
    ForkedStore,
    OutcomeUnknown,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    TransactionTooOld,
)
from queues.kv.port import Landing, Refused, Server, Ticket, Transact

#: Requests of one batch of a server.
MAX_REQUESTS = 200
#: Seconds that an interrupted caller waits for the outcome of a request that is being executed.
OUTCOME = 30.0
#: A leader waits for expected callers in steps, as long as some come in each step, and for so many steps at most.
_STEPS = 10
#: Requests from which on a batch is answered in two cohorts, and the seconds in which a thread, or a request of an
#: event loop, comes back: where a commit takes longer than all of them together, a second one does not pay.
CROWD, RETURN, LANDING = 16, 0.000_02, 0.000_005
#: Threads that are woken at once while a commit is flushed.
_ABREAST = 2
#: Seconds without work after which the helper thread ends.
_IDLE = 2.0
#: Errors that hold for every request of a batch alike, so that none is executed again.
_OF_ALL = (Conflict, ForkedStore, OutcomeUnknown, StoreClosed, StoreUnavailable, TransactionTooOld)

_ONE = (1).to_bytes(8, "little")
#: The largest event descriptor that is used, and the share of the process's descriptors.
_LARGEST, _SHARE = 511, 4


class Bell:
    """Wakes the one thread that listens to it.

    It is an event descriptor where the system has them: to ring it gives up the interpreter's lock, so the woken thread
    finds that free. It is a lock where another library replaces threads, and where descriptors run short.
    """

    __slots__ = ("_within", "listen", "ring")

    #: Lets the listener go on, now or when it listens next; it cannot be interrupted half-way.
    ring: Callable[[], Any]
    #: Sleeps until it rings.
    listen: Callable[[], Any]

    def __init__(self) -> None:
        event = _event()
        if event is None:
            rings: SimpleQueue[None] = SimpleQueue()
            self.ring, self.listen = partial(rings.put, None), rings.get
            self._within = partial(_rang, rings)
        else:
            self.ring, self.listen = partial(os.write, event, _ONE), partial(os.read, event, len(_ONE))
            self._within = partial(_within, event)

    def listen_for(self, seconds: float) -> bool:
        """Sleep until it rings, or for so many seconds; False when it did not ring."""
        return self._within(seconds)


class _Event(int):
    """An event descriptor; closed once nothing can ring it or listen to it."""

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self)


def _event() -> _Event | None:
    """Return a new event descriptor, or None where a lock does better."""
    if not hasattr(os, "eventfd") or type(threading.Lock()).__module__ != "_thread":
        return None
    try:
        event = _Event(os.eventfd(0))
    except OSError:  # none is left
        return None
    return event if event <= min(_LARGEST, os.sysconf("SC_OPEN_MAX") // _SHARE) else None


def _rang(rings: SimpleQueue[None], seconds: float) -> bool:
    with suppress(Empty):
        rings.get(timeout=seconds)
        return True
    return False


def _within(event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(event, select.POLLIN)
    return bool(poll.poll(seconds * 1000) and os.read(event, len(_ONE)))


class _Thread(threading.local):
    """The bell of each thread, and whether signals are handled in it."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.main = threading.current_thread() is threading.main_thread()


_thread = _Thread()


def _forget_threads() -> None:
    global _thread  # the thread that forked is the main thread of the child
    _thread = _Thread()


os.register_at_fork(after_in_child=_forget_threads)


class State(Enum):
    """The progress of a request."""

    WAITING = "may be withdrawn"
    TAKEN = "its batch is being executed"
    ANSWERED = "done"


_WAITING, _TAKEN, _ANSWERED = State


class Call(Ticket):
    """A request whose thread waits for the answer. Without a server, it is a function to be run."""

    __slots__ = ("abandoned", "bell", "leads", "main", "wakes")

    def __init__(self, server: Server[Any, Any] | None, request: Any) -> None:
        self.server, self.request, self.landing = server, request, None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.state = _WAITING
        #: Whether its thread executes the next batch.
        self.leads = False
        #: Whether its thread was interrupted while the request was executed, so that it must not wait again.
        self.abandoned = False
        #: What wakes the threads of the batch, one at each step; empty until the request is answered by another thread.
        self.wakes: list[Iterator[object]] = []
        self.bell, self.main = _thread.bell, _thread.main

    @property
    def told(self) -> bool:
        """Whether its thread has something to do: to go on with the answer, or to lead."""
        return self.leads or bool(self.wakes)

    def sleep(self, timeout: float = -1) -> None:
        """Sleep until told, or for so many seconds; may return early."""
        if timeout < 0:
            self.bell.listen()
        else:
            self.bell.listen_for(timeout)


def deliver(tickets: Iterable[Ticket], abreast: int) -> None:
    """Wake the threads of answered requests, so many at once, each of which wakes the next; tell each landing once."""
    calls: list[Call] = []
    landings: dict[Landing, list[Ticket]] = {}
    for ticket in tickets:
        landing = ticket.landing
        if landing is None:
            calls.append(ticket)  # type: ignore[arg-type]
        elif landing in landings:
            landings[landing].append(ticket)
        else:
            landings[landing] = [ticket]
    if calls:
        # It is `map` that rings: nothing can interrupt a thread between taking the next bell and ringing it.
        chain = map(run, [call.bell.ring for call in calls])
        wakes: list[Iterator[object]] = []
        for call in calls:
            call.wakes = wakes
        wakes.append(chain)  # once all have it: a thread may be awake already, and step
        for _ in range(abreast + [call.abandoned for call in calls].count(True)):
            next(chain, None)
    for landing, landed in landings.items():
        landing.land(landed)


class Combiner:
    """Executes requests in batches, one batch at a time. Thread-safe."""

    def __init__(
        self,
        execute: Callable[[list[Ticket], Call | None], tuple[float, bool]],
        *,
        most: int = MAX_REQUESTS,
        linger: float = 0.0,
        pauses: tuple[float, float] = (0.0, 0.0),
        abreast: int = 1,
        sleep: Callable[[Call, float], None] = Call.sleep,
    ) -> None:
        #: Answers some requests of a batch; the rest wait on. It is given the leader's own request, None for the
        #: helper, and returns the seconds that the commit took and whether it pays to answer in two cohorts.
        self._execute = execute
        self._most = most
        #: The share of a commit's time for which a leader waits for the next caller, and its bounds in seconds.
        self._linger, self._pauses = linger, pauses
        self._abreast = abreast
        self.sleep = sleep
        self._mutex = threading.RLock()
        self._waiting: deque[Ticket] = deque()
        self._leader: Call | None = None
        self._helper: Call | None = None
        #: How many requests are expected together, and for how many the leader sleeps (0: it does not).
        self._expected = self._enough = 0
        self._took = 0.0
        #: Answered requests that are told as the next commit begins to be flushed; how many were told so last.
        self.keeps: list[Ticket] = []
        self._told_late = 0
        self._refusal: Callable[[], Exception] | None = None
        self._idle = threading.Condition(self._mutex)

    def __len__(self) -> int:
        return len(self._waiting)

    def serve(self, server: Server[Any, Any] | None, request: Any) -> Any:
        """Have a request executed, and return its answer or raise its error."""
        call = Call(server, request)
        try:
            with self._mutex:
                if self._refusal is not None:
                    raise self._refusal()
                waiting = self._waiting
                waiting.append(call)
                leader = self._leader
                if leader is None:
                    self._leader = call
                    call.leads = True
                elif len(waiting) == self._enough:
                    self._enough = 0
                    self._replace(leader, call)
            while not call.wakes:
                if not call.leads:
                    self.sleep(call, -1)
                elif self._lead(call) and call.state is _ANSWERED:
                    break
            else:
                next(call.wakes[0], None)
        except BaseException:
            self._abandon(call)
            raise
        error = call.error
        if error is None:
            return call.answer
        try:
            raise error
        finally:
            del error, call

    def submit(self, ticket: Ticket) -> None:
        """Have a request executed without waiting: its ticket goes to its landing."""
        ticket.state = _WAITING
        with self._mutex:
            if self._refusal is not None:
                raise self._refusal()
            self._waiting.append(ticket)
            leader = self._leader
            if leader is None:
                self._appoint()
            elif len(self._waiting) == self._enough:
                self._enough = 0
                leader.bell.ring()

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a request back; False when it is being executed, or was."""
        with self._mutex:
            if ticket.state is not _WAITING or ticket not in self._waiting:
                return False
            self._waiting.remove(ticket)
            ticket.state = _ANSWERED
        return True

    def tell_kept(self) -> None:
        """Tell requests of the last batch that were kept for this moment: a commit is about to be flushed."""
        if self.keeps:
            with self._mutex:
                kept, self.keeps = self.keeps, []
                self._told_late += len(kept)
            deliver(kept, _ABREAST)

    def close(self, refusal: Callable[[], Exception], timeout: float | None = None) -> bool:
        """Refuse new requests, and wait until all accepted ones are answered; False when the time is up."""
        with self._idle:
            self._refusal = refusal
            drained = self._idle.wait_for(lambda: self._leader is None and not self._waiting, timeout)
            if self._helper is not None:
                self._helper.bell.ring()
        return drained

    # Leading

    def _lead(self, own: Call) -> bool:
        """Execute one batch; False when another caller leads instead."""
        if self._expected > len(self._waiting) and not self._gather(own):
            return False
        batch: list[Ticket] = []
        pace = None
        try:
            self.take(batch, own)
            if batch:
                pace = self._execute(batch, None if own is self._helper else own)
        finally:
            self._pass_on(batch, own, pace)
        return True

    def take(self, batch: list[Ticket], own: Call | None) -> list[Ticket]:
        """Move waiting requests into a batch; an engine may do it again, once it has waited for its write lock."""
        with self._mutex:
            waiting = self._waiting
            if own is None or not own.main:
                batch += starmap(waiting.popleft, repeat((), min(len(waiting), self._most - len(batch))))
            elif own.state is _WAITING:
                waiting.remove(own)
                batch.append(own)
            for ticket in batch:
                ticket.state = _TAKEN
        return batch

    def _gather(self, own: Call) -> bool:
        """Wait until the expected callers are there, as long as some come; False when another one leads instead."""
        least, longest = self._pauses
        pause = min(longest, max(least, self._linger * self._took))
        if not pause or own.main:
            return True
        with self._mutex:
            here = len(self._waiting)
            self._enough = min(self._expected, self._most)
        for _ in range(_STEPS):
            if here >= self._enough:
                break
            self.sleep(own, pause)
            with self._mutex:
                if not own.leads:
                    return False
                before, here = here, len(self._waiting)
                if here == before:
                    break
        with self._mutex:
            self._enough = 0
            return own.leads

    def _pass_on(self, batch: Sequence[Ticket], own: Call, pace: tuple[float, bool] | None) -> None:
        """Let the first request that waits lead, and tell those of the batch that are answered."""
        with self._mutex:
            answered: list[Ticket] = []
            waiting = self._waiting
            for ticket in reversed(batch):
                if ticket.state is not _ANSWERED and not getattr(ticket, "abandoned", False):
                    ticket.state = _WAITING
                    waiting.appendleft(ticket)
                else:
                    ticket.state = _ANSWERED
                    if ticket is not own:
                        answered.append(ticket)
            answered.reverse()
            told = self._first_cohort(answered, pace)
            self.keeps += answered[told:]
            here = max(self._told_late, len(waiting))
            lingers = bool(self.keeps) and not waiting and pace is not None
            self._expected = here + told + (own.state is _ANSWERED and not lingers)
            self._told_late = 0
            if not lingers:
                own.leads = False
                self._leader = None
                self._appoint()
        deliver(answered[:told], self._abreast)
        if lingers:
            self._await_told(own)
        elif pace is None:
            self.tell_kept()

    def _first_cohort(self, answered: Sequence[Ticket], pace: tuple[float, bool] | None) -> int:
        """Return how many answered requests are told at once, so that both cohorts are alike.

        One cohort prepares its next requests while the commit of the other is flushed. Told at once, all would compete
        with the next leader for the interpreter, and have nothing to do during the flush.
        """
        n = len(answered)
        if pace is None:
            return n
        self._took, alone = pace
        other = max(self._told_late, len(self._waiting))
        crowd = n + other
        if not alone or crowd < CROWD:
            return n
        back = RETURN if any(ticket.landing is None for ticket in answered) else LANDING
        return n if self._took > crowd * back else max(0, n - other + 1) // 2

    def _await_told(self, own: Call) -> None:
        """Stay leader until the answered callers come back or some time has passed; then answer the rest."""
        if not self._gather(own):
            return
        with self._mutex:
            own.leads = False
            self._leader = None
            self._appoint()
        self.tell_kept()

    def _appoint(self) -> None:
        """Have the first request that waits lead; the helper where that belongs to no thread, or to the main one."""
        while self._waiting:
            head = self._waiting[0]
            leader: Call | None
            if isinstance(head, Call) and (not head.main or len(self._waiting) == 1):
                leader = head
            else:
                leader = self._helper or self._start_helper() or (head if isinstance(head, Call) else None)
            if leader is not None:
                self._leader = leader
                leader.leads = True
                leader.bell.ring()
                return
        if self._refusal is not None:
            self._idle.notify_all()

    def _replace(self, leader: Call, by: Call) -> None:
        """Have another call lead in place of the leader, which only waits for callers."""
        if not by.main:
            leader.leads, by.leads = False, True
            self._leader = by
        else:
            leader.bell.ring()

    # The helper

    def _start_helper(self) -> Call | None:
        """Start the thread that leads where no caller can; None, refusing a request that needs it, when none starts."""
        helper = Call(None, None)
        helper.bell, helper.main = Bell(), False
        try:
            threading.Thread(target=self._help, args=(helper,), name="pq-combining", daemon=True).start()
        except Exception as error:  # the machine, or its limits, let no other thread begin
            head = self._waiting[0]
            if head.landing is not None:
                self._waiting.popleft()
                reason = "No thread could be started to serve this request: {reason}."
                head.error, head.state = StoreUnavailable(reason, reason=str(error)), _ANSWERED
                head.landing.land([head])
            return None
        self._helper = helper
        return helper

    def _help(self, helper: Call) -> None:
        """Lead where no caller can."""
        try:
            while True:
                if helper.leads:
                    self._lead(helper)
                    continue
                rang = helper.bell.listen_for(_IDLE)
                with self._mutex:
                    if not helper.leads and (not rang or self._refusal is not None):
                        self._helper = None
                        return
        except BaseException:
            self._abandon(helper)
            raise

    # Interrupts

    def _abandon(self, call: Call) -> None:
        """Leave the line and the lead, or wait for the outcome of what is being executed."""
        with self._mutex:
            taken = call.abandoned = call.state is _TAKEN
            if call.state is _WAITING and call in self._waiting:
                self._waiting.remove(call)
            if self._helper is call:
                self._helper = None
            if self._leader is call:
                call.leads, self._leader, self._enough = False, None, 0
                self._appoint()
                self.tell_kept()
        if taken and not call.wakes:
            self.sleep(call, OUTCOME)
        if call.wakes:
            next(call.wakes[0], None)  # one step too many does no harm


class Combiners:
    """A combiner for each server: transactions of different servers run side by side. Thread-safe."""

    def __init__(self, transact: Transact, **options: Any) -> None:
        self._transact = transact
        self._options = options
        self._mutex = threading.Lock()
        self._of: WeakKeyDictionary[Server[Any, Any], Combiner] = WeakKeyDictionary()
        self._refusal: Callable[[], Exception] | None = None

    def serve(self, server: Server[Any, Any], request: Any) -> Any:
        """Have a request executed, and return its answer or raise its error."""
        return self.of(server).serve(server, request)

    def submit(self, ticket: Ticket) -> None:
        """Have a request executed without waiting: its ticket goes to its landing."""
        self.of(ticket.server).submit(ticket)

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a request back; False when it is being executed, or was."""
        return self.of(ticket.server).withdraw(ticket)

    def of(self, server: Server[Any, Any] | None) -> Combiner:
        """Return the combiner of a server."""
        assert server is not None
        with self._mutex:
            combiner = self._of.get(server)
            if combiner is None:
                if self._refusal is not None:
                    raise self._refusal()
                combiner = self._of[server] = Combiner(self._execute, **self._options)
            return combiner

    def close(self, refusal: Callable[[], Exception], timeout: float) -> bool:
        """Refuse new requests, and wait until all accepted ones are answered; False when the time is up."""
        with self._mutex:
            self._refusal = refusal
            combiners = list(self._of.values())
        return all(combiner.close(refusal, timeout) for combiner in combiners)

    def _execute(self, batch: list[Ticket], own: Call | None) -> tuple[float, bool]:
        """Have the server of a batch conduct it; where that fails, each request alone, so only the guilty one fails."""
        began = time.monotonic()
        try:
            try:
                self._conduct(batch)
            except Exception as error:
                if len(batch) == 1 or isinstance(error, _OF_ALL):
                    fail(batch, error)
                else:
                    self._conduct_each(batch)
        except BaseException:
            fail(
                [ticket for ticket in batch if ticket.state is _TAKEN],
                OutcomeUnknown("The thread that served this request was interrupted: look before you repeat it."),
            )
            raise
        return time.monotonic() - began, False

    def _conduct_each(self, batch: Sequence[Ticket]) -> None:
        for ticket in batch:
            try:
                self._conduct([ticket])
            except Exception as error:
                fail([ticket], error)

    def _conduct(self, batch: Sequence[Ticket]) -> None:
        server = batch[0].server
        assert server is not None
        settle(batch, server.conduct(self._transact, [ticket.request for ticket in batch]))


def settle(batch: Sequence[Ticket], answers: Sequence[Any]) -> None:
    """Note the answers of the first requests."""
    for ticket, answer in zip(batch, answers, strict=False):
        if type(answer) is Refused:
            ticket.answer, ticket.error = None, answer.error
        else:
            ticket.answer, ticket.error = answer, None
        ticket.state = _ANSWERED


def fail(batch: Sequence[Ticket], error: BaseException) -> None:
    """Note an error of requests; each thread raises its own."""
    for ticket in batch:
        own = type(error)(*error.args) if len(batch) > 1 and isinstance(error, StoreError) else error
        ticket.answer, ticket.error, ticket.state = None, own, _ANSWERED
