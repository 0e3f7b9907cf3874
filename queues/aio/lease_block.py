"""What a lease does in `async with`: extend while its block runs, then acknowledge or release."""

import asyncio
from typing import Any, Protocol

from queues.errors import QueueError, StaleLease, StoreError
from queues.operations.lease_block import PART, AsyncEnd, Binding, is_attempt, reason_of, unreleased


class AsyncSettler(Protocol):
    """The verbs of an async queue that settle leases."""

    async def ack(self, lease: Any, /) -> None: ...

    async def release(self, lease: Any, /, *, reason: str, count_attempt: bool) -> object: ...

    async def extend(self, lease: Any, /, *, seconds: float) -> object: ...


class AsyncBinding(Binding):
    """Settles leases by the verbs of an async queue; `keep` extends them by `seconds` while their blocks run."""

    def __init__(self, queue: AsyncSettler, *, seconds: float, keep: bool) -> None:
        self._queue = queue
        self._seconds = seconds
        self._keep = keep

    async def begin_async(self, lease: Any) -> AsyncEnd:
        """Begin the block of a lease; what is returned ends it."""
        keeper = asyncio.create_task(self._extend(lease)) if self._keep else None

        async def end(error: BaseException | None) -> None:
            if keeper is not None:
                keeper.cancel()
                await asyncio.wait([keeper])
            if error is None:
                await self._queue.ack(lease)
                return
            try:
                await self._queue.release(lease, reason=reason_of(error), count_attempt=is_attempt(error))
            except (QueueError, StoreError) as failure:
                error.add_note(unreleased(failure))

        return end

    async def _extend(self, lease: Any) -> None:
        while True:
            await asyncio.sleep(self._seconds * PART)
            try:
                await self._queue.extend(lease, seconds=self._seconds)
            except StaleLease:
                return
            except (QueueError, StoreError):
                continue
