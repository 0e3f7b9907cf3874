"""Opening a store by its URL: one of this process, or one behind a server."""

import time
from collections.abc import Callable
from typing import Any

from queues.errors import BadStoreURL
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.kv.boottime import boottime
from queues.kv.port import Count
from queues.model.duration import TIMEOUT, Duration, seconds_of
from queues.model.store_address import StoreAddress
from queues.operations.space import check_elements
from queues.serving.background import BackgroundThreads
from queues.serving.clock import StoreClock
from queues.store import Store

#: Seconds for which a request to a server is repeated.
TIMEOUT_SECONDS = 30.0


def open_store(
    url: str,
    *,
    token: str | None = None,
    timeout: Duration = TIMEOUT_SECONDS,
    root: tuple[Any, ...] = ("pq",),
    max_bytes: int | None = None,
    clock: Callable[[], float] | None = None,
    wall: Callable[[], float] = time.time,
    count: Callable[[], Count] | None = None,
    elapsed: Callable[[], float] = boottime,
) -> Store:
    """Open the store at a URL, creating it when it is not there.

    `lmdb:PATH` is a folder on this machine; `memory:` lives and ends with this object; `fdb:CLUSTER_FILE` is a
    FoundationDB cluster. `root` is the tuple under which all keys lie. `max_bytes` limits what pushes may fill.

    `https://HOST` is the store of the pqadmin site there, by its HTTP API: `token` says what this program may do.
    A request without an answer is repeated for `timeout` seconds, each write executed once. Transactions and the tools
    of a store are refused: `LocalStoreOnly`.

    The last four are for tests. `clock` is the store's time, in seconds since the epoch, the same in every process.
    Without it the store keeps its own time, of which `wall`, `count` and `elapsed` are this process's sources.

    Raises `BadStoreURL`, `BadKey`, `BadTime`, `StoreUnavailable` and its kinds, `OlderFormat`, `NewerFormat`,
    `NotAStore`, `CopyUnfinished`, `KeyTooLarge` for a new store's root of more than 192 bytes, and of a site
    `NotAuthenticated`, `RequestRefused`.
    """
    if not isinstance(url, str):
        raise BadStoreURL("A store's URL is text, such as lmdb:PATH, not {type}.", type=type(url).__name__)
    if not isinstance(root, tuple):
        raise BadStoreURL('root= is a tuple, such as ("pq",), not {value}.', value=f"{root!r:.40}")
    check_elements(root)
    timeout = seconds_of(timeout, TIMEOUT)
    for name, given in (("clock", clock), ("wall", wall), ("count", count), ("elapsed", elapsed)):
        if not (callable(given) or (given is None and name in ("clock", "count"))):
            raise BadStoreURL("{name}= is a function, not {value}.", name=name, value=f"{given!r:.40}")
    if url.startswith(("http://", "https://")):
        if (root, max_bytes) != (("pq",), None):
            raise BadStoreURL("root= and max_bytes= are not for {url}: the site has its own.", url=repr(url))
        from queues.remote.store import open_remote  # which imports an HTTP client

        return open_remote(url, token=token, timeout=timeout)
    if token is not None:
        raise BadStoreURL("A token is for the store of a site (https://HOST), not for {url}.", url=repr(url))
    keyspace = Keyspace(root)
    kv = open_kv(url, max_bytes=max_bytes, slots=keyspace.slots)
    try:
        own = StoreClock(
            kv, keyspace, wall=wall, count=count or kv.count, elapsed=elapsed, background_threads=BackgroundThreads()
        )
        store = Store(kv, url=url, keyspace=keyspace, clock=clock or own)
        if (clock, wall, count, elapsed) == (None, time.time, None, boottime):
            store.address = StoreAddress.of(url, root, max_bytes)
        return store
    except BaseException:
        kv.close()
        raise
