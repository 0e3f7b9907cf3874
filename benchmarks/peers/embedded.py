"""Ours: a queue of the embedded store, every call answered after its commit is flushed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import lmdb

from benchmarks.peers.peer import Door
from queues import AsyncPriorityQueue, AsyncQueue, Lease, Queue, Store, open_store


@dataclass(frozen=True, slots=True)
class Embedded:
    """A store in a folder."""

    door: Door
    facts: str


@contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[Embedded]:
    """Make a store with one queue; what slows its flushes belongs into the environment of its callers."""
    with open_store(f"lmdb:{folder}/store") as store:
        store.create_queue("jobs")
    release = ".".join(map(str, lmdb.version()))
    yield Embedded(
        Door("embedded", str(folder / "store")), f"pqadmin, LMDB {release} through lmdb {version('lmdb')}, sync"
    )


class EmbeddedClient:
    """One thread's use of the queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        self._queue.push(value, priority=priority)

    def pop(self) -> bytes | None:
        """Take the value of the smallest priority."""
        item = self._queue.pop_min()
        return None if item is None else item.value

    def lease(self) -> Lease | None:
        """Hold the value of the smallest priority."""
        return self._queue.lease()

    def ack(self, lease: Lease) -> None:
        """Remove a held value for good."""
        self._queue.ack(lease)

    def push_many(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Add values as one."""
        self._queue.push_many(items)

    def pop_many(self, n: int) -> int:
        """Take so many values as one."""
        return len(self._queue.pop_many(n))

    def depth(self) -> int:
        """Return how many values there are."""
        return self._queue.depth()


class EmbeddedAsyncClient:
    """One coroutine's use of the queue."""

    def __init__(self, queue: AsyncQueue) -> None:
        self._queue = queue

    async def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        await self._queue.push(value, priority=priority)

    async def pop(self) -> bytes | None:
        """Take the value of the smallest priority."""
        item = await self._queue.pop_min()
        return None if item is None else item.value

    async def close(self) -> None:
        """Leave the queue to the other processes."""


class OpenStore:
    """The store as one process has it open."""

    def __init__(self, url: str, root: tuple[str, ...] = ("pq",)) -> None:
        self._store: Store = open_store(url, root=root)
        self.queue = self._store.queue("jobs")

    def client(self) -> EmbeddedClient:
        """Return the queue for one more thread."""
        return EmbeddedClient(self.queue)

    async def async_client(self) -> EmbeddedAsyncClient:
        """Return the queue for one more coroutine."""

        return EmbeddedAsyncClient(AsyncPriorityQueue(self.queue))

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def connect(address: str) -> OpenStore:
    """Open the store in this folder."""
    return OpenStore(f"lmdb:{address}")
