"""The store record: which format a store has, and which store it is.

A root without it holds no store: one that is begun, or the target of a copy that is not finished.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from queues.errors import CopyUnfinished, KeyTooLarge, NewerFormat, NotAStore, OlderFormat, StoreDamaged
from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.model import records
from queues.model.records import UNREADABLE, why

#: Of the keys and records under the root. A newer one is refused, an older one upgraded by a command.
#: 1: the first. 2: attached queues, whose items lie outside the root. 3: settings that are kept in configs, the agenda,
#: and jobs that anybody goes on with.
FORMAT = 3


#: Bytes of the packed root of a new store, at most: the longest key below it takes 312 bytes of 511.
MAX_ROOT = 192
_KNOWN = frozenset({"format", "id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """One store's record."""

    format: int
    #: 32 hexadecimal digits, kept through upgrades, backups and copies: they all hold the same store.
    id: str
    #: What a later build of this format keeps here besides: written again as it was read.
    unknown: dict[str, Any] = field(default_factory=dict, hash=False)

    def encode(self) -> bytes:
        """Return the record as the store keeps it."""
        return records.encode(self.unknown | {"format": self.format, "id": self.id})

    @classmethod
    def decode(cls, record: bytes) -> StoreRecord:
        """Read a record from the store."""
        header, _ = records.decode(record)
        unknown = records.unknown(header, _KNOWN)
        return cls(format=header["format"], id=header["id"], unknown=unknown)


def settle(kv: KeyValueStore, keyspace: Keyspace, url: str) -> str:
    """Return the store's id, writing its record on first use; refuse what this release cannot use."""
    record = kv.read(lambda tr: find(tr, keyspace))
    if record is None:
        if len(keyspace.root) > MAX_ROOT:
            raise KeyTooLarge(
                "The root of a new store has at most {most} bytes when it is packed; this one has {size:,}.",
                most=MAX_ROOT,
                size=len(keyspace.root),
            )
        fresh = StoreRecord(format=FORMAT, id=secrets.token_hex(16))

        def begin(tr: Transaction) -> StoreRecord:
            there = find(tr, keyspace)
            if there is None:
                refuse_copy(tr, keyspace, url)
                if not is_empty(tr, keyspace):
                    raise NotAStore("{url} holds something else under this root; choose another.", url=url)
                tr.set(keyspace.store, fresh.encode())
            return there or fresh

        record = kv.transact(begin)
    check(record, url)
    return record.id


def require(kv: KeyValueStore, keyspace: Keyspace, url: str) -> StoreRecord:
    """Return the record of a store of any format; raise `NotAStore` or `CopyUnfinished` when there is none."""

    def look(tr: ReadTransaction) -> StoreRecord | None:
        record = find(tr, keyspace)
        if record is None:
            refuse_copy(tr, keyspace, url)
        return record

    record = kv.read(look)
    if record is None:
        raise NotAStore("{url} holds no pqadmin store.", url=url)
    return record


def find(tr: ReadTransaction, keyspace: Keyspace) -> StoreRecord | None:
    """Return the record; None when no store was begun here."""
    found = tr.get(keyspace.store).wait()
    if found is None:
        return None
    with _reading():
        return StoreRecord.decode(found)


def check(record: StoreRecord, url: str) -> None:
    """Refuse a store that another release wrote."""
    if record.format > FORMAT:
        raise NewerFormat(
            "{url} was written by a newer pqadmin (store format {format}, this release reads "
            "{reads}): install that release. Nothing was changed.",
            url=url,
            format=record.format,
            reads=FORMAT,
        )
    if record.format < FORMAT:
        raise OlderFormat(
            "{url} was written by an older pqadmin (store format {format}, this release reads "
            "{reads}): bring it up to date with “manage.py upgrade_store”. Nothing was changed.",
            url=url,
            format=record.format,
            reads=FORMAT,
        )


def is_empty(tr: ReadTransaction, keyspace: Keyspace) -> bool:
    """Say whether nothing lies under the root; slots that clients left behind do not count."""
    begin, end = keyspace.range
    first, rest = tr.get_key(begin, keyspace.all_slots[0]), tr.get_key(keyspace.all_slots[1], end)
    return first.wait() is None and rest.wait() is None


def copy_header(tr: ReadTransaction, keyspace: Keyspace) -> dict[str, Any] | None:
    """Return how far the unfinished copy into this root is; None when there is none."""
    mark = tr.get(keyspace.copy_mark).wait()
    if mark is None:
        return None
    with _reading():
        header = records.decode(mark)[0]
        header["from"]
        return header


@contextmanager
def _reading() -> Iterator[None]:
    """Raise `StoreDamaged` for what decoding raises inside of this block."""
    try:
        yield
    except NewerFormat:
        raise
    except UNREADABLE as error:
        raise StoreDamaged(
            "The record that says what store this is cannot be read. {why} Restore a backup.", why=why(error)
        ) from error


def refuse_copy(tr: ReadTransaction, keyspace: Keyspace, url: str) -> None:
    """Raise `CopyUnfinished` when the root is the target of an unfinished copy."""
    header = copy_header(tr, keyspace)
    if header is not None:
        raise CopyUnfinished(
            "{url} is a copy of {source} that is not finished. Finish it with “manage.py copy_store "
            "{source} {url}”, or clear it and begin anew. Nothing was changed.",
            url=url,
            source=header["from"],
        )
