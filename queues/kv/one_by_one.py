"""Many writes at once, for engines that gain nothing by it: one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class OneByOne(ABC):
    """The plural forms of what a transaction does to one key."""

    __slots__ = ()

    @abstractmethod
    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair."""

    @abstractmethod
    def clear(self, key: bytes) -> None:
        """Remove one key."""

    @abstractmethod
    def add_read_conflict_key(self, key: bytes) -> None:
        """Fail this commit if another transaction writes `key` first."""

    @abstractmethod
    def stamp(self) -> int:
        """Return the next push-order number."""

    def set_new(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs whose keys nobody has written."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def clear_many(self, keys: Sequence[bytes]) -> None:
        """Remove these keys."""
        for key in keys:
            self.clear(key)

    def add_read_conflict_keys(self, keys: Sequence[bytes]) -> None:
        """Fail this commit if another transaction writes one of these keys first."""
        for key in keys:
            self.add_read_conflict_key(key)

    def stamps(self, n: int) -> range:
        """Return the next `n` push-order numbers, at least one."""
        first = self.stamp()
        for _ in range(n - 1):
            self.stamp()
        return range(first, first + n)
