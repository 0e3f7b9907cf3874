"""The store for coroutines: each call runs in a thread, and queues are `AsyncQueue`s."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from queues.aio.queue import AsyncQueue
from queues.aio.threads import in_thread
from queues.model.codec import CodecName
from queues.model.priority import Priority
from queues.store import Store


class AsyncStore:
    """An open store for the coroutines of any event loop; close it, or use it in `async with`.

        async with AsyncStore(open_store("lmdb:var/store")) as store:
            jobs = await store.create_queue("jobs", exist_ok=True)
            await store.transact(lambda tr: jobs.sync.push(b"value", 5, tr=tr))

    `sync` is the store for threads: a function that `transact` runs calls its verbs, and those of `AsyncQueue.sync`.
    """

    def __init__(self, store: Store) -> None:
        self.sync = store

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sync.url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def create_queue(
        self,
        name: str,
        *,
        kind: str = "priority",
        priority_type: str = "int",
        bands: Sequence[Priority] | None = None,
        codec: CodecName = "bytes",
        exist_ok: bool = False,
    ) -> AsyncQueue:
        """Create a queue: see `Store.create_queue`."""
        made = await asyncio.to_thread(
            self.sync.create_queue,
            name,
            kind=kind,
            priority_type=priority_type,
            bands=bands,
            codec=codec,
            exist_ok=exist_ok,
        )
        return AsyncQueue(made)

    async def queue(self, name: str) -> AsyncQueue:
        """Return the queue of this name: see `Store.queue`. Raises `NotForAttached` for an attached queue."""
        return AsyncQueue(await asyncio.to_thread(self.sync.queue, name))

    async def queues(self, prefix: str = "", *, after: str | None = None, limit: int = 100) -> list[AsyncQueue]:
        """Return queues by name, without attached ones: see `Store.queues`."""
        found = await asyncio.to_thread(self.sync.queues, prefix, after=after, limit=limit)
        return [AsyncQueue(queue) for queue in found if not queue.attached]

    async def rename_queue(self, old: str, new: str) -> AsyncQueue:
        """Give a queue another name: see `Store.rename_queue`."""
        return AsyncQueue(await asyncio.to_thread(self.sync.rename_queue, old, new))

    close = in_thread(Store.close)
    delete_queue = in_thread(Store.delete_queue)
    restore = in_thread(Store.restore)
    directory = in_thread(Store.directory)
    read = in_thread(Store.read)
    transact = in_thread(Store.transact)
    once = in_thread(Store.once)
    first_answer = in_thread(Store.first_answer)
    snapshot = in_thread(Store.snapshot)
    wait_for_change = in_thread(Store.wait_for_change)
    sweep = in_thread(Store.sweep)
