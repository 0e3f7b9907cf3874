"""The functions of one commit: what they wrote, how to undo it, and the sums of what they added."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

import lmdb

from queues.kv.limits import added


class Many:
    """How to undo what was written to many keys at once: their old values, or None when all of them are new."""

    __slots__ = ("_olds", "keys")

    def __init__(self, keys: Sequence[bytes], olds: Sequence[bytes | None] | None = None) -> None:
        self.keys = keys
        self._olds = olds

    def latest_first(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Return each key and its old value."""
        if self._olds is None:
            return ((key, None) for key in reversed(self.keys))
        return zip(reversed(self.keys), reversed(self._olds), strict=True)


class Batch:
    """The functions of one commit: their shared LMDB transaction, what they wrote, and the counters they added to.

    Counters are added up in memory and written once per commit, or when somebody reads them earlier.
    """

    __slots__ = ("added_keys", "adds", "cursor", "log", "room", "size", "stamps", "txn", "version")

    def __init__(self, txn: lmdb.Transaction[bytes], room: int) -> None:
        self.txn = txn
        self.cursor = txn.cursor()
        self.version = txn.id()
        #: Bytes that growing functions may still add.
        self.room = room
        #: Sums not written yet, and their keys in order.
        self.adds: dict[bytes, int] = {}
        self.added_keys: list[bytes] = []
        #: How to undo what was written, oldest first: (key, old value), (key, old sum, True) and many at once.
        self.log: list[tuple[bytes, bytes | None] | tuple[bytes, int | None, bool] | Many] = []
        self.size = 0
        self.stamps = 0

    def keys(self) -> set[bytes]:
        """Return every key that this batch has written."""
        written: set[bytes] = set()
        for entry in self.log:
            if isinstance(entry, Many):
                written.update(entry.keys)
            else:
                written.add(entry[0])
        return written

    def flush(self, keys: list[bytes]) -> None:
        """Write the sums of these keys."""
        cursor, adds, log = self.cursor, self.adds, self.log
        for key in keys:
            delta = adds[key]
            old = self.txn.get(key)
            cursor.put(key, added(old, delta))
            log.append((key, old))
            self.forget_sum(key)

    def flush_all(self) -> None:
        """Write all sums; nothing is undone after this."""
        get, put = self.txn.get, self.cursor.put
        for key in self.added_keys:
            put(key, added(get(key), self.adds[key]))
        self.adds.clear()
        self.added_keys.clear()

    def set_sum(self, key: bytes, delta: int) -> None:
        """Add to the sum of a key."""
        old = self.adds.get(key)
        self.log.append((key, old, True))
        if old is None:
            insort(self.added_keys, key)
            self.adds[key] = delta
        else:
            self.adds[key] = old + delta

    def forget_sum(self, key: bytes) -> None:
        """Drop the sum of a key, because the key was written or cleared."""
        self.log.append((key, self.adds.pop(key), True))
        del self.added_keys[bisect_left(self.added_keys, key)]

    def sums_in(self, begin: bytes, end: bytes) -> list[bytes]:
        """Return the keys in [begin, end) whose sums are not written yet."""
        keys = self.added_keys
        low = bisect_left(keys, begin)
        return keys[low : bisect_left(keys, end, low)] if low < len(keys) and keys[low] < end else []

    def undo(self, mark: int) -> None:
        """Take back all that was written since the log was `mark` entries long."""
        log = self.log
        while len(log) > mark:
            entry = log.pop()
            if isinstance(entry, Many):
                for key, old in entry.latest_first():
                    self._put_back(key, old)
            elif len(entry) == 2:
                self._put_back(*entry)
            else:
                key, total, _ = entry
                if total is None:
                    del self.adds[key]
                    del self.added_keys[bisect_left(self.added_keys, key)]
                else:
                    if key not in self.adds:
                        insort(self.added_keys, key)
                    self.adds[key] = total

    def _put_back(self, key: bytes, old: bytes | None) -> None:
        if old is not None:
            self.cursor.put(key, old)
        elif self.cursor.set_key(key):
            self.cursor.delete()
