"""A simulated transaction's snapshot reads."""

from __future__ import annotations

from typing import Protocol

from queues.kv.port import KeyValue, Ready


class Finding(Protocol):
    """What snapshot reads need of their transaction."""

    reads: int

    def find(self, key: bytes, *, conflicting: bool) -> Ready[bytes | None]:
        """Read one key's value, with or without a read conflict."""

    def find_range(
        self, begin: bytes, end: bytes, *, limit: int, reverse: bool, conflicting: bool
    ) -> Ready[list[KeyValue]]:
        """Read pairs of [begin, end), with or without a read conflict on what was looked at."""

    def get_read_version(self) -> int:
        """Return the version that the transaction reads."""


class SnapshotReads:
    """A transaction's reads without read conflicts."""

    def __init__(self, transaction: Finding) -> None:
        self._transaction = transaction

    def get(self, key: bytes) -> Ready[bytes | None]:
        """Read one key's value."""
        return self._transaction.find(key, conflicting=False)

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        return first_key(self._transaction.find_range(begin, end, limit=1, reverse=reverse, conflicting=False))

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Ready[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        return self._transaction.find_range(begin, end, limit=limit, reverse=reverse, conflicting=False)

    def get_read_version(self) -> int:
        """Return the version that the transaction reads."""
        return self._transaction.get_read_version()

    @property
    def reads(self) -> int:
        """How many reads the transaction has issued."""
        return self._transaction.reads


def first_key(found: Ready[list[KeyValue]]) -> Ready[bytes | None]:
    """Return the key of the only pair that was found."""
    pairs = found.wait()
    return Ready(pairs[0][0] if pairs else None)
