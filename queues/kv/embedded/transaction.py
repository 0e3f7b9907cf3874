"""Transactions of an embedded store: reads of one version, and functions and requests of one commit.

Those of one commit run one by one, and each can be undone alone.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, repeat, takewhile
from typing import Any, NoReturn, TypeVar, cast

import lmdb

from queues.kv.embedded.failures import EngineFailure
from queues.kv.errors import StoreError, TransactionEnded
from queues.kv.limits import KEYS_END, added, check_key, check_limit, check_value, raised, too_large, too_old
from queues.kv.port import (
    MAX_KEY_SIZE,
    MAX_TRANSACTION_SECONDS,
    MAX_TRANSACTION_SIZE,
    MAX_VALUE_SIZE,
    KeyValue,
    Ready,
    Refused,
    Server,
    Ticket,
)

T = TypeVar("T")

log = logging.getLogger("queues.kv")

#: A batch is committed after so many seconds, bytes or stamps, or when all its requests are done.
MAX_SECONDS = 0.010
MAX_BYTES = 4_000_000
MAX_STAMPS = 1 << 19
#: Requests of one server that are served together.
MAX_REQUESTS = 500
#: Seconds of the processor, and by the clock, after which a function is worth a warning: it holds up all other callers.
SLOW, VERY_SLOW = 0.050, 0.250


class _Known(Ready[T]):
    """A value that was read."""

    __slots__ = ()

    def __init__(self, answer: T) -> None:
        self._answer = answer

    def wait(self) -> T:
        """Return it."""
        return self._answer


_WORD = 1 << 64


class Many:
    """New keys, or cleared keys and their old values; by this both are undone."""

    __slots__ = ("_keys", "_olds")

    def __init__(self, keys: Sequence[bytes], olds: Sequence[bytes | None] | None = None) -> None:
        self._keys = keys
        self._olds = olds

    def latest_first(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Return each key and its old value."""
        olds = repeat(None) if self._olds is None else reversed(self._olds)
        return zip(reversed(self._keys), olds, strict=False)


class Batch:
    """One commit: its LMDB transaction, what was written in it, and the sums of the counters that were added to.

    Sums are written once per commit, or when a function reads them earlier.
    """

    __slots__ = (
        "_clock",
        "_full",
        "_in_order",
        "adds",
        "cursor",
        "log",
        "now",
        "reads",
        "room",
        "size",
        "stamps",
        "txn",
        "version",
    )

    def __init__(
        self, txn: lmdb.Transaction[bytes], room: int, *, clock: Callable[[], float], full: Callable[[], StoreError]
    ) -> None:
        self.txn = txn
        self.cursor = txn.cursor()
        self.version = txn.id()
        #: Bytes that growing functions may still add, and the error of one that has no room.
        self.room = room
        self._full = full
        self._clock = clock
        #: Sums of functions that have ended, not written yet; and their keys in order, once they were asked for.
        self.adds: dict[bytes, int] = {}
        self._in_order: list[bytes] | None = None
        #: How to undo what was written, oldest first: (key, old value), (key, sum, True) and many keys at once.
        self.log: list[tuple[bytes, bytes | None] | tuple[bytes, int, bool] | Many] = []
        #: Every key that was written, and what is there now; None: nothing.
        self.now: dict[bytes, bytes | None] = {}
        self.size = self.stamps = self.reads = 0

    # Functions and requests

    def run(self, tickets: Sequence[Ticket], done: list[Ticket]) -> None:
        """Run functions in order, then requests of one server together, until the batch is full.

        Pushes come before pops, which may need them. What was run goes to `done`. Raises
        `EngineFailure` when the batch is lost.
        """
        together: dict[Server[Any, Any], list[Ticket]] = {}
        watch = _SlowWatch()
        for ticket in tickets:
            server = ticket.server
            if server is not None:
                together.setdefault(server, []).append(ticket)
            elif not done or not (self.size > MAX_BYTES or self.stamps > MAX_STAMPS or watch.elapsed() > MAX_SECONDS):
                done.append(ticket)
                self.run_one(ticket)
                watch.look(ticket.request)
        for server in sorted(together, key=_contended) if len(together) > 1 else together:
            group = together[server]
            for at in range(0, len(group), MAX_REQUESTS):
                if done and (self.size > MAX_BYTES or self.stamps > MAX_STAMPS or watch.elapsed() > MAX_SECONDS):
                    return
                done += group[at : at + MAX_REQUESTS]
                self._serve(server, group[at : at + MAX_REQUESTS])
                watch.look(server)

    def run_one(self, ticket: Ticket) -> None:
        """Run one function, or serve one request; undo it alone if it fails."""
        if ticket.server is None:
            ticket.answer, ticket.error = self._attempt(ticket.request)
        else:
            self._serve(ticket.server, [ticket])

    def _serve(self, server: Server[Any, Any], tickets: list[Ticket]) -> None:
        """Serve requests of one server; where that fails, each alone."""
        while tickets:
            requests = [ticket.request for ticket in tickets]
            answers, error = self._attempt(partial(_serve, server, requests))
            if error is None:
                for ticket, answer in zip(tickets, answers, strict=False):  # the rest are served next
                    if type(answer) is Refused:
                        ticket.answer, ticket.error = None, answer.error
                    else:
                        ticket.answer, ticket.error = answer, None
                if len(answers) == len(tickets):
                    return
                tickets = tickets[len(answers) :]
            elif len(tickets) == 1:
                tickets[0].answer, tickets[0].error = None, error
                return
            else:
                for ticket in tickets:
                    self._serve(server, [ticket])
                return

    def _attempt(self, fn: Callable[[EmbeddedTransaction], Any]) -> tuple[Any, BaseException | None]:
        """Run a function and return its result, or its error once it is undone."""
        mark = len(self.log)
        tr = EmbeddedTransaction(self, self._clock)
        try:
            result = fn(tr)
            tr.finish()
            if tr.lacks_room():
                raise self._full()
        except EngineFailure:
            raise
        except BaseException as error:
            if isinstance(tr.failure, EngineFailure):
                raise tr.failure from error
            self.undo(mark)
            return None, error
        finally:
            self.reads += tr.reads
            tr.end()
        tr.join_batch()  # here an interrupt ends the whole batch: half of it could not be undone
        return result, None

    # Writes

    @property
    def wrote(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.log or self.adds)

    def put(self, key: bytes, value: bytes) -> None:
        """Write one pair of the engine's own."""
        self.log.append((key, self.cursor.replace(key, value)))
        self.now[key] = value

    def remove(self, key: bytes) -> bool:
        """Remove one key of the engine's own; say whether it was there."""
        if (old := self.cursor.pop(key)) is None:
            return False
        self.log.append((key, old))
        self.now[key] = None
        return True

    def flush(self, key: bytes, delta: int = 0) -> None:
        """Write the sum of a key, and what one function has added to it."""
        if key in self.adds:
            delta += self.adds[key]
            self.forget_sum(key)
        old = self.txn.get(key)
        self.now[key] = value = added(old, delta)
        self.cursor.put(key, value)
        self.log.append((key, old))

    def flush_all(self) -> None:
        """Write all sums; nothing is added or undone after this."""
        get, put, now = self.txn.get, self.cursor.put, self.now
        for key, total in self.adds.items():
            old = get(key)
            if old:
                total += int.from_bytes(old[:8], "little")
            now[key] = value = (total % _WORD).to_bytes(8, "little")
            put(key, value)

    def add_all(self, sums: Mapping[bytes, int]) -> None:
        """Add to sums what a function has added that cannot be undone any more."""
        adds, self._in_order = self.adds, None
        for key, delta in sums.items():
            adds[key] = adds.get(key, 0) + delta

    def forget_sum(self, key: bytes) -> None:
        """Drop the sum of a key, because the key was written or cleared."""
        self.log.append((key, self.adds.pop(key), True))
        self._in_order = None

    def sums_in(self, begin: bytes, end: bytes) -> list[bytes]:
        """Return the keys in [begin, end) whose sums are not written yet."""
        keys = self._in_order
        if keys is None:
            keys = self._in_order = sorted(self.adds)
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
                self.adds[key] = total
                self._in_order = None

    def _put_back(self, key: bytes, old: bytes | None) -> None:
        self.now[key] = old
        if old is not None:
            self.cursor.put(key, old)
        elif self.cursor.set_key(key):
            self.cursor.delete()


class _SlowWatch:
    """Warns of work that holds up all other callers."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._worked = time.thread_time()

    def elapsed(self) -> float:
        """Return the seconds since the batch began."""
        return time.perf_counter() - self._began

    def look(self, work: object) -> None:
        """Warn when the work that was just done took long: a busy machine alone is no reason."""
        now = time.perf_counter()
        took, self._last = now - self._last, now
        if took > SLOW and (time.thread_time() - self._worked > SLOW or took > VERY_SLOW):
            log.warning("A transaction took %.0f ms and held up all other callers: %s", took * 1e3, _name(work))


def _serve(server: Server[Any, Any], requests: Sequence[Any], tr: EmbeddedTransaction) -> Sequence[Any]:
    """Have the server serve these requests."""
    answers = server.execute(tr, server.prepare(requests))
    if not 0 < len(answers) <= len(requests):
        raise RuntimeError(f"{server!r} answered {len(answers)} of {len(requests)} requests.")
    return answers


def _name(work: object) -> str:
    """Return what to call a function or a server in a log: where it is written."""
    if isinstance(work, partial):
        work = work.func
    named = work if hasattr(work, "__qualname__") else type(work)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named)}"


def _contended(server: Server[Any, Any]) -> bool:
    return server.contended


class _Ended:
    """Replaces the cursor once the function has returned; any use of it raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise TransactionEnded("The transaction was used after its function had returned.")


_ENDED = cast("lmdb.Cursor[bytes]", _Ended())
_NO_TXN = cast("lmdb.Transaction[bytes]", _Ended())


def _scan(cursor: lmdb.Cursor[bytes], begin: bytes, end: bytes, limit: int, *, reverse: bool) -> list[KeyValue]:
    """Collect at most `limit` pairs of [begin, end) from either side."""
    end = min(end, KEYS_END)
    if begin >= end:
        return []
    if reverse:
        found = cursor.prev() if cursor.set_range(end) else cursor.last()
        pairs = takewhile(lambda pair: pair[0] >= begin, cursor.iterprev())
    else:
        found = cursor.set_range(begin) if begin else cursor.first()
        pairs = takewhile(lambda pair: pair[0] < end, cursor.iternext())
    return list(islice(pairs, limit)) if found else []


def _first_key(cursor: lmdb.Cursor[bytes], begin: bytes, end: bytes, *, reverse: bool) -> bytes | None:
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
        return _Known(self._txn.get(key))

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        self._check_time()
        self.reads += 1
        return _Known(_first_key(self._cursor, begin, end, reverse=reverse))

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Ready[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        check_limit(limit)
        self._check_time()
        self.reads += 1
        return _Known(_scan(self._cursor, begin, end, limit, reverse=reverse))

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


class EmbeddedTransaction(EmbeddedReads):
    """One function's view of a batch: it sees its neighbors' earlier writes and its own."""

    __slots__ = ("_batch", "_grown", "_reserve", "_size", "_sums", "failure")

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
        #: What was added to counters here, and not written yet.
        self._sums: dict[bytes, int] = {}
        self.reads = 0
        #: Why the transaction cannot be committed, even if its function goes on as if nothing had happened.
        self.failure: StoreError | EngineFailure | None = None

    @property
    def snapshot(self) -> EmbeddedTransaction:
        """This transaction itself: one writer at a time has no conflicts."""
        return self

    def get(self, key: bytes) -> Ready[bytes | None]:
        """Read one key's value."""
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:  # asked here too: a call costs more
            check_key(key)
        self._check_time()
        self.reads += 1
        try:
            if key in self._batch.adds or key in self._sums:
                self._batch.flush(key, self._sums.pop(key, 0))
            return _Known(self._txn.get(key))
        except lmdb.Error as error:
            raise self.broken(error) from error

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Ready[bytes | None]:
        """Find the first or last key in [begin, end)."""
        self._check_time()
        self.reads += 1
        try:
            if self._sums or self._batch.adds:
                self._flush_in(begin, end)
            return _Known(_first_key(self._cursor, begin, end, reverse=reverse))
        except lmdb.Error as error:
            raise self.broken(error) from error

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Ready[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end)."""
        if limit < 1:  # asked here too: a call costs more
            check_limit(limit)
        self._check_time()
        self.reads += 1
        try:
            if self._sums or self._batch.adds:
                self._flush_in(begin, end)
            return _Known(_scan(self._cursor, begin, end, limit, reverse=reverse))
        except lmdb.Error as error:
            raise self.broken(error) from error

    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair."""
        replace = self._cursor.replace
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:  # asked here too: a call costs more
            check_key(key)
        if not isinstance(value, bytes) or len(value) > MAX_VALUE_SIZE:
            check_value(value)
        size = len(key) + len(value)
        self._grow(size)
        batch = self._batch
        try:
            if key in batch.adds or key in self._sums:
                self._forget_sum(key)
            old = replace(key, value)
        except lmdb.Error as error:
            raise self.broken(error) from error
        batch.log.append((key, old))
        batch.now[key] = value
        self._grown += size if old is None else len(value) - len(old)

    def set_new(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs whose keys do not exist, in one loop of the engine.

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
        self._grow(grown)
        try:
            _, new = put(zip(keys, values, strict=True), overwrite=False)
            if new != len(keys):
                raise lmdb.KeyExistsError("A key that was minted exists already.")
        except lmdb.Error as error:
            raise self.broken(error) from error
        self._batch.log.append(Many(keys))
        self._batch.now.update(zip(keys, values, strict=True))
        self._grown += grown

    def clear_many(self, keys: Sequence[bytes]) -> None:
        """Remove these keys."""
        pop = self._cursor.pop
        size = len(b"".join(keys))
        self._grow(size)
        try:
            olds: list[Any] = list(map(pop, keys))
        except lmdb.Error as error:
            raise self.broken(error) from error
        self._batch.log.append(Many(keys, olds))
        self._batch.now.update(dict.fromkeys(keys))
        if None in olds:
            self._grown -= sum(len(key) + len(old) for key, old in zip(keys, olds, strict=True) if old is not None)
        else:
            self._grown -= size + sum(map(len, olds))

    def clear(self, key: bytes) -> None:
        """Remove one key."""
        pop = self._cursor.pop
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:  # asked here too: a call costs more
            check_key(key)
        self._grow(len(key))
        batch = self._batch
        try:
            if key in batch.adds or key in self._sums:
                self._forget_sum(key)
            old = pop(key)
        except lmdb.Error as error:
            raise self.broken(error) from error
        if old is not None:
            batch.log.append((key, old))
            batch.now[key] = None
            self._grown -= len(key) + len(old)

    def clear_range(self, begin: bytes, end: bytes) -> None:
        """Remove every key in [begin, end)."""
        self._grow(len(begin) + len(end))
        batch, cursor = self._batch, self._cursor
        end = min(end, KEYS_END)
        try:
            for key in self._sums_in(begin, end):
                self._forget_sum(key)
            found = begin < end and (cursor.set_range(begin) if begin else cursor.first())
            while found and (pair := cursor.item())[0] < end:
                found = cursor.delete() and cursor.key() != b""
                batch.log.append(pair)
                batch.now[pair[0]] = None
                size = len(pair[0]) + len(pair[1])
                batch.size += size  # kept in memory until the commit
                self._grown -= size
        except lmdb.Error as error:
            raise self.broken(error) from error

    def add(self, key: bytes, delta: int) -> None:
        """Add to a 64-bit little-endian counter without reading it."""
        if len(key) > MAX_KEY_SIZE or not b"" < key < KEYS_END:  # asked here too: a call costs more
            check_key(key)
        self._grow(len(key) + 8)
        self._sums[key] = self._sums.get(key, 0) + delta

    def add_all(self, deltas: Mapping[bytes, int]) -> None:
        """Add to counters, none of which was added to here."""
        if self._sums:
            for key, delta in deltas.items():
                self.add(key, delta)
            return
        if max(map(len, deltas)) > MAX_KEY_SIZE or not (min(deltas) > b"" and max(deltas) < KEYS_END):
            for key in deltas:
                check_key(key)
        self._grow(len(b"".join(deltas)) + 8 * len(deltas))
        self._sums = dict(deltas)

    def max(self, key: bytes, value: int) -> None:
        """Raise an unsigned 64-bit little-endian number to at least `value`."""
        check_key(key)
        raised(None, value)
        self._grow(len(key) + 8)
        batch, cursor = self._batch, self._cursor
        try:
            if key in batch.adds or key in self._sums:
                batch.flush(key, self._sums.pop(key, 0))
            old = self._txn.get(key)
            batch.now[key] = new = raised(old, value)
            cursor.put(key, new)
        except lmdb.Error as error:
            raise self.broken(error) from error
        batch.log.append((key, old))

    def add_read_conflict_key(self, key: bytes) -> None:
        """Check the key: one writer at a time has no conflicts."""
        check_key(key)
        if self._cursor is _ENDED:
            self._check_time()

    def add_read_conflict_keys(self, keys: Sequence[bytes]) -> None:
        """Do nothing: one writer at a time has no conflicts."""
        if self._cursor is _ENDED:
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
        return self.stamps(1)[0]

    def stamps(self, n: int) -> range:
        """Return the next `n` of them."""
        if self._cursor is _ENDED:
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
        if self._sums:
            self._batch.add_all(self._sums)

    def end(self) -> None:
        """Make any further use raise; the cursor belongs to the batch."""
        self._cursor, self._txn = _ENDED, _NO_TXN

    def _sums_in(self, begin: bytes, end: bytes) -> Iterable[bytes]:
        """Return the keys in [begin, end) that were added to, here or before, and are not written yet."""
        return {*self._batch.sums_in(begin, end), *(key for key in self._sums if begin <= key < end)}

    def _flush_in(self, begin: bytes, end: bytes) -> None:
        for key in self._sums_in(begin, end):
            self._batch.flush(key, self._sums.pop(key, 0))

    def _forget_sum(self, key: bytes) -> None:
        self._sums.pop(key, None)
        if key in self._batch.adds:
            self._batch.forget_sum(key)

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

    def broken(self, error: lmdb.Error) -> EngineFailure:
        self.failure = EngineFailure(error)
        return self.failure
