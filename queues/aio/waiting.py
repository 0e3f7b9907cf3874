"""Coroutines that wait for items of a queue: they wait in the same queue as threads do.

A coroutine that leads has one thread watch for it. That thread takes nothing, so no item is lost when the coroutine
goes away. There is one such thread for a queue, while coroutines wait for it.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from queues.model.duration import Wait, wait_seconds
from queues.operations.open_queue import OpenQueue
from queues.operations.wait import LONGEST, NOT_NOW, look_out, poll_seconds
from queues.serving.waiters import Call, Waiter, WaitQueue

T = TypeVar("T")


class _Turn:
    """Stands for the lock that a thread would sleep on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.open = asyncio.Event()

    def release(self) -> None:
        """Wake the coroutine, from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and its coroutine with it
            self._loop.call_soon_threadsafe(self.open.set)

    def acquire(self, *, blocking: bool = True) -> bool:
        """Close it again."""
        self.open.clear()
        return True


class _AsyncWaiter(Waiter):
    """One waiting coroutine."""

    __slots__ = ()

    def __init__(self) -> None:
        self.call = None
        self.turn = _Turn(asyncio.get_running_loop())

    async def called(self, deadline: float) -> Call | None:
        """Sleep until called; None when the deadline has passed before."""
        turn: _Turn = self.turn
        while self.call is None and (left := deadline - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(_seconds(left)):
                    await turn.open.wait()
            if self.call is None:
                turn.open.clear()  # it was opened for a call that has been answered since
        return self.call


class Lookout:
    """The thread that looks out for the coroutine that leads a waiting."""

    def __init__(self, queue: OpenQueue, waiting: WaitQueue) -> None:
        self._queue = queue
        self._waiting = waiting
        self._mutex = threading.Lock()
        self._running = False
        #: The coroutine that leads: (its loop, its future).
        self._leader: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    async def item(self) -> None:
        """Return when the leader is to take something; raise what keeps all waiters from it."""
        loop = asyncio.get_running_loop()
        seen: asyncio.Future[None] = loop.create_future()
        with self._mutex:
            self._leader = (loop, seen)
            start, self._running = not self._running, True
        try:
            if start:
                self._start()
            await seen
        finally:
            with self._mutex:
                if self._leader is not None and self._leader[1] is seen:
                    self._leader = None

    def _start(self) -> None:
        """Start the thread; where there can be none, the next leader tries again."""
        try:
            self._queue.context.background_threads.start(self._look_out, "pq-lookout")
        except BaseException:
            with self._mutex:
                self._running = False
            raise

    def _look_out(self) -> None:
        looks = 0
        while True:
            with self._mutex:
                if self._leader is None:
                    self._running = False
                    return
            error: BaseException | None = None
            try:
                found = look_out(self._queue, self._waiting, time.monotonic() + LONGEST, looks)
            except Exception as failure:
                error, found = failure, None
            looks = found or 0
            if found is None:
                with self._mutex:
                    leader, self._leader = self._leader, None
                if leader is not None:
                    with suppress(RuntimeError):
                        leader[0].call_soon_threadsafe(_tell, leader[1], error)


def _tell(seen: asyncio.Future[None], error: BaseException | None) -> None:
    if seen.done():
        return
    if error is None:
        seen.set_result(None)
    else:
        seen.set_exception(error)


def _lookout(queue: OpenQueue, waiting: WaitQueue) -> Lookout:
    found: Lookout | None = waiting.lookout
    if found is None:
        found = waiting.lookout = Lookout(queue, waiting)
    return found


def _seconds(left: float) -> float | None:
    """Return the seconds of a timeout; None: for ever."""
    return max(0.0, left) if left < threading.TIMEOUT_MAX else None


async def wait_for(queue: OpenQueue, take: Callable[[float], Awaitable[T]], nothing: T, wait: Wait) -> T:
    """Return what `take` takes as soon as that is something; `nothing` after the longest wait.

    `take` is given the seconds for which the server of a remote store may wait; else 0.
    """
    if wait is False:
        return await take(0.0)
    deadline = time.monotonic() + wait_seconds(wait)
    while True:
        found = await _try(take, nothing, poll_seconds(queue, deadline))
        if found or time.monotonic() >= deadline:
            return found
        if not queue.longest_poll:
            break
    waiting, waiter = queue.context.wait_queues.of(queue.id), _AsyncWaiter()
    with queue.consumption.waits():
        try:
            waiting.enter(waiter)
            while call := await waiter.called(deadline):
                if call is Call.LEAD:
                    return await _lead(_lookout(queue, waiting), take, nothing, deadline)
                if found := await _try(take, nothing):
                    return found
                waiting.enter_again(waiter)
            return nothing
        finally:
            waiting.leave(waiter)


async def _lead(lookout: Lookout, take: Callable[[float], Awaitable[T]], nothing: T, deadline: float) -> T:
    while True:
        try:
            async with asyncio.timeout(_seconds(deadline - time.monotonic())):
                await lookout.item()
        except TimeoutError:
            return nothing
        if found := await _try(take, nothing):
            return found


async def _try(take: Callable[[float], Awaitable[T]], nothing: T, seconds: float = 0.0) -> T:
    try:
        return await take(seconds)
    except NOT_NOW:
        return nothing
