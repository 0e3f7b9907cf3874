"""What a function sees of a batch: reads, and writes that can be undone one function at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import lmdb

from queues.kv.embedded.batch import Batch, Many
from queues.kv.embedded.failures import EngineFailure
from queues.kv.embedded.reads import ENDED, NO_TXN, EmbeddedReads, first_key, scan
from queues.kv.errors import StoreError
from queues.kv.limits import KEYS_END, check_key, check_limit, check_value, raised, too_large, too_old
from queues.kv.port import (
    MAX_KEY_SIZE,
    MAX_TRANSACTION_SECONDS,
    MAX_TRANSACTION_SIZE,
    MAX_VALUE_SIZE,
    KeyValue,
    Ready,
)


class EmbeddedTransaction(EmbeddedReads):
    """One function's view of a batch: it sees its neighbors' earlier writes and its own."""

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
        #: Why the transaction cannot be committed, even if its function goes on as if nothing had happened.
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
        replace = self._cursor.replace
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:  # asked here too: a call costs more
            check_key(key)
        if type(value) is not bytes or len(value) > MAX_VALUE_SIZE:
            check_value(value)
        size = len(key) + len(value)
        self._size += size
        if self._size > MAX_TRANSACTION_SIZE:
            self._refuse_size()
        batch = self._batch
        try:
            if key in batch.adds:
                batch.forget_sum(key)
            old = replace(key, value)
        except lmdb.Error as error:
            raise self._broken(error) from error
        batch.log.append((key, old))
        self._grown += size if old is None else len(value) - len(old)

    def set_new(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs whose keys nobody has written, in one loop of the engine.

        Nothing is kept for the undo but the keys. That is safe, because the engine does not overwrite and counts: if
        one of them existed, the whole batch is given up.
        """
        put = self._cursor.putmulti
        if not keys:
            return
        grown = sum(map(len, values))
        # Only values that are large together can hold one that is too large.
        large = max(map(len, values)) if grown > MAX_VALUE_SIZE else 0
        if large > MAX_VALUE_SIZE or max(map(len, keys)) > MAX_KEY_SIZE:
            for key, value in zip(keys, values, strict=True):
                check_key(key)
                check_value(value)
        grown += len(b"".join(keys))
        self._size += grown
        if self._size > MAX_TRANSACTION_SIZE:
            self._refuse_size()
        try:
            _, new = put(zip(keys, values, strict=True), overwrite=False)
            if new != len(keys):
                raise lmdb.KeyExistsError("A key that was minted exists already.")
        except lmdb.Error as error:
            raise self._broken(error) from error
        self._batch.log.append(Many(keys))
        self._grown += grown

    def clear_many(self, keys: Sequence[bytes]) -> None:
        """Remove these keys."""
        pop = self._cursor.pop
        size = len(b"".join(keys))
        self._size += size
        if self._size > MAX_TRANSACTION_SIZE:
            self._refuse_size()
        try:
            olds = list(map(pop, keys))
        except lmdb.Error as error:
            raise self._broken(error) from error
        self._batch.log.append(Many(keys, olds))
        if None in olds:
            self._grown -= sum(len(key) + len(old) for key, old in zip(keys, olds, strict=True) if old is not None)
        else:
            self._grown -= size + sum(map(len, olds))  # type: ignore[arg-type]

    def clear(self, key: bytes) -> None:
        """Remove one key."""
        pop = self._cursor.pop
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:
            check_key(key)
        self._size += len(key)
        if self._size > MAX_TRANSACTION_SIZE:
            self._refuse_size()
        batch = self._batch
        try:
            if key in batch.adds:
                batch.forget_sum(key)
            old = pop(key)
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
        size = len(key)
        if size > MAX_KEY_SIZE or not b"" < key < KEYS_END:
            check_key(key)
        if self._cursor is ENDED:
            self._check_time()
        self._size += size + 8
        if self._size > MAX_TRANSACTION_SIZE:
            self._refuse_size()
        batch = self._batch
        adds = batch.adds
        old = adds.get(key)
        if old is None:
            batch.set_sum(key, delta)
        else:  # as `set_sum` does: most sums of a batch are added to more than once
            batch.log.append((key, old, True))
            adds[key] = old + delta

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
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:
            check_key(key)
        if self._cursor is ENDED:
            self._check_time()

    def add_read_conflict_keys(self, keys: Sequence[bytes]) -> None:
        """Do nothing: one writer at a time has no conflicts."""
        if self._cursor is ENDED:
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
        if self._cursor is ENDED:
            self._check_time()
        batch = self._batch
        batch.stamps += 1
        return (batch.version << 20) + batch.stamps

    def stamps(self, n: int) -> range:
        """Return the next `n` of them."""
        if self._cursor is ENDED:
            self._check_time()
        batch = self._batch
        first = (batch.version << 20) + batch.stamps + 1
        batch.stamps += n
        return range(first, first + n)

    def finish(self) -> None:
        """Raise what keeps this transaction from being committed."""
        self._check_time()
        if self.failure is not None:
            raise self.failure

    def lacks_room(self) -> bool:
        """Tell whether this transaction grows a store that has no room for it."""
        return 0 < self._grown > self._batch.room and not self._reserve

    def join_batch(self) -> None:
        """Count what this transaction writes into its batch, now that it will be committed."""
        self._batch.size += self._size
        self._batch.room -= self._grown

    def end(self) -> None:
        """Make any further use raise; the cursor belongs to the batch."""
        self._cursor, self._txn = ENDED, NO_TXN

    def _grow(self, size: int) -> None:
        if self._cursor is ENDED:
            self._check_time()
        self._size += size
        if self._size > MAX_TRANSACTION_SIZE:
            self._refuse_size()

    def _refuse_size(self) -> NoReturn:
        self.failure = too_large()
        raise self.failure

    def _check_time(self) -> None:
        if self._cursor is ENDED:
            self._cursor.key()
        if self._clock() > self._deadline:
            self.failure = too_old()
            raise self.failure

    def _broken(self, error: lmdb.Error) -> EngineFailure:
        self.failure = EngineFailure(error)
        return self.failure
