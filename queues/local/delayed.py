"""Delayed items, and due ones that do not compare with the ready items."""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from queues.local.ordered import Ordered

T = TypeVar("T")


class Delayed(Generic[T]):
    """Items by due time, then by arrival. Not thread-safe."""

    __slots__ = ("_heap", "_numbers", "held", "size")

    def __init__(self) -> None:
        # The number decides between equal times, so that items are never compared here.
        self._heap: list[tuple[float, int, T]] = []
        self._numbers = count()
        #: Due, but the comparison with a ready item raised. The item stays here until the ready items in its way have
        #: been taken.
        self.held: deque[T] = deque()
        self.size = 0

    @property
    def next_due(self) -> float | None:
        """When the next item becomes due; None when none will."""
        return self._heap[0][0] if self._heap else None

    def add(self, due: float, item: T) -> bool:
        """Add an item; return whether it is now the next one."""
        number = next(self._numbers)
        heappush(self._heap, (due, number, item))
        self.size += 1
        return self._heap[0][1] == number

    def move_due(self, now: float, ready: Ordered[T]) -> int:
        """Move due items to the ready ones; return their number."""
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
        """Move held items that compare with the ready ones now; return their number."""
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
    """Add an item to the ready ones; return whether it compared with them."""
    try:
        ready.add(item)
    except Exception:  # comparisons are the items' own code
        return False
    return True
