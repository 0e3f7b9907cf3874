"""Long polls under way: when the site stops they end at once, with nothing or with what they just took."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_under_way: set[asyncio.Task[Any]] = set()


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
