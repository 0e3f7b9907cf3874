"""Thread with an event loop: runs the coroutines of a remote store for all its threads and coroutines."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar

from queues.errors import ForkedStore, StoreClosed

T = TypeVar("T")


class LoopThread:
    """A thread with an event loop, from its start to its close. Thread-safe."""

    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._closed = False
        #: Held while a coroutine begins, so that none begins behind the end.
        self._beginning = threading.Lock()
        self._waiting: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine. The calling thread waits for it, and an interrupted one ends it."""
        future = self.begin(work)
        try:
            return future.result()
        except CancelledError:
            raise closed_meanwhile() from None
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a coroutine."""
        if self._pid != os.getpid():  # its lock may be held for ever
            work.close()
            if self._closed:
                raise StoreClosed("The store is closed.")
            raise ForkedStore("This store was opened before a fork: open a new one in the child process.")
        with self._beginning:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise StoreClosed("The store is closed.")

    def soon(self, do: Callable[..., object], *values: Any) -> None:
        """Call a function in this thread."""
        with suppress(RuntimeError):  # closed
            self._loop.call_soon_threadsafe(do, *values)

    async def interruptibly(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return what a coroutine function returns; None after `interrupt`."""
        task = asyncio.ensure_future(work())
        self._waiting.add(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            task.cancel()
            if caller is None or caller.cancelling():
                raise
            return None
        finally:
            self._waiting.discard(task)

    def interrupt(self) -> None:
        """End all that `interruptibly` waits for."""

        def end() -> None:
            for task in tuple(self._waiting):
                task.cancel()

        self.soon(end)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End all coroutines but the given last one. Idempotent."""
        if self._closed or self._pid != os.getpid():
            self._closed = True
            return
        with self._beginning:
            if self._closed:
                return
            self._closed = True

        async def end() -> None:
            await _cancel_others()
            await last()
            await _cancel_others()  # what those that ended began

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def closed_meanwhile() -> StoreClosed:
    """Return the error of what the close ended."""
    return StoreClosed("The store was closed before the answer came. The request may have been executed.")


async def _cancel_others() -> None:
    """End all other tasks of this event loop."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.wait(others)
