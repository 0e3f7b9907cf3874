"""Who waits for items of one queue in this process: the first in line leads and alone watches the store.

When there are items, the leader calls one waiter for each; all others sleep on. Whoever leaves the line while leading
hands the lead to the next. So a change wakes one thread of a process, and an item one waiter, however many there are.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from enum import Enum
from typing import Any


class Call(Enum):
    """Why a waiter was woken."""

    LEAD = "watch the store, and call others"
    TAKE = "there may be an item for you"


class Place:
    """One waiter's place in a line, and the lock that it sleeps on."""

    __slots__ = ("call", "turn")

    def __init__(self) -> None:
        #: What the waiter was last told and has not finished yet.
        self.call: Call | None = None
        self.turn = threading.Lock()
        self.turn.acquire()


class Line:
    """The waiters of one queue, in the order in which they came. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._asleep: OrderedDict[Place, None] = OrderedDict()
        self._leader: Place | None = None
        #: Waiters that were called and have not come back yet.
        self._taking = 0
        self._came_back = threading.Condition(self._mutex)
        #: What looks out for a coroutine that leads: see queues/aio/.
        self.lookout: Any = None

    def enter(self, place: Place) -> None:
        """Stand at the end of the line."""
        with self._mutex:
            self._asleep[place] = None
            self._appoint()

    def sleep(self, place: Place, deadline: float) -> Call | None:
        """Sleep until called; None when the deadline (monotonic) has passed before."""
        left = deadline - time.monotonic()
        if left > 0:
            place.turn.acquire(timeout=min(left, threading.TIMEOUT_MAX))
        with self._mutex:
            return place.call

    def stand_again(self, place: Place) -> None:
        """Go back to the head of the line: there was no item for the waiter who was called."""
        with self._mutex:
            self._done(place)
            self._asleep[place] = None
            self._asleep.move_to_end(place, last=False)
            self._appoint()

    def leave(self, place: Place) -> None:
        """Leave the line, with an item or without; the lead passes on."""
        with self._mutex:
            self._asleep.pop(place, None)
            self._done(place)
            self._appoint()

    def call(self, items: int) -> bool:
        """Call waiters for so many items, the leader first; False when those who were called before take them all."""
        with self._mutex:
            unclaimed = items - self._taking
            for _ in range(min(unclaimed - 1, len(self._asleep))):
                self._wake(Call.TAKE)
            return unclaimed > 0

    def call_all(self) -> None:
        """Have every waiter see for himself."""
        with self._mutex:
            while self._asleep:
                self._wake(Call.TAKE)

    def sleep_until_taken(self, deadline: float) -> bool:
        """Sleep, leading, until one of those who were called comes back; False when the deadline has passed before."""
        with self._mutex:
            before = self._taking
            return self._came_back.wait_for(
                lambda: self._taking < before or not before, min(deadline - time.monotonic(), threading.TIMEOUT_MAX)
            )

    def _wake(self, call: Call) -> Place:
        place, _ = self._asleep.popitem(last=False)
        place.call = call
        if call is Call.TAKE:
            self._taking += 1
        place.turn.release()
        return place

    def _appoint(self) -> None:
        if self._leader is None and self._asleep:
            self._leader = self._wake(Call.LEAD)

    def _done(self, place: Place) -> None:
        """Forget what the waiter was told."""
        if place.call is Call.TAKE:
            self._taking -= 1
            self._came_back.notify_all()
        elif place.call is Call.LEAD:
            self._leader = None
        if place.call is not None:
            place.call = None
            place.turn.acquire(blocking=False)  # still open when the deadline passed as the call came


class Lines:
    """The lines of one open store, by queue; a line is there while somebody stands in it. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._lines: weakref.WeakValueDictionary[int, Line] = weakref.WeakValueDictionary()

    def of(self, queue_id: int) -> Line:
        """Return the line of a queue."""
        with self._mutex:
            line = self._lines.get(queue_id)
            if line is None:
                line = self._lines[queue_id] = Line()
            return line
