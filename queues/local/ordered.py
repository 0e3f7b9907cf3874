"""Sorted list of items, which are taken from either end.

Sorted chunks of bounded size, and the first item of each chunk but the first as signposts. Two binary searches in C
find an item's place: O(log n) comparisons, and at most one chunk's pointers move. Taking from an end compares nothing.
Advantages over heaps:

- both ends, with no second heap and no garbage in it;
- first in, first out among equals without a number beside each item, for items that only have `<`;
- all comparisons happen on arrival, and before anything moves: an item that does not compare is refused with the
  order untouched, and no get ever raises for it.
"""

from bisect import bisect_right, insort_right
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

#: A chunk that grows beyond this is split into halves: larger ones move more pointers, smaller ones need more chunks.
_FULL = 512


class Ordered(Generic[T]):
    """Items in ascending order, equal ones by arrival. Not thread-safe."""

    __slots__ = ("_chunks", "_firsts", "size")

    def __init__(self) -> None:
        # No chunk is empty, unless it is the only one. Items leave at the ends alone: no signpost outlives its item.
        self._chunks: list[list[Any]] = [[]]
        self._firsts: list[Any] = []
        self.size = 0

    def add(self, item: T) -> None:
        """Insert an item behind its equals; if a comparison raises, nothing is changed."""
        chunks = self._chunks
        place = bisect_right(self._firsts, item) if self._firsts else 0
        chunk = chunks[place]
        insort_right(chunk, item)
        self.size += 1
        if len(chunk) > _FULL:
            half = chunk[_FULL // 2 :]
            del chunk[_FULL // 2 :]
            chunks.insert(place + 1, half)
            self._firsts.insert(place, half[0])

    def check(self, item: T) -> None:
        """Raise what the comparisons of `add` would raise."""
        chunk = self._chunks[bisect_right(self._firsts, cast("Any", item))]
        bisect_right(chunk, cast("Any", item))

    def pop_min(self) -> T:
        """Take the smallest item, the oldest among equals; IndexError when there is none."""
        chunk = self._chunks[0]
        item: T = chunk.pop(0)
        self.size -= 1
        if not chunk and self._firsts:
            del self._chunks[0]
            del self._firsts[0]
        return item

    def pop_max(self) -> T:
        """Take the largest item, the newest among equals; IndexError when there is none."""
        chunk = self._chunks[-1]
        item: T = chunk.pop()
        self.size -= 1
        if not chunk and self._firsts:
            del self._chunks[-1]
            del self._firsts[-1]
        return item

    def min(self) -> T:
        """Return the item that `pop_min` would take."""
        item: T = self._chunks[0][0]
        return item

    def max(self) -> T:
        """Return the item that `pop_max` would take."""
        item: T = self._chunks[-1][-1]
        return item

    def clear(self) -> list[list[T]]:
        """Take all items at once."""
        chunks = self._chunks
        self._chunks, self._firsts, self.size = [[]], [], 0
        return chunks
