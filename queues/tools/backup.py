"""Backups of embedded stores, written while the store is in use.

A cluster has tools of its own for this: fdbbackup and fdbrestore.
"""

from dataclasses import dataclass
from typing import Any

from queues.catalog import store_record
from queues.keys.keyspace import Keyspace
from queues.kv import back_up_kv, restore_kv
from queues.kv.port import KeyValueStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What a backup holds."""

    store_id: str
    format: int
    #: Bytes of the pages that hold data.
    size: int


def back_up(url: str, path: str, *, root: tuple[Any, ...] = ("pq",)) -> Backup:
    """Write a consistent copy of a store to a new folder. The store may be in use.

    The folder appears under its name when the copy is whole, flushed, and was opened and looked at. Raises
    `EmbeddedOnly`, `PathTaken`, `StoreUnavailable`, `NotAStore`, `NewerFormat`, `OlderFormat`.
    """
    return back_up_kv(url, path, lambda kv: _look(kv, Keyspace(root), url))


def restore_backup(path: str, url: str, *, root: tuple[Any, ...] = ("pq",)) -> Backup:
    """Put a backup into an absent or empty folder, after it was opened and looked at.

    Raises `EmbeddedOnly`, `PathTaken`, `StoreUnavailable`, `NotAStore`, `NewerFormat`, `OlderFormat`.
    """
    return restore_kv(path, url, lambda kv: _look(kv, Keyspace(root), path))


def _look(kv: KeyValueStore, keyspace: Keyspace, where: str) -> Backup:
    record = store_record.require(kv, keyspace, where)
    store_record.check(record, where)
    return Backup(store_id=record.id, format=record.format, size=kv.size()[0])
