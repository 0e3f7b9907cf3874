"""One simulated transaction: reads of a version, own writes on top, conflicts at commit."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from queues.kv.errors import Conflict, StoreError, TransactionEnded
from queues.kv.limits import (
    KEYS_END,
    added,
    check_key,
    check_limit,
    check_value,
    raised,
    too_large,
    too_old,
)
from queues.kv.port import MAX_TRANSACTION_SECONDS, MAX_TRANSACTION_SIZE, KeyValue, Ready
from queues.kv.simulated.history import History, KeyRange
from queues.kv.simulated.schedule import Point, Schedule, unscheduled

#: Stamps per read version: FoundationDB's versions grow by a million a second.
STAMPS_PER_VERSION = 4_096

Change = Callable[[bytes | None], bytes]


@dataclass(slots=True)
class Write:
    """What a transaction does to one key: a known outcome, or changes to whatever is there."""

    known: bool
    value: bytes | None = None
    changes: list[Change] = field(default_factory=list)


class SimulatedTransaction:
    """A transaction that tests may also drive step by step: `store.begin()`, then `commit()` or `cancel()`."""

    def __init__(
        self,
        history: History,
        clock: Callable[[], float],
        on_commit: Callable[[set[bytes]], None],
        schedule: Schedule = unscheduled,
    ) -> None:
        self._history = history
        self._clock = clock
        self._on_commit = on_commit
        self._schedule = schedule
        self._version = history.begin()
        self._deadline = clock() + MAX_TRANSACTION_SECONDS
        self._writes: dict[bytes, Write] = {}
        #: The first keys of these, sorted; the rest is added when a range is read.
        self._sorted: list[bytes] = []
        self._cleared: list[KeyRange] = []
        self._read: list[KeyRange] = []
        self._size = 0
        self._stamps = 0
        self._failure: StoreError | None = None
        self._ended = False
        self.reads = 0

    # Reads

    @property
    def snapshot(self) -> "SnapshotReads":
        """Reads that see this transaction's view but add no read conflicts."""
        return SnapshotReads(self)

    def get(self, key: bytes) -> Ready[bytes | None]:
        """Read one key's value."""
        return self.find(key, conflicting=True)

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        return _first_key(self.find_range(begin, end, limit=1, reverse=reverse, conflicting=True))

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Ready[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        return self.find_range(begin, end, limit=limit, reverse=reverse, conflicting=True)

    def get_read_version(self) -> int:
        """Return the version that this transaction reads."""
        self._check()
        return self._version

    def find(self, key: bytes, *, conflicting: bool) -> Ready[bytes | None]:
        """Read one key's value, with or without a read conflict."""
        check_key(key)
        self._schedule(Point.READ)
        self._check_time()
        self.reads += 1
        if conflicting:
            self._add_conflict_key(key)
        return Ready(self._value(key))

    def find_range(
        self, begin: bytes, end: bytes, *, limit: int, reverse: bool, conflicting: bool
    ) -> Ready[list[KeyValue]]:
        """Read pairs of [begin, end), with or without a read conflict on what was looked at."""
        check_limit(limit)
        self._schedule(Point.READ)
        self._check_time()
        self.reads += 1
        end = min(end, KEYS_END)
        pairs = list(islice(self._merged(begin, end, reverse=reverse, step=min(limit, 64)), limit))
        if conflicting:
            if len(pairs) < limit:
                self._add_conflict(begin, end)
            elif reverse:
                self._add_conflict(pairs[-1][0], end)
            else:
                self._add_conflict(begin, pairs[-1][0] + b"\0")
        return Ready(pairs)

    # Writes

    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair."""
        check_key(key)
        check_value(value)
        self._grow(len(key) + len(value))
        self._writes[key] = Write(known=True, value=value)

    def clear(self, key: bytes) -> None:
        """Remove one key."""
        check_key(key)
        self._grow(len(key))
        self._writes[key] = Write(known=True)

    def set_new(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs with keys that do not exist."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def clear_many(self, keys: Sequence[bytes]) -> None:
        """Remove these keys."""
        for key in keys:
            self.clear(key)

    def clear_range(self, begin: bytes, end: bytes) -> None:
        """Remove every key in [begin, end)."""
        self._grow(len(begin) + len(end))
        end = min(end, KEYS_END)
        if begin < end:
            mine = self._written(begin, end)
            for key in mine:
                del self._writes[key]
            if mine:
                self._sorted = []
            self._cleared.append((begin, end))

    def add(self, key: bytes, delta: int) -> None:
        """Add to a 64-bit little-endian counter without reading it."""
        self._change(key, partial(added, delta=delta))

    def add_all(self, deltas: Mapping[bytes, int]) -> None:
        """Add to some counters."""
        for key, delta in deltas.items():
            self.add(key, delta)

    def max(self, key: bytes, value: int) -> None:
        """Raise an unsigned 64-bit little-endian number to at least `value`."""
        raised(None, value)
        self._change(key, partial(raised, value=value))

    def add_read_conflict_key(self, key: bytes) -> None:
        """Fail this commit if another transaction writes `key` first; ignored once `key` was written here."""
        check_key(key)
        self._check()
        self._add_conflict_key(key)

    def add_read_conflict_keys(self, keys: Sequence[bytes]) -> None:
        """Fail this commit if another transaction writes one of these keys first."""
        for key in keys:
            self.add_read_conflict_key(key)

    def add_read_conflict_range(self, begin: bytes, end: bytes) -> None:
        """Fail this commit if another transaction writes in [begin, end) first."""
        self._check()
        self._add_conflict(begin, min(end, KEYS_END))

    def use_reserve(self) -> None:
        """Do nothing: a simulated store is never full."""
        self._check()

    def stamp(self) -> int:
        """Return the next push-order number."""
        self._check()
        self._stamps += 1
        return self._version * STAMPS_PER_VERSION + self._stamps

    def stamps(self, n: int) -> range:
        """Return the next `n` of them, at least one."""
        first = self.stamp()
        self._stamps += n - 1
        return range(first, first + n)

    # The end

    @property
    def wrote(self) -> bool:
        """Whether anything was written."""
        return bool(self._writes or self._cleared)

    def commit(self) -> int:
        """Apply the writes and return the version; `Conflict` when what was read has changed since."""
        try:
            self._check_commit()
            if not self.wrote:
                return self._version
            version = self._apply()
            if version is None:
                raise Conflict("Another transaction changed what this one has read; nothing was written.")
            return version
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End the transaction without writing; it cannot be used afterwards."""
        if not self._ended:
            self._ended = True
            self._history.end(self._version)

    # Inside

    def _check_commit(self) -> None:
        """Raise what keeps this transaction from being committed at all."""
        self._check_time()
        if self._failure is not None:
            raise self._failure

    def _apply(self) -> int | None:
        """Write everything and return the version; None when what was read has changed since."""
        with self._history.lock():
            writes = {key: _outcome(w, self._before(key)) for key, w in self._writes.items()}
            committed = self._history.commit(self._read, self._version, writes, self._cleared)
        if committed is None:
            return None
        version, touched = committed
        self._on_commit(touched)
        return version

    def _before(self, key: bytes) -> bytes | None:
        """Return the newest committed value that this commit's changes apply to."""
        return None if self._is_cleared(key) else self._history.latest(key)

    def _value(self, key: bytes) -> bytes | None:
        write = self._writes.get(key)
        if write is not None and write.known:
            return write.value
        base = None if self._is_cleared(key) else self._history.get(key, self._version)
        return base if write is None else _outcome(write, base)

    def _merged(self, begin: bytes, end: bytes, *, reverse: bool, step: int) -> Iterator[KeyValue]:
        mine = self._written(begin, end)
        if reverse:
            mine.reverse()
        position = 0
        for key, value in self._history.scan(begin, end, self._version, reverse=reverse, step=step):
            while position < len(mine) and (mine[position] > key if reverse else mine[position] < key):
                yield from self._pair(mine[position])
                position += 1
            if position < len(mine) and mine[position] == key:
                yield from self._pair(key)
                position += 1
            elif not self._is_cleared(key):
                yield key, value
        for key in mine[position:]:
            yield from self._pair(key)

    def _pair(self, key: bytes) -> Iterator[KeyValue]:
        value = self._value(key)
        if value is not None:
            yield key, value

    def _written(self, begin: bytes, end: bytes) -> list[bytes]:
        """Return the keys of [begin, end) that this transaction writes, in order."""
        keys = self._sorted
        if len(keys) < len(self._writes):
            keys.extend(islice(self._writes, len(keys), None))
            keys.sort()
        return keys[bisect_left(keys, begin) : bisect_left(keys, end)]

    def _is_cleared(self, key: bytes) -> bool:
        return bool(self._cleared) and any(begin <= key < end for begin, end in self._cleared)

    def _change(self, key: bytes, change: Change) -> None:
        check_key(key)
        self._grow(len(key) + 8)
        write = self._writes.get(key)
        if write is None:
            if self._is_cleared(key):
                self._writes[key] = Write(known=True, value=change(None))
            else:
                self._writes[key] = Write(known=False, changes=[change])
        elif write.known:
            self._writes[key] = Write(known=True, value=change(write.value))
        else:
            write.changes.append(change)

    def _add_conflict_key(self, key: bytes) -> None:
        """Add a read conflict for one key, unless this transaction has decided it itself."""
        write = self._writes.get(key)
        if (write is None or not write.known) and not self._is_cleared(key):
            self._read.append((key, key + b"\0"))

    def _add_conflict(self, begin: bytes, end: bytes) -> None:
        """Add a read conflict for the part of [begin, end) that this transaction has not decided itself."""
        decided = [(key, key + b"\0") for key in self._written(begin, end) if self._writes[key].known]
        decided += [(low, high) for low, high in self._cleared if low < end and begin < high]
        for low, high in sorted(decided):
            if begin < low:
                self._read.append((begin, low))
            begin = max(begin, high)
        if begin < end:
            self._read.append((begin, end))

    def _grow(self, size: int) -> None:
        self._check()
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


class SnapshotReads:
    """A transaction's reads without read conflicts."""

    def __init__(self, transaction: SimulatedTransaction) -> None:
        self._transaction = transaction

    def get(self, key: bytes) -> Ready[bytes | None]:
        """Read one key's value."""
        return self._transaction.find(key, conflicting=False)

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        return _first_key(self._transaction.find_range(begin, end, limit=1, reverse=reverse, conflicting=False))

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


def _first_key(found: Ready[list[KeyValue]]) -> Ready[bytes | None]:
    """Return the key of the only pair that was found."""
    pairs = found.wait()
    return Ready(pairs[0][0] if pairs else None)


def _outcome(write: Write, base: bytes | None) -> bytes | None:
    if write.known:
        return write.value
    for change in write.changes:
        base = change(base)
    return base
