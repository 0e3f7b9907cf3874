"""Functions on their way to the writer thread, and the threads that wait for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from queues.kv.port import MAX_TRANSACTION_SECONDS, Transaction

T = TypeVar("T")

#: More calls than there can be threads: the writer is busy and looks by itself.
_NEVER = 1 << 62


class Call:
    """One thread's place in the queue, used again for its next call."""

    __slots__ = ("answered", "error", "fn", "result")

    def __init__(self) -> None:
        self.fn: Callable[[Transaction], Any] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.answered = threading.Lock()
        self.answered.acquire()

    def answer(self) -> None:
        """Let the caller go on with what `result` or `error` say."""
        self.answered.release()


class _Own(threading.local):
    """Every thread's own call."""

    def __init__(self) -> None:
        self.call = Call()


class Calls:
    """The queue between callers and the writer: a deque, and one lock on which the writer sleeps."""

    def __init__(self) -> None:
        self._queue: deque[Call] = deque()
        self._own = _Own()
        self._awake = threading.Lock()
        self._awake.acquire()
        self._wake_at = _NEVER
        self._refusal: Callable[[], BaseException] | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def run(self, fn: Callable[[Transaction], T]) -> T:
        """Hand `fn` to the writer, wait for its commit, and return its result or raise its error."""
        own = self._own
        call = own.call
        call.fn = fn
        queue = self._queue
        try:
            queue.append(call)
            if len(queue) >= self._wake_at:
                self.wake()
            if self._refusal is not None:
                self._refuse_all(self._refusal)
            call.answered.acquire()
        except BaseException:  # KeyboardInterrupt, anywhere: this call may still be queued, so it is never used again
            own.call = Call()
            self._withdraw(call)
            raise
        call.fn = None
        error = call.error
        if error is None:
            result: T = call.result
            call.result = None
            return result
        call.error = None
        try:
            raise error
        finally:
            del error

    def take(self) -> Call | None:
        """Return the next call; None when nobody waits."""
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def sleep(self, want: int, timeout: float = -1) -> None:
        """Sleep until `want` calls wait, or for `timeout` seconds. May return early."""
        self._wake_at = want
        if len(self._queue) < want:
            self._awake.acquire(timeout=timeout)
        self._wake_at = _NEVER

    def wake(self) -> None:
        """End the writer's sleep."""
        try:
            self._awake.release()
        except RuntimeError:  # it is awake, or another caller woke it
            return

    def refuse(self, refusal: Callable[[], BaseException]) -> None:
        """Answer whatever waits now, and whatever still comes, with an error."""
        self._refusal = refusal
        self._refuse_all(refusal)

    def _refuse_all(self, refusal: Callable[[], BaseException]) -> None:
        while (call := self.take()) is not None:
            call.error = refusal()
            call.answer()

    def _withdraw(self, call: Call) -> None:
        """Take a call back; one that the writer has is decided soon, unless it never got as far as the queue."""
        try:
            self._queue.remove(call)
        except ValueError:
            call.answered.acquire(timeout=MAX_TRANSACTION_SECONDS)
