"""Sleeping threads: a condition variable that returns how many threads it woke.

The standard library's cannot say whether a notification woke a thread, which decides whether to wake another one.
"""

import threading
from collections import OrderedDict


class Sleepers:
    """Sleeping threads, the longest asleep first. Every method is called with the mutex held."""

    __slots__ = ("_mutex", "asleep")

    def __init__(self, mutex: threading.Lock) -> None:
        self._mutex = mutex
        #: The lock of each sleeping thread; a woken thread is not in here any more.
        self.asleep: OrderedDict[threading.Lock, None] = OrderedDict()

    def sleep(self, seconds: float | None) -> None:
        """Release the mutex until woken, or for at most `seconds`."""
        turn = threading.Lock()
        turn.acquire()
        self.asleep[turn] = None
        self._mutex.release()
        try:
            turn.acquire(timeout=-1 if seconds is None else min(max(seconds, 0.0), threading.TIMEOUT_MAX))
        finally:
            self._mutex.acquire()
            self.asleep.pop(turn, None)

    def wake(self, most: int) -> int:
        """Wake at most `most` threads; return how many were woken."""
        woken = 0
        while woken < most and self.asleep:
            self.asleep.popitem(last=False)[0].release()
            woken += 1
        return woken

    def wake_all(self) -> None:
        """Wake every thread."""
        self.wake(len(self.asleep))
