"""FoundationDB's priority queue recipe, by a client of its own: written from the published layout, on the bare binding.

An item is (priority, count, random) = value; a new count is the last one of the priority plus 1, found by a snapshot
read from the end; a pop reads the first pair and clears it. The binding's retry loop does the rest.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fdb
from fdb import tuple as layer

from benchmarks.peers.peer import AsyncClient, Door

API_VERSION = 730


@dataclass(frozen=True, slots=True)
class Recipe:
    """A subspace that the recipe uses."""

    door: Door
    facts: str


def database(path: str) -> Any:
    """Open the cluster of this file."""
    fdb.api_version(API_VERSION)
    return fdb.open(path)


def clear(cluster: Any, prefix: tuple[Any, ...]) -> None:
    """Remove everything under a prefix."""
    packed = layer.pack(prefix)
    cluster.clear_range(packed, packed + b"\xff")


@contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[Recipe]:
    """Choose a subspace, and clear it afterwards."""
    from benchmarks.peers.peer import cluster_file

    path = cluster_file()
    name = f"pq-recipe-{os.urandom(4).hex()}"
    try:
        yield Recipe(
            Door("recipe", f"{name}@{path}"), "the published recipe, single transactions, the binding's retries"
        )
    finally:
        clear(database(path), (name,))


class RecipeClient:
    """One thread's use of the recipe."""

    def __init__(self, cluster: Any, prefix: bytes) -> None:
        self._cluster = cluster
        self._begin, self._end = prefix + b"\x00", prefix + b"\xff"
        self._prefix = prefix
        self._push = fdb.transactional(lambda tr, items: self._push_in(tr, items))
        self._pop = fdb.transactional(lambda tr, n: self._pop_in(tr, n))

    def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        self._push(self._cluster, [(value, priority)])

    def pop(self) -> bytes | None:
        """Take the value of the smallest priority."""
        found: list[bytes] = self._pop(self._cluster, 1)
        return found[0] if found else None

    def push_many(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Add values as one."""
        self._push(self._cluster, items)

    def pop_many(self, n: int) -> int:
        """Take so many values as one."""
        return len(self._pop(self._cluster, n))

    def depth(self) -> int:
        """Return how many values there are."""
        count, begin = 0, self._begin
        while True:
            pairs = list(self._cluster.get_range(begin, self._end, limit=20_000))
            count += len(pairs)
            if len(pairs) < 20_000:
                return count
            begin = pairs[-1].key + b"\x00"

    def _push_in(self, tr: Any, items: Sequence[tuple[bytes, int]]) -> None:
        for value, priority in items:
            prefix = self._prefix + layer.pack((priority,))
            last = list(tr.snapshot.get_range(prefix + b"\x00", prefix + b"\xff", limit=1, reverse=True))
            count = layer.unpack(last[0].key, len(prefix))[0] + 1 if last else 0
            tr[prefix + layer.pack((count, os.urandom(20)))] = value

    def _pop_in(self, tr: Any, n: int) -> list[bytes]:
        found = list(tr.get_range(self._begin, self._end, limit=n, streaming_mode=fdb.StreamingMode.exact))
        for pair in found:
            del tr[pair.key]
        return [pair.value for pair in found]


class Subspace:
    """The recipe's subspace as one process uses it."""

    def __init__(self, cluster: Any, prefix: bytes) -> None:
        self._cluster = cluster
        self._prefix = prefix

    def client(self) -> RecipeClient:
        """Return a client for one more thread."""
        return RecipeClient(self._cluster, self._prefix)

    async def async_client(self) -> AsyncClient:
        """Refuse: the binding has no asyncio."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave the cluster to the rest: the binding keeps it open."""


def connect(address: str) -> Subspace:
    """Reach the subspace on this cluster."""
    name, _, path = address.partition("@")
    return Subspace(database(path), layer.pack((name,)))
