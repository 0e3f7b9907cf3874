"""Group commit within a process: requests that wait together are executed as one batch.

A caller that finds the combiner idle executes its own request, in its own thread. Requests that come meanwhile wait for
a helper thread, which executes all that wait as one batch, and goes on as long as requests come. So a lone caller pays
for no other thread, and no caller executes the requests of another. The helper waits a moment for the callers of the
last batch, as a commit costs as much as many requests. A batch is closed before its transaction reads, so each request
sees whatever was committed before it was made.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import call as run
from typing import Any
from weakref import WeakKeyDictionary

from queues.kv.bells import Bell, Listener
from queues.kv.errors import (
    Conflict,
    ForkedStore,
    OutcomeUnknown,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    TransactionTooOld,
)
from queues.kv.lifecycle import Lifecycle, refuse_nesting
from queues.kv.port import Landing, Refused, Server, Ticket, Transact

log = logging.getLogger("queues.kv")

#: Requests of one batch of a server.
MAX_REQUESTS = 200
#: Seconds that an interrupted caller waits for the outcome of a request that is being executed.
OUTCOME = 30.0
#: The helper waits for expected callers in steps, as long as some come in each step, and for so many steps at most.
_STEPS = 10
#: Seconds without work after which the helper thread ends.
_IDLE = 2.0
#: Errors that hold for every request of a batch alike, so that none is executed again.
_OF_ALL = (Conflict, ForkedStore, OutcomeUnknown, StoreClosed, StoreUnavailable, TransactionTooOld)

_NONE: Iterator[object] = iter(())


class Call(Ticket):
    """A request whose thread waits for the answer. Without a server, it is a function to be run."""

    __slots__ = ("abandoned", "bell", "busy", "others")

    def __init__(self, bell: Bell) -> None:
        super().__init__(None, None, None)
        #: Rings once for each request that the helper answered.
        self.bell = bell
        #: Whether its thread uses it: a signal handler's request needs another one.
        self.busy = False
        #: Whether its thread was interrupted while the request was executed, so that it must not wait again.
        self.abandoned = False
        #: What wakes the other threads of the batch, one at each step; nothing until the helper has answered.
        self.others: Iterator[object] = _NONE


class _Thread(threading.local):
    """The call that each thread uses again."""

    call: Call | None = None


_thread = _Thread()


def _forget_threads() -> None:
    global _thread  # a child would share the event descriptors of its parent
    _thread = _Thread()


os.register_at_fork(after_in_child=_forget_threads)


def deliver(tickets: Iterable[Ticket], abreast: int) -> None:
    """Tell each landing once; wake the threads of answered requests, so many at once, each of which wakes the next."""
    calls: list[Call] = []
    landings: dict[Landing, list[Ticket]] = {}
    for ticket in tickets:
        landing = ticket.landing
        if landing is None:
            assert isinstance(ticket, Call)
            calls.append(ticket)
        elif landing in landings:
            landings[landing].append(ticket)
        else:
            landings[landing] = [ticket]
    try:
        for landing, landed in landings.items():  # first: woken threads compete for the interpreter
            landing.land(landed)
    finally:
        if calls:
            # It is `map` that rings: nothing can interrupt a thread between taking the next bell and ringing it.
            chain = map(run, [call.bell.ring for call in calls])
            for call in calls:
                call.others = chain
            for _ in range(abreast + [call.abandoned for call in calls].count(True)):
                next(chain, None)


def start_thread(work: Callable[[], None], name: str) -> None:
    """Start a daemon thread."""
    threading.Thread(target=work, name=name, daemon=True).start()


class Combiner:
    """Executes requests in batches, one batch at a time. Thread-safe."""

    def __init__(
        self,
        execute: Callable[[list[Ticket]], float],
        *,
        most: int = MAX_REQUESTS,
        linger: float = 0.0,
        pauses: tuple[float, float] = (0.0, 0.0),
        abreast: int = 1,
        start: Callable[[Callable[[], None], str], None] = start_thread,
        bell: Callable[[], Bell] | None = None,
    ) -> None:
        #: Answers some requests of a batch; the rest wait on. Returns the seconds that the commit took.
        self._execute = execute
        self._most = most
        #: The share of a commit's time for which the helper waits for the next caller, and its bounds in seconds.
        self._linger, self._pauses = linger, pauses
        self._abreast = abreast
        #: How a thread is started, and what it sleeps on, if not on a bell of its own: simulations replace them.
        self._start, self.bell = start, bell
        self._mutex = threading.RLock()
        self._waiting: deque[Ticket] = deque()
        #: What the helper executes.
        self._batch: list[Ticket] = []
        #: What executes now: a caller its own request, or the helper; and the helper's bell while there is one.
        self._leader: Ticket | Listener | None = None
        self._helper: Listener | None = None
        #: The thread of the helper that began last.
        self.helping = 0
        #: Whether the helper goes on without work.
        self._stays = False
        #: How many requests are expected together, and for how many the helper sleeps (0: it does not).
        self._expected = self._wanted = 0
        self._took = 0.0
        #: A thread waits for the last answer: to notify none costs, too.
        self._awaited = False
        #: The error of requests that come too late.
        self._closed: Callable[[], Exception] | None = None
        self._idle = threading.Condition(self._mutex)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether no request is being executed."""
        return self._leader is None

    def serve(self, server: Server[Any, Any] | None, request: Any, doubt: Any = None) -> Any:
        """Have a request executed, and return its answer or raise its error. For `doubt` see `Ticket`."""
        call = _thread.call
        if call is None or call.busy or self.bell is not None:
            call = _thread.call = Call(Bell() if self.bell is None else self.bell())
        call.busy = True
        call.server, call.request, call.doubt, call.answered, call.others = server, request, doubt, False, _NONE
        try:
            if self._leader is None:
                with self._mutex:
                    if self._closed:
                        fail([call], self._closed())
                    elif self._leader is None:
                        self._leader = call
            if self._leader is call:
                while not call.answered:
                    self._execute([call])
                self._pass_on(call)
            elif not call.answered:
                self._append(call)
                call.bell.listen()
                next(call.others, None)
        except BaseException:
            self._abandon(call)
            raise
        answer, error = call.answer, call.error
        call.server = call.request = call.doubt = call.answer = call.error = None
        call.busy = False
        if error is None:
            return answer
        try:
            raise error
        finally:
            del error

    def submit(self, ticket: Ticket) -> None:
        """Have a request executed without waiting: its ticket goes to its landing."""
        ticket.answered = False
        self._append(ticket)

    def execute_here(self, ticket: Ticket, hindered: Callable[[], bool]) -> bool:
        """Execute a request in the calling thread if no other one is under way and nothing hinders; else return False.

        `hindered` is asked while no other thread executes.
        """
        with self._mutex:
            if self._closed:
                raise self._closed()
            if self._leader is not None or self._waiting:
                return False
            self._leader = ticket
        try:
            if hindered():
                return False
            ticket.answered = False
            while not ticket.answered:
                self._execute([ticket])
        finally:
            self._pass_on(ticket)
        return True

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a request back; False when it is being executed, or was."""
        with self._mutex:
            try:
                self._waiting.remove(ticket)
            except ValueError:
                return False
        return True

    def take(self, batch: list[Ticket]) -> list[Ticket]:
        """Move waiting requests into the helper's batch; an engine may do it again, once it has its write lock."""
        with self._mutex:
            if self._leader is self._helper:
                popleft = self._waiting.popleft
                batch += [popleft() for _ in range(min(len(self._waiting), self._most - len(batch)))]
        return batch

    def close(self, refusal: Callable[[], Exception], timeout: float | None = None) -> bool:
        """Wait until all requests are answered, and refuse the next ones; False when the time is up."""
        with self._idle:
            self._awaited = True
            drained = self._idle.wait_for(lambda: self._leader is None, timeout)
            self._closed = refusal
            if drained and self._helper is not None:
                self._helper.ring()
                self._helper = None
        return drained

    def attend(self, bell: Listener | None) -> None:
        """Have the helper listen to this bell from now on, in a thread that stays; None: to one of its own again.

        Requests may `arrive` while it listens. Raises what keeps a thread from starting.
        """
        with self._mutex:
            old, stayed = self._helper, self._stays
            self._helper, self._stays = bell, bell is not None
            if bell is not None:
                try:
                    self._start(partial(self._help, bell), "pq-combining")
                except BaseException:
                    self._helper, self._stays = old, stayed
                    raise
            if old is not None and self._leader is not old:
                old.ring()

    def arrive(self, tickets: Iterable[Ticket]) -> None:
        """Add requests, in the helper's thread while it listens."""
        self._waiting.extend(tickets)

    # Leading

    def _append(self, ticket: Ticket) -> None:
        """Let a request wait. Without the mutex: a leader looks for requests again after it stopped to lead."""
        self._waiting.append(ticket)
        if self._leader is None:
            self._pass_on(None)
        elif 0 < self._wanted <= len(self._waiting):
            self._wanted = 0
            if (helper := self._helper) is not None:
                helper.ring()

    def _pass_on(self, leader: Ticket | Listener | None) -> None:
        """Have the helper lead if requests wait."""
        with self._mutex:
            if self._leader is leader:
                self._leader = None
                self._appoint()

    def _appoint(self) -> None:
        if not self._waiting:
            if self._awaited:
                self._idle.notify_all()
            return
        if self._helper is None:
            try:
                if self._closed:
                    raise self._closed()
                self._helper = self.bell() if self.bell else Bell(quiet=True)
                self._start(partial(self._help, self._helper), "pq-combining")
            except Exception as error:  # the machine, or its limits, let no other thread begin
                self._helper = None
                self._refuse_waiting(error)
                return
        self._leader = self._helper
        self._helper.ring()

    def _refuse_waiting(self, error: Exception) -> None:
        if not isinstance(error, StoreError):
            reason = "No thread could be started to serve this request: {reason}."
            error = StoreUnavailable(reason, reason=str(error))
        refused = list(self._waiting)
        self._waiting.clear()
        fail(refused, error)
        deliver(refused, len(refused))
        self._idle.notify_all()

    def _abandon(self, call: Call) -> None:
        """Leave the line, or wait for the outcome of what is being executed; let the helper lead where it should."""
        _thread.call = None  # the helper may still ring for this one
        with self._mutex:
            self.withdraw(call)
            call.abandoned = call in self._batch  # no other thread rings
            self._pass_on(call if self._leader is call else None)
        if call.abandoned and call.others is _NONE:
            call.bell.listen_for(OUTCOME)
        next(call.others, None)  # one step too many does no harm

    # The helper

    def _help(self, helper: Listener) -> None:
        """Execute batches as long as requests come."""
        own = self.helping = threading.get_ident()
        try:
            while self._await_requests(helper):
                batch: list[Ticket] = []
                self._batch = batch
                self.take(batch)
                try:
                    self._took = self._execute(batch)
                except BaseException as error:  # without this thread no request would be answered
                    if not isinstance(error, StoreError):
                        log.exception("Executing a batch failed")
                    fail([ticket for ticket in batch if not ticket.answered], error)
                self._answer(batch)
                self._batch = batch = []  # its requests are freed before the next ones come
        finally:
            with self._mutex:
                if self._helper is helper:
                    self._helper = None
                if self.helping == own:  # another thread may get its number
                    self.helping = 0
            self._pass_on(helper)
            helper.close()

    def _await_requests(self, helper: Listener) -> bool:
        """Wait for requests; False when the thread is to end."""
        if self._leader is helper:
            if self._helper is not helper:  # another one takes its place
                return False
            self._gather(helper, self._expected)
        with self._mutex:
            if self._leader is helper:
                self._leader = None
            if self._leader is None:
                if self._waiting and self._helper is helper:
                    self._leader = helper
                    return True
                self._expected = 0
                self._idle.notify_all()
        while True:
            rang = helper.listen_for(_IDLE)
            with self._mutex:
                if self._leader is None and self._waiting and self._helper is helper:
                    self._leader = helper
                if self._leader is helper:
                    return True
                if self._closed or not (rang or self._stays) or self._helper is not helper:
                    return False

    def _gather(self, helper: Listener, want: int) -> None:
        """Wait until so many requests wait, as long as some come."""
        least, longest = self._pauses
        pause = min(longest, max(least, self._linger * self._took))
        if want < 2 or not pause:
            return
        want, rang, before = min(want, self._most), True, 0
        for _ in range(_STEPS):
            self._wanted = want
            here = len(self._waiting)
            if here >= want or (here == before and not rang):
                break
            before, rang = here, helper.listen_for(pause)  # it may ring for a call that came before
        self._wanted = 0

    def _answer(self, batch: Sequence[Ticket]) -> None:
        """Tell requests that are answered; the rest of the batch waits on."""
        answered = [ticket for ticket in batch if ticket.answered]
        if len(answered) < len(batch):
            with self._mutex:
                rest = [ticket for ticket in batch if not ticket.answered]
                gone = [ticket for ticket in rest if getattr(ticket, "abandoned", False)]
                self._waiting.extendleft(ticket for ticket in reversed(rest) if ticket not in gone)
            answered += gone
        self._expected = len(answered)
        deliver(answered, self._abreast)


class Combiners:
    """A combiner for each server: transactions of different servers run side by side. Thread-safe."""

    def __init__(self, transact: Transact, lifecycle: Lifecycle | None = None, **options: Any) -> None:
        self._transact = transact
        self._lifecycle = lifecycle
        self._options = options
        self._mutex = threading.Lock()
        self._of: WeakKeyDictionary[Server[Any, Any], Combiner] = WeakKeyDictionary()
        self._refusal: Callable[[], Exception] | None = None

    def serve(self, server: Server[Any, Any], request: Any) -> Any:
        """Have a request executed in one batch with other waiting ones, and return its answer or raise its error."""
        self._check()
        return self.of(server).serve(server, request)

    def submit(self, ticket: Ticket) -> None:
        """Have a request executed without waiting: its ticket goes to its landing."""
        self._check()
        self.of(ticket.server).submit(ticket)

    def execute_here(self, ticket: Ticket) -> bool:
        """Return False: a transaction waits for other processes."""
        return False

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

    def _check(self) -> None:
        refuse_nesting()
        if self._lifecycle is not None:
            self._lifecycle.check()

    def _execute(self, batch: list[Ticket]) -> float:
        """Have the server of a batch conduct it; where that fails, each request alone, so only the guilty one fails."""
        began = time.monotonic()
        try:
            self._conduct(batch)
        except Exception as error:
            if len(batch) == 1 or isinstance(error, _OF_ALL):
                fail(batch, error)
            else:
                self._conduct_each(batch)
        return time.monotonic() - began

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
        ticket.answered = True


def fail(batch: Sequence[Ticket], error: BaseException) -> None:
    """Note an error of requests; each thread raises its own. Of one in doubt, the outcome is not known."""
    for ticket in batch:
        if ticket.doubt is not None:
            ticket.doubt[0].give_up(ticket)
            continue
        own = type(error)(*error.args) if len(batch) > 1 and isinstance(error, StoreError) else error
        ticket.answer, ticket.error, ticket.answered = None, own, True
