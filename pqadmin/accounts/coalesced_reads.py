"""Coalesced reads: one for all requests that begin in the same turn of an event loop."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class OncePerTurn(Generic[K, V]):
    """A function that an event loop calls once a turn for each argument.

    The requests that call it in a turn came before its reading, so each sees what was committed before it came.
    """

    def __init__(self, read: Callable[[K], V]) -> None:
        self._read = read
        self._found: dict[K, V] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, key: K) -> V:
        """Return what was read in this turn, or read it; an error is not kept."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._found = loop, {}
        if key in self._found:
            return self._found[key]
        value = self._read(key)
        if not self._found:
            loop.call_soon(self._found.clear)
        self._found[key] = value
        return value
