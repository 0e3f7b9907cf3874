"""Functions and requests on their way to the writer thread, and the threads that wait for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from queues.kv.port import MAX_TRANSACTION_SECONDS, Server, Ticket, Transaction
from queues.kv.wakeup import Bell, by_landing, chain

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")

#: More calls than there can be threads: the writer is busy and looks by itself.
_NEVER = 1 << 62


class Call(Ticket):
    """One thread's place in the queue, used again for its next call: a request, or a function that no server serves.

    It lands nowhere: its thread waits for it.
    """

    __slots__ = ("abandoned", "bell", "others")

    def __init__(self) -> None:
        self.request = self.server = self.answer = self.error = self.landing = None
        #: Rings when there is an answer.
        self.bell = Bell()
        #: Wakes the next thread of the batch, at each step one.
        self.others: Iterator[object] = iter(())
        #: Its thread was interrupted: it may never wake another, and makes its next call with another one of these.
        self.abandoned = False


class _Own(threading.local):
    """Every thread's own call."""

    def __init__(self) -> None:
        self.call = Call()


class Calls:
    """The queue between callers and the writer: a deque, and one lock on which the writer sleeps."""

    def __init__(self) -> None:
        self._queue: deque[Ticket] = deque()
        self._own = _Own()
        self._awake = threading.Lock()
        self._awake.acquire()
        self._wake_at = _NEVER
        self._refusal: Callable[[], BaseException] | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def run(self, fn: Callable[[Transaction], T]) -> T:
        """Hand `fn` to the writer, wait for its commit, and return its result or raise its error."""
        call = self._own.call
        if call.abandoned:
            call = self._own.call = Call()
        call.request, call.server = fn, None
        result: T = self._wait(call)
        return result

    def serve(self, server: Server[R, A], request: R) -> A:
        """Hand a request to the writer, wait for the commit that serves it, return its answer or raise its error."""
        call = self._own.call
        if call.abandoned:
            call = self._own.call = Call()
        call.request, call.server = request, server
        return self._wait(call)  # type: ignore[no-any-return]

    def submit(self, ticket: Ticket) -> None:
        """Hand a request to the writer; it lands once the commit that serves it is durable."""
        queue = self._queue
        queue.append(ticket)
        if len(queue) >= self._wake_at:
            self.wake()
        if self._refusal is not None:
            self._refuse_all(self._refusal)

    def take(self) -> Ticket | None:
        """Return the next call; None when nobody waits."""
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def take_up_to_function(self, taken: list[Ticket], requests: list[Ticket], most: int) -> Ticket | None:
        """Take at most so many calls: requests, and return the function that ends them; all go to `taken`, too."""
        popleft, take, gather = self._queue.popleft, taken.append, requests.append
        try:
            for _ in range(most):
                call = popleft()
                take(call)
                if call.server is None:
                    return call
                gather(call)
        except IndexError:  # nobody waits any more
            pass
        return None

    def lead_with_request(self) -> bool:
        """Say whether a request is the next to be taken: what is served together is short, a function may not be."""
        try:
            return self._queue[0].server is not None
        except IndexError:
            return False

    def withdraw(self, call: Ticket) -> bool:
        """Take a call back; False when it was taken."""
        try:
            self._queue.remove(call)
        except ValueError:
            return False
        return True

    def sleep(self, want: int, timeout: float = -1) -> None:
        """Sleep until `want` calls wait, or for `timeout` seconds. May return early."""
        self._wake_at = want
        if len(self._queue) < want:
            self._awake.acquire(timeout=timeout)
        self._wake_at = _NEVER

    def wake(self) -> None:
        """End the writer's sleep."""
        if not self._awake.locked():  # it is awake, or another caller woke it
            return
        try:
            self._awake.release()
        except RuntimeError:  # another caller was faster
            return

    def refuse(self, refusal: Callable[[], BaseException]) -> None:
        """Answer whatever waits now, and whatever still comes, with an error."""
        self._refusal = refusal
        self._own = _Own()  # nobody's bell is needed any more but of those who wait
        self._refuse_all(refusal)

    def _wait(self, call: Call) -> Any:
        before = call.others
        try:
            queue = self._queue
            queue.append(call)  # as `submit` does: a method of its own would cost as much again
            if len(queue) >= self._wake_at:
                self.wake()
            if self._refusal is not None:
                self._refuse_all(self._refusal)
            call.bell.listen()
            next(call.others, None)
        except BaseException:  # KeyboardInterrupt, anywhere: this call may still be queued, so it is never used again
            # Before anything that can be interrupted, or fail, once more: whoever tells the batch counts this call, or
            # has done so, and then this step is the one that it owes.
            call.abandoned = True
            next(call.others, None)
            if not self.withdraw(call) and call.others is before:
                call.bell.listen_for(MAX_TRANSACTION_SECONDS)
            raise
        call.request = call.server = None
        error = call.error
        if error is None:
            answer, call.answer = call.answer, None
            return answer
        call.error = None
        try:
            raise error
        finally:
            del error

    def _refuse_all(self, refusal: Callable[[], BaseException]) -> None:
        refused: list[Ticket] = []
        while (call := self.take()) is not None:
            call.error = refusal()
            refused.append(call)
        deliver(refused)


def deliver(calls: Sequence[Ticket], abreast: int = 1) -> None:
    """Let the callers go on with what `answer` or `error` say; what was submitted lands together.

    So many threads are woken at once, and each wakes the next one. To wake all at once would have most of them stand up
    only to wait for the interpreter, which costs as much again.
    """
    waiting: list[Any] = [call for call in calls if call.landing is None]
    if waiting:
        others = chain([call.bell.ring for call in waiting])
        for call in waiting:
            call.others = others
        for _ in range(abreast + [call.abandoned for call in waiting].count(True)):
            next(others, None)
    if len(waiting) == len(calls):
        return
    for landing, landed in by_landing(calls).items():
        landing.land(landed)
