"""Long polls under way: they end when their client goes away, and at once when the site stops.

Then they answer with nothing or with what they just took.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

_under_way: set[asyncio.Task[Any]] = set()


@asynccontextmanager
async def while_there(receive: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """Cancel what the block awaits when the client goes away."""

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass  # a part of the body

    task, leaving = asyncio.current_task(), asyncio.ensure_future(leave())
    assert task is not None
    ended = canceled = False

    def cancel(left: object) -> None:
        nonlocal canceled
        if not ended:
            canceled = True
            task.cancel()

    leaving.add_done_callback(cancel)
    try:
        yield
    finally:
        ended = True
        leaving.cancel()
        if canceled:
            task.uncancel()


async def until_stopped(wait: Coroutine[Any, Any, T], nothing: T) -> T:
    """Return what a wait returns, or nothing when the site stops; a client that leaves cancels it."""
    waiting = asyncio.ensure_future(wait)
    _under_way.add(waiting)
    try:
        return await waiting
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if caller is None or caller.cancelling():
            raise
        return nothing
    finally:
        _under_way.discard(waiting)


def stop() -> None:
    """End all waits; called by any thread."""
    for waiting in tuple(_under_way):
        with suppress(RuntimeError):  # its loop has ended
            waiting.get_loop().call_soon_threadsafe(waiting.cancel)
