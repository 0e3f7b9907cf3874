"""Ordered keys and serializable transactions: the port, and the one place that opens a store from a URL."""

from __future__ import annotations

import time
from collections.abc import Callable

from queues.kv.errors import BadStoreURL
from queues.kv.port import KeyValueStore
from queues.kv.slots import DEFAULT_PREFIX

__all__ = ["open_kv"]


def open_kv(
    url: str,
    *,
    max_bytes: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    slots: bytes = DEFAULT_PREFIX,
) -> KeyValueStore:
    """Open the store at a URL, creating it when it is not there.

    `lmdb:PATH` is a folder on this machine; opened twice in a process it is one store. `memory:` is a fresh
    private store, `memory:NAME` one that this process shares; `fdb:CLUSTER_FILE` is a FoundationDB cluster (`fdb:`
    the default file's). `max_bytes` limits what an LMDB store may hold (default: `PQ_STORE_MAX_BYTES` from the
    environment, else 64 GiB); `clock` counts seconds for time limits; `slots` is the prefix of the keys by which
    a cluster's clients learn what became of a commit whose answer was lost.
    Raises `BadStoreURL`, `StoreUnavailable`, `StoreReadOnly`.
    """
    engine, colon, rest = url.partition(":")
    if not colon or "\0" in rest:
        raise BadStoreURL(f"{url!r} is no store URL; write lmdb:PATH, fdb:CLUSTER_FILE or memory:")
    if engine == "lmdb":
        from queues.kv.embedded import open_embedded

        return open_embedded(rest, max_bytes=max_bytes, clock=clock)
    if engine == "memory":
        from queues.kv.simulated import open_simulated

        return open_simulated(url, clock=clock, slots=slots)
    if engine == "fdb":
        from queues.kv.cluster import open_cluster

        return open_cluster(rest, clock=clock, slots=slots)
    raise BadStoreURL(f"{url!r}: there is no engine {engine!r}; use lmdb:PATH, fdb:CLUSTER_FILE or memory:")
