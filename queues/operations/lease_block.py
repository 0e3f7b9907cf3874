"""What a lease does as a context manager: extend while its block runs, then acknowledge or release.

A lease is a value; what settles it is no part of that. It is not compared, not printed, and left out of pickles.
"""

import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from queues.errors import LeaseNotBound, QueueError, StaleLease, StoreError
from queues.model.config import MAX_REASON

#: Of its seconds, after which a lease is extended.
PART = 1 / 3
#: Seconds, at most: what a thread can wait.
_LONGEST = threading.TIMEOUT_MAX

End = Callable[[BaseException | None], None]
AsyncEnd = Callable[[BaseException | None], Awaitable[None]]


class Binding:
    """Knows how to settle the leases of one queue. This one knows none."""

    def begin(self, lease: Any) -> End:
        """Begin the block of a lease; what is returned ends it."""
        raise LeaseNotBound("This lease cannot be used in “with”: take it from a Queue, or settle it by its queue.")

    async def begin_async(self, lease: Any) -> AsyncEnd:
        """Begin the block of a lease in a coroutine; what is returned ends it."""
        raise LeaseNotBound(
            "This lease cannot be used in “async with”: take it from an AsyncQueue, or settle it by its queue."
        )


_UNBOUND = Binding()


class LeaseBlock:
    """A context manager that settles itself: the base of `Lease`, with all that is no part of its value."""

    __slots__ = ("_binding", "_end")

    def __enter__(self) -> Self:
        object.__setattr__(self, "_end", binding_of(self).begin(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)  # type: ignore[attr-defined]

    async def __aenter__(self) -> Self:
        object.__setattr__(self, "_end", await binding_of(self).begin_async(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(error)  # type: ignore[attr-defined]


L = TypeVar("L", bound=LeaseBlock)


def bound(lease: L, binding: Binding) -> L:
    """Return the lease, which `binding` settles from now on."""
    object.__setattr__(lease, "_binding", binding)  # the lease is frozen
    return lease


def binding_of(lease: object) -> Binding:
    """Return what settles a lease; tokens, and leases that were copied or built by hand, have nothing."""
    binding: Binding = getattr(lease, "_binding", _UNBOUND)
    return binding


class Settler(Protocol):
    """The verbs of a queue that settle leases."""

    def ack(self, lease: Any, /) -> None: ...

    def release(self, lease: Any, /, *, reason: str, count_attempt: bool) -> object: ...

    def extend(self, lease: Any, /, *, seconds: float) -> object: ...


class QueueBinding(Binding):
    """Settles leases by the verbs of a queue; `keep` extends them by `seconds` while their blocks run."""

    __slots__ = ("_keep", "_queue", "_seconds", "_start")

    def __init__(
        self, queue: Settler, *, seconds: float, keep: bool, start: Callable[[Callable[[], None], str], None]
    ) -> None:
        self._queue = queue
        self._seconds = seconds
        self._keep = keep
        self._start = start

    def begin(self, lease: Any) -> End:
        """Begin the block of a lease; what is returned ends it."""
        keeper = _Keeper(lambda: self._queue.extend(lease, seconds=self._seconds), self._seconds * PART)
        if self._keep:
            self._start(keeper.run, "pq-lease")

        def end(error: BaseException | None) -> None:
            keeper.stop()
            if error is None:
                self._queue.ack(lease)
                return
            try:
                self._queue.release(lease, reason=reason_of(error), count_attempt=is_attempt(error))
            except (QueueError, StoreError) as failure:
                error.add_note(unreleased(failure))

        return end


class _Keeper:
    """Extends one lease in a thread until its block ends."""

    def __init__(self, extend: Callable[[], object], rest: float) -> None:
        self._extend = extend
        self._rest = min(rest, _LONGEST)
        self._ended = threading.Event()
        #: Held during an extension, so that none is under way once the block has ended.
        self._extending = threading.Lock()

    def run(self) -> None:
        """Extend until told to stop, or until the lease is over: the end of the block says so."""
        while not self._ended.wait(self._rest):
            with self._extending:
                if self._ended.is_set():
                    return
                try:
                    self._extend()
                except StaleLease:
                    return
                except (QueueError, StoreError):
                    continue

    def stop(self) -> None:
        """Extend no longer; wait for the extension that is under way."""
        self._ended.set()
        with self._extending:
            pass


def is_attempt(error: BaseException) -> bool:
    """Say whether a block that ended so has tried: a stop (KeyboardInterrupt, a cancellation) is no failure."""
    return isinstance(error, Exception)


def unreleased(failure: Exception) -> str:
    """Return the note of an error whose item was not released."""
    return f"The leased item was not released and comes back when the lease expires: {failure}"


def reason_of(error: BaseException) -> str:
    """Return the reason that is kept with an item: the error's kind and message."""
    kind, message = type(error).__name__, str(error).encode(errors="backslashreplace").decode()
    return f"{kind}: {message}"[:MAX_REASON] if message else kind
