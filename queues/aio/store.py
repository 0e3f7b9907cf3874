"""The store for coroutines: each call runs in a thread, and its queues are those for coroutines."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

from queues.aio.queue import AnyAsyncQueue, AsyncFifoQueue, AsyncPriorityQueue, for_coroutines, in_thread
from queues.model.codec import CodecName
from queues.model.item import Item
from queues.model.priority import Priority
from queues.opening import open_store
from queues.operations.space import Space
from queues.queue import AnyQueue
from queues.queue_catalog import OfAnyKind, OfPriorities
from queues.store import Store


def _restored(found: AnyQueue | Item) -> AnyAsyncQueue | Item:
    return found if isinstance(found, Item) else for_coroutines(found)


def _all(found: list[AnyQueue]) -> list[AnyAsyncQueue]:
    return [for_coroutines(queue) for queue in found]


class AsyncStore:
    """An open store for the coroutines of any event loop. Close it, or use it in `async with`.

        async with AsyncStore(open_store("lmdb:var/store")) as store:
            jobs = await store.create_queue("jobs", exist_ok=True)
            await store.transact(lambda tr: jobs.sync.push(b"value", 5, tr=tr))

    `sync` is the store for threads: a function that `transact` runs calls its verbs, and those of `AsyncQueue.sync`.
    `wait_for_change` and `wait_for_items` hold a thread of the event loop's executor while they wait, also when
    canceled; to wait for items of one queue, give its verbs `wait=`.
    """

    def __init__(self, store: Store) -> None:
        self.sync = store

    @classmethod
    async def open(cls, url: str, **options: Any) -> Self:
        """Open the store at a URL, with the options of `open_store`."""
        return cls(await asyncio.to_thread(open_store, url, **options))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sync.url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @overload
    async def create_queue(
        self, name: str, *, kind: Literal["priority"] = ..., **options: Unpack[OfPriorities]
    ) -> AsyncPriorityQueue: ...

    @overload
    async def create_queue(
        self, name: str, *, kind: Literal["fifo"], **options: Unpack[OfAnyKind]
    ) -> AsyncFifoQueue: ...

    @overload
    async def create_queue(self, name: str, *, kind: str, **options: Unpack[OfPriorities]) -> AnyAsyncQueue: ...

    async def create_queue(
        self,
        name: str,
        *,
        kind: str = "priority",
        priority_type: str = "int",
        bands: Sequence[Priority] | None = None,
        codec: CodecName = "bytes",
        exist_ok: bool = False,
    ) -> AnyAsyncQueue:
        """Create a queue: see `Store.create_queue`."""
        created = await asyncio.to_thread(
            self.sync.create_queue,
            name,
            kind=kind,
            priority_type=priority_type,
            bands=bands,
            codec=codec,
            exist_ok=exist_ok,
        )
        return for_coroutines(created)

    def space(self, name: str) -> "AsyncSpace":
        """Return the application's own keys under a name: see `Store.space`."""
        return AsyncSpace(self.sync.space(name))

    attach = in_thread(Store.attach, for_coroutines)
    queue = in_thread(Store.queue, for_coroutines)
    priority_queue = in_thread(Store.priority_queue, AsyncPriorityQueue)
    fifo_queue = in_thread(Store.fifo_queue, AsyncFifoQueue)
    queues = in_thread(Store.queues, _all)
    rename_queue = in_thread(Store.rename_queue, for_coroutines)
    restore = in_thread(Store.restore, _restored)
    close = in_thread(Store.close)
    detach = in_thread(Store.detach)
    delete_queue = in_thread(Store.delete_queue)
    directory = in_thread(Store.directory)
    read = in_thread(Store.read)
    transact = in_thread(Store.transact)
    once = in_thread(Store.once)
    first_answer = in_thread(Store.first_answer)
    snapshot = in_thread(Store.snapshot)
    wait_for_change = in_thread(Store.wait_for_change)
    outlooks = in_thread(Store.outlooks)
    wait_for_items = in_thread(Store.wait_for_items)
    sweep = in_thread(Store.sweep)
    set_clock = in_thread(Store.set_clock)
    size = in_thread(Store.size)
    now = in_thread(Store.now)


class AsyncSpace:
    """A `Space` for coroutines. `sync` is the one for threads, which a function that `transact` runs uses."""

    def __init__(self, space: Space) -> None:
        self.sync = space

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sync.name!r}>"

    get = in_thread(Space.get)
    set = in_thread(Space.set)
    clear = in_thread(Space.clear)
    get_range = in_thread(Space.get_range)
