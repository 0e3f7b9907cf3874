"""Limits of concurrency: how many connections, requests or sockets one address or person has at once."""

from collections import Counter
from collections.abc import Hashable


class Places:
    """Places for each key, at most `limit`; 0 is no limit. Used in one event loop only."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: Counter[Hashable] = Counter()

    def free(self, key: Hashable) -> bool:
        """Return whether one more place can be taken."""
        return not self._limit or self._taken.get(key, 0) < self._limit

    def take(self, key: Hashable) -> bool:
        """Take a place if one is free; say whether."""
        if not self.free(key):
            return False
        self._taken[key] += 1
        return True

    def give_back(self, key: Hashable) -> None:
        """Free a place that was taken."""
        self._taken[key] -= 1
        if self._taken[key] <= 0:
            del self._taken[key]
