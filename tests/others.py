"""Other programs, which write items by FoundationDB's recipes without asking us."""

import itertools
from typing import Any

import fdb.tuple

from queues import Store

#: Where their items lie, unless a test says otherwise.
PREFIX = fdb.tuple.pack(("legacy", "jobs"))


class Others:
    """A program that keeps items under a prefix of the same store, through nothing of ours but the storage port."""

    def __init__(self, store: Store, prefix: bytes = PREFIX) -> None:
        self._kv = store.context.kv
        self.prefix = prefix
        self._count = itertools.count()

    def push(self, *items: tuple[Any, bytes]) -> None:
        """Push (priority, value) pairs as the priority queue's recipe does, in one transaction."""
        keys = [(fdb.tuple.pack((priority, next(self._count), b"\x07" * 20)), value) for priority, value in items]
        self.write(*keys)

    def enqueue(self, *values: bytes) -> None:
        """Push values as the queue's recipe does."""
        self.write(*((fdb.tuple.pack((next(self._count), b"\x07" * 20)), value) for value in values))

    def write(self, *pairs: tuple[bytes, bytes]) -> None:
        """Write any key under the prefix, and any value."""

        def set_all(tr: Any) -> None:
            for suffix, value in pairs:
                tr.set(self.prefix + suffix, value)

        self._kv.transact(set_all)

    def take(self, *, last: bool = False) -> bytes:
        """Take the first item, or the last one, and return its value."""

        def pop(tr: Any) -> bytes:
            ((key, value),) = tr.get_range(self.prefix + b"\x00", self.prefix + b"\xff", limit=1, reverse=last).wait()
            tr.clear(key)
            return bytes(value)

        return self._kv.transact(pop)

    def depth(self) -> int:
        """Count the items."""
        return self._kv.read(
            lambda tr: len(tr.get_range(self.prefix + b"\x00", self.prefix + b"\xff", limit=10_000).wait())
        )
