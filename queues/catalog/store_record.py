"""The store record: the format of a store, and its id.

A root without it holds no store: one that is begun, or the target of a copy that is not finished.

Release 0.1 began its store record with the byte of any other record, and counted formats to 3. This record begins with
another byte, so that processes of 0.1 refuse the store as one of a newer release, and formats begin at 1 again.
"""

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

#: The format of all keys and records under the root. A store of another format is refused.
FORMAT = 1
#: The format that is told of a store of release 0.1.
_OF_0_1 = 0
#: What the record begins with, here and in release 0.1.
_FIRST, _FIRST_OF_0_1 = b"\x02", b"\x01"
#: Bytes of the packed root of a new store, at most: the longest key below it takes 312 bytes of 511.
MAX_ROOT = 192
_KNOWN = frozenset({"format", "id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """The record of one store."""

    format: int
    #: 32 hexadecimal digits, kept through backups and copies: they all hold the same store.
    id: str
    #: What a later build of this format keeps here besides: written again as it was read.
    unknown: dict[str, Any] = field(default_factory=dict, hash=False)

    def encode(self) -> bytes:
        """Return the record as the store keeps it."""
        return _FIRST + records.encode(self.unknown | {"format": self.format, "id": self.id})

    @classmethod
    def decode(cls, record: bytes) -> "StoreRecord":
        """Read a record from the store; one of release 0.1 has format 0."""
        if record[:1] == _FIRST_OF_0_1:
            return cls(format=_OF_0_1, id=records.decode(record)[0]["id"])
        if record and record[:1] != _FIRST:
            raise NewerFormat("The record of the store was written by a newer pqadmin; use that release.")
        header, _ = records.decode(record[1:])
        unknown = records.unknown(header, _KNOWN)
        return cls(format=header["format"], id=header["id"], unknown=unknown)


def settle(kv: KeyValueStore, keyspace: Keyspace, url: str) -> str:
    """Return the store's id, writing its record on first use. Refuse what this release cannot use."""
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
    """Return the record of a store; raise `NotAStore` or `CopyUnfinished` when there is none."""

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
    """Raise `NewerFormat` or `OlderFormat` for a store that another release wrote."""
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
            "{url} was written by pqadmin 0.1. Export its queues with that release (“pqadmin export_items QUEUE”) "
            "and import them into a new store (“pqadmin import_items QUEUE FILE”). Nothing was changed.",
            url=url,
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
