"""Ordered keys and serializable transactions: the port, and the one place that opens a store from a URL."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from queues.kv.errors import BadStoreURL, EmbeddedOnly
from queues.kv.limits import MOST_BYTES
from queues.kv.port import KeyValueStore

__all__ = ["back_up_kv", "open_kv", "restore_kv", "verify_store"]

T = TypeVar("T")


def open_kv(
    url: str,
    *,
    max_bytes: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    slots: bytes | None = None,
) -> KeyValueStore:
    """Open the store at a URL, creating it when it is not there.

    `lmdb:PATH` is a folder on this machine; opened twice in a process it is one store. `memory:` is a fresh
    private store, `memory:NAME` one that this process shares; `fdb:CLUSTER_FILE` is a FoundationDB cluster (`fdb:`
    the default file's). `max_bytes` limits what an LMDB store may hold (default: `PQ_STORE_MAX_BYTES` from the
    environment, else 64 GiB); `clock` counts seconds for time limits; `slots` is the prefix of the keys by which
    a cluster's clients find out whether a commit with a lost answer was applied; without it that stays unknown.
    Raises `BadStoreURL`, `StoreUnavailable`, `StoreReadOnly`.
    """
    engine, rest = _parts(url)
    if max_bytes is not None and (type(max_bytes) is not int or not 0 < max_bytes <= MOST_BYTES):
        raise BadStoreURL(
            "max_bytes= is a whole number from 1 to {most:,}, not {value}.", most=MOST_BYTES, value=f"{max_bytes!r:.40}"
        )
    if engine == "lmdb":
        from queues.kv.embedded import open_embedded

        return open_embedded(rest, max_bytes=max_bytes, clock=clock)
    if engine == "memory":
        from queues.kv.simulated import open_simulated

        return open_simulated(url, clock=clock, slots=slots)
    if engine == "fdb":
        from queues.kv.cluster import open_cluster

        return open_cluster(rest, clock=clock, slots=slots)
    raise BadStoreURL(
        "{url}: there is no engine {engine}; use lmdb:PATH, fdb:CLUSTER_FILE, memory: or https://HOST",
        url=repr(url),
        engine=repr(engine),
    )


def back_up_kv(url: str, to: str, check: Callable[[KeyValueStore], T]) -> T:
    """Copy a store, while it is in use, to a new folder, and return what `check` says of the copy.

    Raises `EmbeddedOnly`, `PathTaken`, and what `check` raises; there is no folder then.
    """
    path = _embedded_path(url)
    from queues.kv.embedded.backup import back_up

    return back_up(path, to, check)


def restore_kv(backup: str, url: str, check: Callable[[KeyValueStore], T]) -> T:
    """Put a backup where no store is, once `check` has passed on a copy of it, and return what that says.

    Raises `EmbeddedOnly`, `PathTaken`, and what `check` raises; nothing is restored then.
    """
    path = _embedded_path(url)
    from queues.kv.embedded.backup import restore

    return restore(backup, path, check)


def verify_store(url: str) -> None:
    """Read all pages of an embedded store, which may be in use. Other engines look after their own.

    What a power cut has taken from its file is executed again first, as by `open_kv`.
    Raises `StoreDamaged`, and `StoreUnavailable` when the pages could not be read. Damage that still reads as a key
    and a value is not found here.
    """
    engine, path = _parts(url)
    if engine == "lmdb" and path and Path(path).is_dir():
        from queues.kv.embedded import verify_embedded

        verify_embedded(path)


def _parts(url: str) -> tuple[str, str]:
    engine, colon, rest = url.partition(":")
    if not colon or "\0" in rest or not _is_path(rest):
        raise BadStoreURL(
            "{url} is no store URL; write lmdb:PATH, fdb:CLUSTER_FILE, memory: or https://HOST", url=repr(url)
        )
    if rest.startswith("~") and engine in ("lmdb", "fdb"):  # a shell replaces it at the beginning of a word only
        raise BadStoreURL(
            "{url}: ~ is not replaced here; write the whole path ($HOME), or ./~ for a folder of this name.",
            url=repr(url),
        )
    return engine, rest


def _is_path(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _embedded_path(url: str) -> str:
    engine, path = _parts(url)
    if engine == "lmdb":
        if not path:
            raise BadStoreURL("lmdb: needs the path of a folder, as in lmdb:var/pq.")
        return path
    if engine == "fdb":
        raise EmbeddedOnly(
            "{url} is on a cluster: back that up and restore it with FoundationDB's own fdbbackup "
            "and fdbrestore, or copy the store with copy_store. Backups of this kind are of embedded "
            "stores (lmdb:PATH) only.",
            url=url,
        )
    if engine == "memory":
        raise EmbeddedOnly("{url} lives in memory: backups are of embedded stores (lmdb:PATH) only.", url=url)
    raise BadStoreURL(
        "{url}: there is no engine {engine}; backups are of embedded stores (lmdb:PATH) only.",
        url=repr(url),
        engine=repr(engine),
    )
