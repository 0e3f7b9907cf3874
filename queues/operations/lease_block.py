"""What a lease does as a context manager: extend while its block runs, then acknowledge or release.

A lease is a value; what settles it is no part of that. It is not compared, not printed, and left out of pickles.
"""

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from typing import Any, Self, TypedDict, TypeVar

from queues.errors import LeaseNotBound, QueueError, StaleLease, StoreError
from queues.kv.boottime import boottime
from queues.model import attempt_log
from queues.model.config import MAX_REASON

#: Of its seconds, after which a lease is extended.
PART = 1 / 3
#: Seconds that a wait for the next extension takes at most: waits stop while the machine sleeps, leases run out.
STEP = 1.0


class Binding:
    """Knows how to settle the leases of one queue, by its verbs. This one knows no queue."""

    __slots__ = ("_clock", "_keep", "_queue", "_seconds", "queue_id")

    def __init__(
        self,
        queue: Any = None,
        *,
        seconds: float = 0.0,
        keep: bool = False,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._queue = queue
        #: That of the queue, None for none.
        self.queue_id: int | None = None if queue is None else queue.opened.id
        self._seconds = seconds
        self._keep = keep
        self._clock = clock

    def block(self, lease: Any) -> AbstractContextManager[None]:
        """Return the block of a lease in a thread."""
        raise LeaseNotBound("This lease cannot be used in “with”: take it from a Queue, or settle it by its queue.")

    def async_block(self, lease: Any) -> AbstractAsyncContextManager[None]:
        """Return the block of a lease in a coroutine."""
        raise LeaseNotBound(
            "This lease cannot be used in “async with”: take it from an AsyncQueue, or settle it by its queue."
        )


_UNBOUND = Binding()


class LeaseBlock:
    """A context manager that settles itself: the base of `Lease`, with all that is no part of its value."""

    __slots__ = ("_binding", "_block")
    _block: Any

    def __enter__(self) -> Self:
        block = binding_of(self).block(self)
        object.__setattr__(self, "_block", block)
        block.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._block.__exit__(*raised)

    async def __aenter__(self) -> Self:
        block = binding_of(self).async_block(self)
        object.__setattr__(self, "_block", block)
        await block.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._block.__aexit__(*raised)


L = TypeVar("L", bound=LeaseBlock)


def bound(lease: L, binding: Binding) -> L:
    """Return the lease, which `binding` settles from now on."""
    object.__setattr__(lease, "_binding", binding)  # the lease is frozen
    return lease


def binding_of(lease: object) -> Binding:
    """Return what settles a lease; tokens, and leases that were copied or built by hand, have nothing."""
    binding: Binding = getattr(lease, "_binding", _UNBOUND)
    return binding


class QueueBinding(Binding):
    """Settles leases by the verbs of a queue; `keep` extends them by `seconds` while their blocks run."""

    @contextmanager
    def block(self, lease: Any) -> Iterator[None]:
        """Return the block of a lease in a thread."""
        keeper = LeaseKeeper(lambda: self._queue.extend(lease, seconds=self._seconds), self._seconds, clock=self._clock)
        if self._keep:
            self._queue.opened.context.background_threads.start(keeper.run, "pq-lease")
        try:
            yield
        except BaseException as error:
            keeper.stop()
            try:
                self._queue.release(lease, **told(error), count_attempt=is_attempt(error))
            except (QueueError, StoreError) as failure:
                error.add_note(_unreleased(failure))
            raise
        keeper.stop()
        self._queue.ack(lease)


class AsyncBinding(Binding):
    """The same by the verbs of a queue for coroutines."""

    @asynccontextmanager
    async def async_block(self, lease: Any) -> AsyncIterator[None]:
        """Return the block of a lease in a coroutine."""
        keeper = asyncio.create_task(self._extend(lease)) if self._keep else None
        try:
            yield
        except BaseException as error:
            try:
                await _to_its_end(partial(self._release, lease, error, keeper))
            except (QueueError, StoreError) as failure:
                error.add_note(_unreleased(failure))
            raise
        await _to_its_end(partial(self._ack, lease, keeper))

    async def _ack(self, lease: Any, keeper: "asyncio.Task[None] | None") -> None:
        await _end(keeper)
        await self._queue.ack(lease)

    async def _release(self, lease: Any, error: BaseException, keeper: "asyncio.Task[None] | None") -> None:
        await _end(keeper)
        await self._queue.release(lease, **told(error), count_attempt=is_attempt(error))

    async def _extend(self, lease: Any) -> None:
        while True:
            due = self._clock() + self._seconds * PART
            while (left := due - self._clock()) > 0:
                await asyncio.sleep(min(left, STEP))
            try:
                await self._queue.extend(lease, seconds=self._seconds)
            except StaleLease:
                return
            except (QueueError, StoreError):
                continue


async def _end(keeper: "asyncio.Task[None] | None") -> None:
    """Extend no longer; wait for the extension that is under way."""
    if keeper is not None:
        keeper.cancel()
        await asyncio.wait([keeper])


async def _to_its_end(settle: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Settle a lease; a cancellation meanwhile is raised once that is done, or has failed.

    Otherwise an item that was handled would come back, with one more attempt, when its lease expires.
    """
    settling = asyncio.create_task(settle())
    canceled: asyncio.CancelledError | None = None
    while not settling.done():
        try:
            await asyncio.wait([settling])
        except asyncio.CancelledError as error:
            canceled = error
        if settling.cancelled():  # a loop that ends cancels all its tasks
            settling = asyncio.create_task(settle())
    if canceled is None:
        return settling.result()
    settling.exception()  # the cancellation is raised in its place
    raise canceled


class LeaseKeeper:
    """Extends one lease of so many seconds in a thread until its block ends, or until it is lost."""

    def __init__(
        self,
        extend: Callable[[], object],
        seconds: float,
        *,
        lost: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._extend = extend
        self._rest = seconds * PART
        self._lost = lost
        self._clock = clock
        self._ended = threading.Event()
        #: Held during an extension, so that none is under way once the block has ended.
        self._extending = threading.Lock()

    def run(self) -> None:
        """Extend until told to stop, or until the lease is over."""
        while self._wait():
            with self._extending:
                if self._ended.is_set():
                    return
                try:
                    self._extend()
                except StaleLease:
                    self._lost()
                    return
                except (QueueError, StoreError):
                    continue

    def _wait(self) -> bool:
        """Wait until the next extension is due; return False at the end."""
        due = self._clock() + self._rest
        while (left := due - self._clock()) > 0:
            if self._ended.wait(min(left, STEP)):
                return False
        return not self._ended.is_set()

    def stop(self) -> None:
        """Extend no longer; wait for the extension that is under way."""
        self._ended.set()
        with self._extending:
            pass


def is_attempt(error: BaseException) -> bool:
    """Say whether a block that ended so has tried: a stop (KeyboardInterrupt, a cancellation) is no failure."""
    return isinstance(error, Exception)


def _unreleased(failure: Exception) -> str:
    """Return the note of an error after which the item was not released."""
    return f"The leased item was not released and comes back when the lease expires: {failure}"


class Told(TypedDict):
    """What is kept with an item of an error, as the arguments of a release."""

    reason: str
    traceback: str


def told(error: BaseException) -> Told:
    """Return what is kept with an item of an error: its kind and message as the reason, and its traceback.

    An error that fails to give its text or traceback is told by its kind. The first frame is left out: it is ours.
    """
    kind, message, trace = type(error).__name__, "", ""
    with suppress(Exception):
        message = str(error).encode(errors="backslashreplace").decode()
    with suppress(Exception):
        frames = error.__traceback__ and error.__traceback__.tb_next
        trace = attempt_log.cut("".join(traceback.format_exception(type(error), error, frames)))
    return {"reason": f"{kind}: {message}"[:MAX_REASON] if message else kind, "traceback": trace}
