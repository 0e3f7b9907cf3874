"""Where the answers to an event loop's requests arrive: one wake-up of the loop for a batch."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Sequence
from typing import Any, TypeVar

from queues.kv.port import KeyValueStore, Server, Ticket

R = TypeVar("R")
A = TypeVar("A")

log = logging.getLogger("queues.asynchronous")


class Mailbox:
    """The requests of one event loop that are under way. Used in the loop's thread, but for `land`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = weakref.ref(loop)
        self._waiting: dict[Any, asyncio.Future[None]] = {}

    def land(self, tickets: Sequence[Any]) -> None:
        """Tell the loop of answers; called by the engine's thread, once for a batch."""
        loop = self.loop()
        try:
            if loop is None:
                raise RuntimeError("the loop is gone")
            loop.call_soon_threadsafe(self._open, tickets)
        except RuntimeError:
            log.warning("An event loop ended before %d of its requests were answered", len(tickets))

    async def ask(self, kv: KeyValueStore, server: Server[R, A], request: R, takes: bool = False) -> A:
        """Have a request served and return its answer.

        Cancelled before anybody serves it, it is taken back. Later its outcome is waited for: what was done is told
        as if nothing had happened, so that nothing is taken into nobody's hands, and the cancellation comes again as
        soon as the caller waits for anything else. It comes at once when the request failed, or was to take something
        (`takes`) and its empty answer says that nothing was taken.
        """
        ticket = kv.submit(server, request, self)
        arrival = self._waiting[ticket] = asyncio.Future(loop=self.loop())
        try:
            await arrival
        except asyncio.CancelledError:
            if ticket.withdraw():
                self._waiting.pop(ticket, None)
                raise
            await self._outcome(ticket)
            if ticket.error is not None or (takes and not ticket.answer):
                raise
            _cancel_again()
        error = ticket.error
        if error is None:
            answer: A = ticket.answer
            return answer
        try:
            raise error
        finally:
            del error

    def _open(self, tickets: Sequence[Any]) -> None:
        arrived = self._waiting.pop
        for ticket in tickets:
            arrival = arrived(ticket, None)  # None when its task was interrupted before it waited
            if arrival is not None and not arrival.done():
                arrival.set_result(None)

    def _arrival(self, ticket: Ticket) -> asyncio.Future[None]:
        arrival = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        return arrival

    async def _outcome(self, ticket: Ticket) -> None:
        """Wait for an answer that nobody can stop any more, however often the task is cancelled."""
        while ticket in self._waiting:
            try:
                await self._arrival(ticket)
            except asyncio.CancelledError:
                continue


def _cancel_again() -> None:
    """Cancel the task once more, as soon as it waits again, unless whoever cancelled it has taken that back.

    It is the same cancellation: it counts once, or whoever takes it back would believe in another one.
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
