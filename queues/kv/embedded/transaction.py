"""What a function sees of an LMDB transaction: reads, and writes that can be undone one function at a time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import islice
from typing import NoReturn, cast

import lmdb

from queues.kv.embedded.failures import EngineFailure
from queues.kv.errors import StoreError, TransactionEnded
from queues.kv.limits import KEYS_END, added, check_key, check_limit, check_value, raised, too_large, too_old
from queues.kv.port import MAX_TRANSACTION_SECONDS, MAX_TRANSACTION_SIZE, KeyValue
from queues.kv.results import Ready


class _Ended:
    """Stands where the cursor was once the function has returned; any use of it raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise TransactionEnded("The transaction was used after its function had returned.")


_ENDED = cast("lmdb.Cursor[bytes]", _Ended())
_NO_TXN = cast("lmdb.Transaction[bytes]", _Ended())


def scan(cursor: lmdb.Cursor[bytes], begin: bytes, end: bytes, limit: int, *, reverse: bool) -> list[KeyValue]:
    """Collect at most `limit` pairs of [begin, end) from either side."""
    end = min(end, KEYS_END)
    if begin >= end:
        return []
    pairs = []
    if reverse:
        found = cursor.prev() if cursor.set_range(end) else cursor.last()
        if found:
            for pair in islice(cursor.iterprev(), limit):
                if pair[0] < begin:
                    break
                pairs.append(pair)
    elif cursor.set_range(begin) if begin else cursor.first():
        for pair in islice(cursor.iternext(), limit):
            if pair[0] >= end:
                break
            pairs.append(pair)
    return pairs


def first_key(cursor: lmdb.Cursor[bytes], begin: bytes, end: bytes, *, reverse: bool) -> bytes | None:
    """Find the first or last key of [begin, end) without reading values."""
    end = min(end, KEYS_END)
    if begin >= end:
        return None
    if reverse:
        found = cursor.prev() if cursor.set_range(end) else cursor.last()
    else:
        found = cursor.set_range(begin) if begin else cursor.first()
    if not found:
        return None
    key = cursor.key()
    return key if begin <= key < end else None


class EmbeddedReads:
    """The reads of one LMDB read transaction."""

    __slots__ = ("_clock", "_cursor", "_deadline", "_txn", "_version", "reads")

    def __init__(self, txn: lmdb.Transaction[bytes], clock: Callable[[], float]) -> None:
        self._txn = txn
        self._cursor: lmdb.Cursor[bytes] = txn.cursor()
        self._version = txn.id()
        self._clock = clock
        self._deadline = clock() + MAX_TRANSACTION_SECONDS
        self.reads = 0

    def get(self, key: bytes) -> Ready[bytes | None]:
        """Read one key's value."""
        check_key(key)
        self._check_time()
        self.reads += 1
        return Ready(self._txn.get(key))

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        self._check_time()
        self.reads += 1
        return Ready(first_key(self._cursor, begin, end, reverse=reverse))

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Ready[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        check_limit(limit)
        self._check_time()
        self.reads += 1
        return Ready(scan(self._cursor, begin, end, limit, reverse=reverse))

    def get_read_version(self) -> int:
        """Return the number of the last commit that this transaction sees."""
        self._check_time()
        return self._version

    def end(self) -> None:
        """Make any further use raise, and let the cursor go."""
        cursor, self._cursor, self._txn = self._cursor, _ENDED, _NO_TXN
        if cursor is not _ENDED:
            cursor.close()

    def _check_time(self) -> None:
        if self._cursor is _ENDED:
            self._cursor.key()
        if self._clock() > self._deadline:
            raise too_old()


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
        #: How to undo what was written, oldest first: (key, old value) and (key, old sum, True).
        self.log: list[tuple[bytes, bytes | None] | tuple[bytes, int | None, bool]] = []
        self.size = 0
        self.stamps = 0

    def keys(self) -> set[bytes]:
        """Return every key that this batch has written."""
        return {entry[0] for entry in self.log}

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
        cursor, log = self.cursor, self.log
        while len(log) > mark:
            entry = log.pop()
            if len(entry) == 2:
                key, old = entry
                if old is not None:
                    cursor.put(key, old)
                elif cursor.set_key(key):
                    cursor.delete()
            else:
                key, total, _ = entry
                if total is None:
                    del self.adds[key]
                    del self.added_keys[bisect_left(self.added_keys, key)]
                else:
                    if key not in self.adds:
                        insort(self.added_keys, key)
                    self.adds[key] = total


class EmbeddedTransaction(EmbeddedReads):
    """One function's view of a batch: it sees its neighbours' earlier writes and its own."""

    __slots__ = ("_batch", "_grown", "_reserve", "_size", "failure")

    def __init__(self, batch: Batch, clock: Callable[[], float]) -> None:
        self._batch = batch
        self._txn = batch.txn
        self._cursor = batch.cursor
        self._version = batch.version
        self._clock = clock
        self._deadline = clock() + MAX_TRANSACTION_SECONDS
        self._size = 0
        self._grown = 0
        self._reserve = False
        self.reads = 0
        #: Why the transaction can not be committed, even if its function goes on as if nothing had happened.
        self.failure: StoreError | EngineFailure | None = None

    @property
    def snapshot(self) -> EmbeddedTransaction:
        """This transaction itself: one writer at a time has no conflicts."""
        return self

    def get(self, key: bytes) -> Ready[bytes | None]:
        """Read one key's value."""
        check_key(key)
        self._check_time()
        self.reads += 1
        try:
            if key in self._batch.adds:
                self._batch.flush([key])
            return Ready(self._txn.get(key))
        except lmdb.Error as error:
            raise self._broken(error) from error

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        self._check_time()
        self.reads += 1
        try:
            if sums := self._batch.sums_in(begin, end):
                self._batch.flush(sums)
            return Ready(first_key(self._cursor, begin, end, reverse=reverse))
        except lmdb.Error as error:
            raise self._broken(error) from error

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Ready[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        check_limit(limit)
        self._check_time()
        self.reads += 1
        try:
            if sums := self._batch.sums_in(begin, end):
                self._batch.flush(sums)
            return Ready(scan(self._cursor, begin, end, limit, reverse=reverse))
        except lmdb.Error as error:
            raise self._broken(error) from error

    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair."""
        check_key(key)
        check_value(value)
        size = len(key) + len(value)
        self._grow(size)
        batch = self._batch
        try:
            if key in batch.adds:
                batch.forget_sum(key)
            old = self._cursor.replace(key, value)
        except lmdb.Error as error:
            raise self._broken(error) from error
        batch.log.append((key, old))
        self._grown += size if old is None else len(value) - len(old)

    def clear(self, key: bytes) -> None:
        """Remove one key."""
        check_key(key)
        self._grow(len(key))
        batch = self._batch
        try:
            if key in batch.adds:
                batch.forget_sum(key)
            old = self._cursor.pop(key)
        except lmdb.Error as error:
            raise self._broken(error) from error
        if old is not None:
            batch.log.append((key, old))
            self._grown -= len(key) + len(old)

    def clear_range(self, begin: bytes, end: bytes) -> None:
        """Remove every key in [begin, end)."""
        self._grow(len(begin) + len(end))
        batch, cursor = self._batch, self._cursor
        end = min(end, KEYS_END)
        try:
            for key in batch.sums_in(begin, end):
                batch.forget_sum(key)
            found = begin < end and (cursor.set_range(begin) if begin else cursor.first())
            while found and (pair := cursor.item())[0] < end:
                found = cursor.delete() and cursor.key() != b""
                batch.log.append(pair)
                size = len(pair[0]) + len(pair[1])
                batch.size += size  # kept in memory until the commit
                self._grown -= size
        except lmdb.Error as error:
            raise self._broken(error) from error

    def add(self, key: bytes, delta: int) -> None:
        """Add to a 64-bit little-endian counter without reading it."""
        check_key(key)
        self._grow(len(key) + 8)
        self._batch.set_sum(key, delta)

    def max(self, key: bytes, value: int) -> None:
        """Raise an unsigned 64-bit little-endian number to at least `value`."""
        check_key(key)
        raised(None, value)
        self._grow(len(key) + 8)
        batch, cursor = self._batch, self._cursor
        try:
            if key in batch.adds:
                batch.flush([key])
            old = self._txn.get(key)
            cursor.put(key, raised(old, value))
        except lmdb.Error as error:
            raise self._broken(error) from error
        batch.log.append((key, old))

    def add_read_conflict_key(self, key: bytes) -> None:
        """Check the key: one writer at a time has no conflicts."""
        check_key(key)
        self._check_time()

    def add_read_conflict_range(self, begin: bytes, end: bytes) -> None:
        """Do nothing: one writer at a time has no conflicts."""
        self._check_time()

    def use_reserve(self) -> None:
        """Let this transaction grow a store that is over its limit."""
        self._check_time()
        self._reserve = True

    def stamp(self) -> int:
        """Return the next push-order number: this commit's number · 2²⁰ + the stamp's place in it."""
        if self._cursor is _ENDED:
            self._check_time()
        batch = self._batch
        batch.stamps += 1
        return (batch.version << 20) + batch.stamps

    def finish(self) -> None:
        """Raise what keeps this transaction from being committed."""
        self._check_time()
        if self.failure is not None:
            raise self.failure
        self._batch.size += self._size
        self._batch.room -= self._grown

    def lacks_room(self) -> bool:
        """Tell whether this transaction grows a store that has no room for it."""
        return 0 < self._grown > self._batch.room and not self._reserve

    def end(self) -> None:
        """Make any further use raise; the cursor belongs to the batch."""
        self._cursor, self._txn = _ENDED, _NO_TXN

    def _grow(self, size: int) -> None:
        if self._cursor is _ENDED:
            self._check_time()
        self._size += size
        if self._size > MAX_TRANSACTION_SIZE:
            self.failure = too_large()
            raise self.failure

    def _check_time(self) -> None:
        if self._cursor is _ENDED:
            self._cursor.key()
        if self._clock() > self._deadline:
            self.failure = too_old()
            raise self.failure

    def _broken(self, error: lmdb.Error) -> EngineFailure:
        self.failure = EngineFailure(error)
        return self.failure
