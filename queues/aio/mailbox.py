"""Where the answers to an event loop's requests arrive: one wake-up of the loop for a batch."""

import asyncio
import logging
import weakref
from collections.abc import Callable, Generator, Sequence
from contextvars import Context
from typing import Any

from queues.kv.port import KeyValueStore, Server, Ticket

log = logging.getLogger("queues.aio")


class Arrival(Ticket):
    """A request of a coroutine, awaited until its answer is there.

    It does for the task what a future does, and lets it go on straight from where answers arrive: a future of asyncio's
    own tells the loop to tell the task, which cost a third of what a call of a coroutine took.

    Canceled before its batch begins, it is taken back. Later its outcome is waited for: the caller gets the answer as
    if nothing had happened, so that no item is lost, and the cancellation comes again as soon as the
    caller waits for anything else. It comes at once when the request failed, or was to take something (`takes`) and its
    empty answer says that nothing was taken.
    """

    __slots__ = ("_asyncio_future_blocking", "_canceled", "_kv", "_loop", "_takes", "context", "is_here", "resume")

    resume: "Callable[[Arrival], object] | None"
    context: Context

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        kv: KeyValueStore,
        server: Server[Any, Any],
        request: Any,
        landing: "Mailbox",
        takes: bool,
    ) -> None:
        self._loop = loop
        self._kv = kv
        self.server = server
        self.request = request
        self.landing = landing
        self.answer = self.error = self.doubt = None
        self._takes = takes
        self._canceled = False
        #: It was answered before it was awaited, and does not land.
        self.is_here = False
        #: What lets its task go on: None until that waits. One that is interrupted before never does.
        self.resume = None
        self._asyncio_future_blocking = True  # what says to a task that it may wait for this

    def __await__(self) -> Generator[Any, None, Any]:
        if self.is_here:
            self.result()
        else:
            yield self
            if self._canceled:
                _cancel_again()
        answer, self.answer = self.answer, None
        return answer

    # What a task asks of what it waits for

    def add_done_callback(self, resume: "Callable[[Arrival], object]", *, context: Context) -> None:
        """Keep what lets the task go on."""
        self.resume = resume
        self.context = context

    def result(self) -> None:
        """Raise the error of the request, or return."""
        error, self.error = self.error, None
        if self._canceled and (error is not None or (self._takes and not self.answer)):
            raise asyncio.CancelledError
        if error is not None:
            try:
                raise error
            finally:
                del error

    def cancel(self, msg: Any = None) -> bool:
        """Take the request back and let the task end, or remember that it was to: see the class."""
        if self._kv.withdraw(self):
            self.error = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
            self._loop.call_soon(_open, [self])
        else:
            self._canceled = True
        return True


class Mailbox:
    """Where an event loop's requests land. Used in the loop's thread, but for `land`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = weakref.ref(loop)

    def land(self, tickets: Sequence[Any]) -> None:
        """Tell the loop of answers; called by the engine's thread, once for a batch."""
        loop = self.loop()
        try:
            if loop is None:
                raise RuntimeError("the loop is gone")
            loop.call_soon_threadsafe(_open, list(tickets))
        except RuntimeError:
            log.warning("An event loop ended before %d of its requests were answered", len(tickets))


def _open(arrivals: list[Arrival]) -> None:
    """Let the tasks go on, one after the other. Each is forgotten at once, so that it is freed before the next ones."""
    arrivals.reverse()
    try:
        while arrivals:
            arrival = arrivals.pop()
            if arrival.resume is not None:
                arrival.context.run(arrival.resume, arrival)
    except BaseException:  # a task ends the loop: when the loop goes on, so do the other tasks
        asyncio.get_running_loop().call_soon(_open, arrivals[::-1])
        raise


def _cancel_again() -> None:
    """Cancel the task once more, as soon as it waits again, unless the canceling code has taken that back.

    It is the same cancellation, so it counts once: code that takes it back must not see another one.
    """
    task = asyncio.current_task()
    if task is None:
        return

    def cancel() -> None:
        if not task.done() and task.cancelling():
            task.uncancel()
            task.cancel()

    asyncio.get_running_loop().call_soon(cancel)


_mailboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = weakref.WeakKeyDictionary()


def mailbox() -> Mailbox:
    """Return the mailbox of the running loop."""
    loop = asyncio.get_running_loop()
    box = _mailboxes.get(loop)
    if box is None:
        box = _mailboxes[loop] = Mailbox(loop)
    return box
