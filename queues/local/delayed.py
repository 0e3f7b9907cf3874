"""Items that are not due yet, and those that are due but do not compare with the ones that are ready."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from queues.local.ordered import Ordered

T = TypeVar("T")


class Delayed(Generic[T]):
    """Items by their due time, the first in first among those due together. Not thread-safe."""

    __slots__ = ("_heap", "_numbers", "held", "size")

    def __init__(self) -> None:
        # The number decides between equal times, so that items are never compared here.
        self._heap: list[tuple[float, int, T]] = []
        self._numbers = count()
        #: Due, but the comparison with a ready item raised. Whoever put it has gone on, and whoever takes another item
        #: has done nothing wrong: it stays here until the ready items that are in its way have been taken.
        self.held: deque[T] = deque()
        self.size = 0

    @property
    def next_due(self) -> float | None:
        """When the next item becomes due; None when none will."""
        return self._heap[0][0] if self._heap else None

    def add(self, due: float, item: T) -> bool:
        """Keep an item until it is due; tell whether it is now the next one."""
        number = next(self._numbers)
        heappush(self._heap, (due, number, item))
        self.size += 1
        return self._heap[0][1] == number

    def move_due(self, now: float, ready: Ordered[T]) -> int:
        """Move what is due to the ready items; return how many."""
        moved = 0
        while self._heap and self._heap[0][0] <= now:
            item = heappop(self._heap)[2]
            if _fits(item, ready):
                self.size -= 1
                moved += 1
            else:
                self.held.append(item)
        return moved

    def move_held(self, ready: Ordered[T]) -> int:
        """Move the held items that fit since one was taken; return how many. With nothing ready the first fits."""
        moved = 0
        while self.held and _fits(self.held[0], ready):
            self.held.popleft()
            self.size -= 1
            moved += 1
        return moved

    def clear(self) -> list[T]:
        """Take all items at once."""
        items = [*self.held, *(item for _, _, item in self._heap)]
        self.held.clear()
        self._heap.clear()
        self.size = 0
        return items


def _fits(item: T, ready: Ordered[T]) -> bool:
    """Add an item to the ready ones; tell whether it compared with them."""
    try:
        ready.add(item)
    except Exception:  # comparisons are the items' own code
        return False
    return True
