"""One transaction of a cluster: the port's reads and writes on the binding's."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import fdb

from queues.kv.cluster import native
from queues.kv.cluster.failures import TRANSACTION_TIMED_OUT, TRANSACTION_TOO_OLD, of_commit, of_reading
from queues.kv.errors import StoreError, TransactionEnded
from queues.kv.limits import KEYS_END, check_key, check_limit, check_value, raised, too_large, too_old
from queues.kv.port import MAX_TRANSACTION_SECONDS, MAX_TRANSACTION_SIZE, Count, KeyValue, Ready, Result

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Stamps per read version: FoundationDB's versions grow by a million a second.
STAMPS_PER_VERSION = 4_096
#: The tag by which operators find and throttle background work (`fdbcli> throttle`).
BACKGROUND_TAG = "pqadmin-bg"

#: Seconds: from when on a transaction is near its end; and how long an answer takes that was there already.
_OLD, _AT_ONCE = 0.9 * MAX_TRANSACTION_SECONDS, 0.5

#: What each recovery of the cluster writes: where the epoch before it ended.
_RECOVERED = b"\xff/globals/lastEpochEnd"
#: The key on which a counting transaction conflicts; it is never read or written.
_COUNTED = b"pqadmin counts"

_DELTA = struct.Struct("<Q")


class Pending(Generic[T_co]):
    """A read that is under way; holds its transaction, which must outlive it."""

    __slots__ = ("_answer", "_future", "_transaction")

    def __init__(self, transaction: ClusterTransaction, future: Any, answer: Callable[[], T_co]) -> None:
        self._transaction = transaction
        self._future = future
        self._answer = answer

    def wait(self) -> T_co:
        """Return the answer, blocking until it is there."""
        began = time.monotonic()
        try:
            native.block(self._future)
            return self._answer()
        except fdb.FDBError as error:
            raise self._transaction.failed(error, time.monotonic() - began) from error


class ClusterReads:
    """A transaction's reads, of one kind: with read conflicts, or (snapshot) without."""

    __slots__ = ("_source", "_transaction")

    def __init__(self, transaction: ClusterTransaction, source: Any) -> None:
        self._transaction = transaction
        self._source = source

    def get(self, key: bytes) -> Result[bytes | None]:
        """Read one key's value."""
        check_key(key)
        self._transaction.count_read()
        value = self._source.get(key)
        return Pending(self._transaction, value, lambda: value.value)

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Result[bytes | None]:
        """Find the first or last key in [begin, end)."""
        rows = self._rows(begin, end, 1, reverse=reverse)
        if rows is None:
            return Ready(None)
        return Pending(self._transaction, _begun(rows), lambda: next((row.key for row in rows.to_list()), None))

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Result[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        check_limit(limit)
        rows = self._rows(begin, end, limit, reverse=reverse)
        if rows is None:
            return Ready([])
        return Pending(self._transaction, _begun(rows), lambda: [(row.key, row.value) for row in rows.to_list()])

    def get_read_version(self) -> int:
        """Return the version that the transaction reads."""
        return self._transaction.get_read_version()

    @property
    def reads(self) -> int:
        """How many reads the transaction has issued."""
        return self._transaction.reads

    def _rows(self, begin: bytes, end: bytes, limit: int, *, reverse: bool) -> Any:
        self._transaction.count_read()
        end = min(end, KEYS_END)
        if begin >= end:
            return None
        # In another mode the binding reads a small first portion only, and asks again for the rest.
        return self._source.get_range(begin, end, limit, reverse, fdb.StreamingMode.exact)


def _begun(rows: Any) -> Any:
    """Return the future of a range read, which the binding issues when the range is made."""
    return rows._future  # noqa: SLF001 - it has no other name


class ClusterTransaction:
    """A read-write transaction. `commit` never retries: that is the loop's."""

    def __init__(
        self,
        database: Any,
        *,
        clock: Callable[[], float],
        timeout: float,
        background: bool = False,
        ended: Callable[[int], None] = lambda reads: None,
    ) -> None:
        self._native = database.create_transaction()
        self._writes = native.Writes(self._native)
        options = self._native.options
        options.set_timeout(max(1, int(timeout * 1000)))
        if background:
            options.set_priority_batch()
            options.set_auto_throttle_tag(BACKGROUND_TAG)
        self._clock = clock
        self._deadline = clock() + MAX_TRANSACTION_SECONDS
        self._born = time.monotonic()
        self._serializable = ClusterReads(self, self._native)
        self._snapshot = ClusterReads(self, self._native.snapshot)
        self._on_end = ended
        self._ended = False
        #: Committed: the client has nothing more to do for it, and its watches go on.
        self._settled = False
        self._failure: StoreError | None = None
        self._version: int | None = None
        self._size = 0
        self._stamps = 0
        self.reads = 0
        #: Whether anything was written.
        self.wrote = False

    # Reads

    @property
    def snapshot(self) -> ClusterReads:
        """Reads that see this transaction's view but add no read conflicts."""
        return self._snapshot

    def get(self, key: bytes) -> Result[bytes | None]:
        """Read one key's value."""
        return self._serializable.get(key)

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Result[bytes | None]:
        """Find the first or last key in [begin, end)."""
        return self._serializable.get_key(begin, end, reverse=reverse)

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Result[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        return self._serializable.get_range(begin, end, limit=limit, reverse=reverse)

    def get_read_version(self) -> int:
        """Return the version that this transaction reads."""
        self._check()
        if self._version is None:
            self._version = self._wait(self._native.get_read_version())
        return self._version

    # Writes

    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair."""
        check_key(key)
        check_value(value)
        self._grow(len(key) + len(value))
        self._writes.set(key, value)

    def clear(self, key: bytes) -> None:
        """Remove one key."""
        check_key(key)
        self._grow(len(key))
        self._writes.clear(key)

    def set_new(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs with keys that do not exist."""
        for key in keys:
            check_key(key)
        for value in values:
            check_value(value)
        self._grow(sum(map(len, keys)) + sum(map(len, values)))
        self._writes.set_all(keys, values)

    def clear_many(self, keys: Sequence[bytes]) -> None:
        """Remove these keys."""
        for key in keys:
            check_key(key)
        self._grow(sum(map(len, keys)))
        self._writes.clear_all(keys)

    def clear_range(self, begin: bytes, end: bytes) -> None:
        """Remove every key in [begin, end)."""
        self._grow(len(begin) + len(end))
        end = min(end, KEYS_END)
        if begin < end:
            self._native.clear_range(begin, end)

    def add(self, key: bytes, delta: int) -> None:
        """Add to a 64-bit little-endian counter without reading it."""
        check_key(key)
        self._grow(len(key) + 8)
        self._writes.add(key, _DELTA.pack(delta % (1 << 64)))

    def add_all(self, deltas: Mapping[bytes, int]) -> None:
        """Add to some counters."""
        for key, delta in deltas.items():
            self.add(key, delta)

    def max(self, key: bytes, value: int) -> None:
        """Raise an unsigned 64-bit little-endian number to at least `value`."""
        check_key(key)
        parameter = raised(None, value)
        self._grow(len(key) + 8)
        self._writes.max(key, parameter)

    def add_read_conflict_key(self, key: bytes) -> None:
        """Fail this commit if another transaction writes `key` first; ignored once `key` was written here."""
        check_key(key)
        self._check()
        self._writes.conflict_all((key,))

    def add_read_conflict_keys(self, keys: Sequence[bytes]) -> None:
        """Fail this commit if another transaction writes one of these keys first."""
        for key in keys:
            check_key(key)
        self._check()
        self._writes.conflict_all(keys)

    def add_read_conflict_range(self, begin: bytes, end: bytes) -> None:
        """Fail this commit if another transaction writes in [begin, end) first."""
        self._check()
        end = min(end, KEYS_END)
        if begin < end:
            self._native.add_read_conflict_range(begin, end)

    def use_reserve(self) -> None:
        """Do nothing: a cluster keeps no reserve for us."""
        self._check()

    def stamp(self) -> int:
        """Return the next push-order number: this read version · 4,096 + the stamp's place in the transaction."""
        version = self.get_read_version()
        self._stamps += 1
        return version * STAMPS_PER_VERSION + self._stamps

    def stamps(self, n: int) -> range:
        """Return the next `n` push-order numbers."""
        first = self.get_read_version() * STAMPS_PER_VERSION + self._stamps + 1
        self._stamps += n
        return range(first, first + n)

    # The end

    def watch(self, key: bytes) -> Any:
        """Return the binding's future that is ready when the key's value differs from what this transaction reads."""
        self._check()
        return self._native.watch(key)

    def estimate_size(self) -> int:
        """Return about how many bytes all keys and values take, from the servers' samples."""
        self._check()
        return int(self._wait(self._native.get_estimated_range_size_bytes(b"", KEYS_END)))

    def count(self) -> Count:
        """Commit nothing but a conflict range, and return the version, with what the last recovery wrote.

        Versions are microseconds within an epoch. The version that a transaction reads is that of the newest commit,
        seconds ago where nothing is written; a commit gets the sequencer's version of this moment. Every recovery
        writes the key, so a version of another epoch than was read conflicts.
        """
        self._native.options.set_read_system_keys()
        epoch = self._native.get(_RECOVERED)
        recovered = Pending(self, epoch, lambda: epoch.value).wait() or b""
        self._native.add_write_conflict_key(_COUNTED)
        self.arm()
        return Count(epoch=recovered.hex(), micros=int(self._native.get_committed_version()))

    def arm(self) -> None:
        """Commit a transaction that only reads, so that its watches begin."""
        self._wait(self._native.commit())
        self._settled = True

    def commit(self) -> None:
        """Apply the writes: `NotCommitted`, `MaybeCommitted`, or a `StoreError` that no retry mends."""
        self._check_time()
        if self._failure is not None:
            raise self._failure
        if not self.wrote:
            return
        # Fixed before the commit is sent: a commit that times out here and is sent later with a newer read version
        # would not conflict with what was written to its slot meanwhile, and be applied a second time.
        self.get_read_version()
        try:
            future = self._native.commit()
            native.block(future)
            future.wait()
        except fdb.FDBError as error:
            raise of_commit(error) from error
        self._settled = True

    def cancel(self) -> None:
        """End the transaction; it cannot be used afterwards. Idempotent."""
        if not self._ended:
            self._ended = True
            if not self._settled:
                self._native.cancel()
            self._on_end(self.reads)

    # Inside

    def count_read(self) -> None:
        """Count one read; refuse it after the end of the transaction or of its time."""
        self._check_time()
        self.reads += 1

    def failed(self, error: fdb.FDBError, waited: float) -> Exception:
        """Return what an error of a read means that was waited for `waited` seconds.

        One that comes at once, late in the transaction, tells of a function that ran too long by itself: trying it
        again would not help, and the cluster is not to blame.
        """
        old = time.monotonic() - self._born > _OLD
        if old and waited < _AT_ONCE and error.code in (TRANSACTION_TOO_OLD, TRANSACTION_TIMED_OUT):
            self._failure = too_old()
            return self._failure
        return of_reading(error)

    def _wait(self, future: Any) -> Any:
        began = time.monotonic()
        try:
            native.block(future)
            return future.wait()
        except fdb.FDBError as error:
            raise self.failed(error, time.monotonic() - began) from error

    def _grow(self, size: int) -> None:
        self._check()
        self.wrote = True
        self._size += size
        if self._size > MAX_TRANSACTION_SIZE:
            self._failure = too_large()
            raise self._failure

    def _check(self) -> None:
        if self._ended:
            raise TransactionEnded("The transaction was used after its function had returned.")

    def _check_time(self) -> None:
        self._check()
        if self._clock() > self._deadline:
            self._failure = too_old()
            raise self._failure
