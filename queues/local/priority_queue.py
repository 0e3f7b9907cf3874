"""`PriorityQueue`: that of the standard library, with both ends, peeks and delayed items."""

import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from queue import Empty, Full
from typing import Generic, TypeVar

from queues.local.delayed import Delayed
from queues.local.ordered import Ordered
from queues.local.sleepers import Sleepers

if sys.version_info >= (3, 13):
    from queue import ShutDown
else:

    class ShutDown(Exception):
        """The queue was shut down: nothing can be put, and it is empty."""


T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A double-ended priority queue for the threads of one process; the smallest item comes first.

    An item put with `due` is invisible to get and peek until then, but counts in qsize, maxsize and join.
    """

    def __init__(self, maxsize: int = 0, *, clock: Callable[[], float] = time.time) -> None:
        """Make an empty queue; `clock` (seconds since the epoch) decides due times."""
        self.maxsize = maxsize
        self.unfinished_tasks = 0
        self.is_shutdown = False
        self.mutex = threading.Lock()
        self._clock = clock
        self._ready: Ordered[T] = Ordered()
        self._delayed: Delayed[T] = Delayed()
        self.not_empty = Sleepers(self.mutex)
        self.not_full = Sleepers(self.mutex)
        self.all_tasks_done = Sleepers(self.mutex)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._size()} items>"  # without the mutex, which this thread may hold

    def put(self, item: T, block: bool = True, timeout: float | None = None, due: datetime | None = None) -> None:
        """Put an item, to be taken when `due`. Wait for room, at most `timeout` seconds, or raise Full.

        TypeError when the item does not compare with those that are ready: the queue stays as it was.
        """
        when = None if due is None else _seconds(due)
        with self.mutex:
            try:
                if self.is_shutdown:
                    raise ShutDown
                if self.maxsize > 0:
                    self._await_room(block, timeout)
                if self._delayed.size:
                    self._move_due()  # items that became due before this one precede it among equals
                if when is None or when <= self._clock():
                    self._ready.add(item)
                    if self.not_empty.asleep:
                        self.not_empty.wake(1)
                else:
                    self._ready.check(item)
                    if self._delayed.add(when, item):
                        self.not_empty.wake_all()  # they sleep until a later time
                self.unfinished_tasks += 1
            except BaseException:
                self.not_full.wake(1)  # another thread gets the room for which this one was woken
                raise

    def put_nowait(self, item: T, due: datetime | None = None) -> None:
        """Put an item if there is room now, otherwise raise Full."""
        self.put(item, block=False, due=due)

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the smallest item that is due, the oldest among equals. Wait for one, at most `timeout` seconds."""
        return self._take(self._ready.pop_min, block, timeout)

    def get_nowait(self) -> T:
        """Take the smallest item that is due now, or raise Empty."""
        return self._take(self._ready.pop_min, False, None)

    def get_max(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the largest item that is due, the newest among equals. Wait for one, at most `timeout` seconds."""
        return self._take(self._ready.pop_max, block, timeout)

    def peek_min(self) -> T:
        """Return the item that `get` would take now, or raise Empty."""
        return self._peek(self._ready.min)

    def peek_max(self) -> T:
        """Return the item that `get_max` would take now, or raise Empty."""
        return self._peek(self._ready.max)

    def qsize(self) -> int:
        """Return the number of items, those that are not due yet included."""
        with self.mutex:
            return self._size()

    def empty(self) -> bool:
        """Return whether there are no items, neither ready nor delayed."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Return whether there is no room for another item."""
        return 0 < self.maxsize <= self.qsize()

    def task_done(self) -> None:
        """Report the work on a taken item as done."""
        with self.mutex:
            if self.unfinished_tasks <= 0:
                raise ValueError("task_done() called too many times")
            self.unfinished_tasks -= 1
            if not self.unfinished_tasks:
                self.all_tasks_done.wake_all()

    def join(self) -> None:
        """Wait until every item ever put was taken and its work is done."""
        with self.mutex:
            while self.unfinished_tasks:
                self.all_tasks_done.sleep(None)

    def shutdown(self, immediate: bool = False) -> None:
        """Refuse puts; items can still be taken, delayed ones when due, unless `immediate` drops them.

        Then put, and get once nothing is left, raise ShutDown, also where they wait already.
        """
        dropped: list[object] = []
        with self.mutex:
            self.is_shutdown = True
            if immediate:
                self.unfinished_tasks = max(0, self.unfinished_tasks - self._size())
                dropped += (self._ready.clear(), self._delayed.clear())
                if not self.unfinished_tasks:
                    self.all_tasks_done.wake_all()
            self.not_empty.wake_all()
            self.not_full.wake_all()
        dropped.clear()  # outside of the mutex: destructors of items may use the queue

    def _size(self) -> int:
        return self._ready.size + self._delayed.size

    def _take(self, pop: Callable[[], T], block: bool, timeout: float | None) -> T:
        """Take an item with `pop`, waiting for one."""
        if timeout is not None and block:
            _check(timeout)
        with self.mutex:
            if self._delayed.size:
                self._move_due()
            if not self._ready.size:
                self._await_item(block, timeout)
            item = pop()
            if self._delayed.held:
                self.not_empty.wake(self._delayed.move_held(self._ready))
            if self.not_full.asleep:
                self.not_full.wake(1)
            if self.is_shutdown and not self._size():
                self.not_empty.wake_all()  # they waited for delayed items: this was the last one
            return item

    def _peek(self, look: Callable[[], T]) -> T:
        with self.mutex:
            if self._delayed.size:
                self._move_due()
            if not self._ready.size:
                raise Empty
            return look()

    def _await_item(self, block: bool, timeout: float | None) -> None:
        """Return when an item is ready, or raise Empty or ShutDown."""
        deadline = time.monotonic() + timeout if block and timeout is not None else None
        try:
            while not self._ready.size:
                if self.is_shutdown and not self._delayed.size:
                    raise ShutDown
                remaining = None if deadline is None else deadline - time.monotonic()
                if not block or (remaining is not None and remaining <= 0):
                    raise Empty
                next_due = self._delayed.next_due
                until_due = None if next_due is None else next_due - self._clock()
                given = [each for each in (remaining, until_due) if each is not None]
                self.not_empty.sleep(min(given, default=None))
                self._move_due()
        except BaseException:
            self.not_empty.wake(1)  # another thread gets the item for which this one was woken
            raise

    def _await_room(self, block: bool, timeout: float | None) -> None:
        """Return when there is room for an item, or raise Full or ShutDown."""
        if not block:
            if self._size() >= self.maxsize:
                raise Full
            return
        if timeout is not None:
            _check(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._size() >= self.maxsize:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise Full
            self.not_full.sleep(remaining)
            if self.is_shutdown:
                raise ShutDown

    def _move_due(self) -> None:
        """Make due items ready, and wake a getter for each."""
        self.not_empty.wake(self._delayed.move_due(self._clock(), self._ready))


def _seconds(due: object) -> float:
    """Return an aware datetime as seconds since the epoch."""
    if not isinstance(due, datetime):
        raise TypeError(f"'due' must be an aware datetime, not {type(due).__name__}")
    if due.utcoffset() is None:
        raise ValueError("'due' must be an aware datetime: this one has no time zone")
    return due.timestamp()


def _check(timeout: float) -> None:
    if timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")
