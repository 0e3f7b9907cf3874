"""Callers of this process that wait for items of one queue: the first one leads and alone watches the store.

When there are items, the leader calls one waiter for each; the rest sleep on. A leader that leaves hands the lead to
the next waiter. So a change wakes one thread of a process, and an item one waiter, however many there are.
"""

import threading
import time
import weakref
from collections import OrderedDict
from enum import Enum
from typing import Any


class Call(Enum):
    """Why a waiter was woken."""

    LEAD = "watch the store, and call other waiters"
    TAKE = "there may be an item for you"


class Waiter:
    """One waiting caller, and the lock that it sleeps on, or what stands for one."""

    __slots__ = ("call", "turn")

    def __init__(self) -> None:
        #: What the waiter was last told and has not finished yet.
        self.call: Call | None = None
        self.turn: Any = threading.Lock()
        self.turn.acquire()


class WaitQueue:
    """The waiters of one queue, in the order in which they came. Thread-safe."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.asleep: OrderedDict[Waiter, None] = OrderedDict()
        self.leader: Waiter | None = None
        #: Waiters that were called and have not come back yet.
        self.taking = 0
        self._came_back = threading.Condition(self.mutex)
        #: What watches for a coroutine that leads: see queues/aio/.
        self.lookout: Any = None

    def enter(self, waiter: Waiter) -> None:
        """Add a waiter at the end."""
        with self.mutex:
            self.asleep[waiter] = None
            self._appoint()

    def sleep(self, waiter: Waiter, deadline: float) -> Call | None:
        """Sleep until called; None when the deadline (monotonic) has passed before."""
        left = deadline - time.monotonic()
        if left > 0:
            waiter.turn.acquire(timeout=min(left, threading.TIMEOUT_MAX))
        with self.mutex:
            return waiter.call

    def enter_again(self, waiter: Waiter) -> None:
        """Put a called waiter back at the head: there was no item for it."""
        with self.mutex:
            self._done(waiter)
            self.asleep[waiter] = None
            self.asleep.move_to_end(waiter, last=False)
            self._appoint()

    def leave(self, waiter: Waiter) -> None:
        """Remove a waiter, with an item or without; the lead passes on."""
        with self.mutex:
            self.asleep.pop(waiter, None)
            self._done(waiter)
            self._appoint()

    def call(self, items: int) -> bool:
        """Call waiters for so many items, the leader first; False when the waiters called before take them all."""
        with self.mutex:
            unclaimed = items - self.taking
            for _ in range(min(unclaimed - 1, len(self.asleep))):
                self._wake(Call.TAKE)
            return unclaimed > 0

    def call_all(self) -> None:
        """Call every waiter."""
        with self.mutex:
            while self.asleep:
                self._wake(Call.TAKE)

    def sleep_until_taken(self, deadline: float) -> bool:
        """Sleep, leading, until a called waiter comes back; False when the deadline has passed before."""
        with self.mutex:
            before = self.taking
            return self._came_back.wait_for(
                lambda: self.taking < before or not before, min(deadline - time.monotonic(), threading.TIMEOUT_MAX)
            )

    def _wake(self, call: Call) -> Waiter:
        waiter, _ = self.asleep.popitem(last=False)
        waiter.call = call
        if call is Call.TAKE:
            self.taking += 1
        waiter.turn.release()
        return waiter

    def _appoint(self) -> None:
        if self.leader is None and self.asleep:
            self.leader = self._wake(Call.LEAD)

    def _done(self, waiter: Waiter) -> None:
        """Forget what the waiter was told."""
        if waiter.call is Call.TAKE:
            self.taking -= 1
            self._came_back.notify_all()
        elif waiter.call is Call.LEAD:
            self.leader = None
        if waiter.call is not None:
            waiter.call = None
            waiter.turn.acquire(blocking=False)  # still open when the deadline passed as the call came


class WaitQueues:
    """The wait queues of one open store, by queue; each is there while it has waiters. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queues: weakref.WeakValueDictionary[int, WaitQueue] = weakref.WeakValueDictionary()

    def of(self, queue_id: int) -> WaitQueue:
        """Return the wait queue of a queue."""
        with self._mutex:
            waiting = self._queues.get(queue_id)
            if waiting is None:
                waiting = self._queues[queue_id] = WaitQueue()
            return waiting
