"""Reads of an LMDB transaction, which raise once it has ended."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, takewhile
from typing import NoReturn, cast

import lmdb

from queues.kv.errors import TransactionEnded
from queues.kv.limits import KEYS_END, check_key, check_limit, too_old
from queues.kv.port import MAX_TRANSACTION_SECONDS, KeyValue, Ready


class _Ended:
    """Replaces the cursor once the function has returned; any use of it raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise TransactionEnded("The transaction was used after its function had returned.")


ENDED = cast("lmdb.Cursor[bytes]", _Ended())
NO_TXN = cast("lmdb.Transaction[bytes]", _Ended())


def scan(cursor: lmdb.Cursor[bytes], begin: bytes, end: bytes, limit: int, *, reverse: bool) -> list[KeyValue]:
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
        cursor, self._cursor, self._txn = self._cursor, ENDED, NO_TXN
        if cursor is not ENDED:
            cursor.close()

    def _check_time(self) -> None:
        if self._cursor is ENDED:
            self._cursor.key()
        if self._clock() > self._deadline:
            raise too_old()
