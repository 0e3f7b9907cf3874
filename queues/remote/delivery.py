"""Delivery of requests to a server: the storage port of a store with verbs that are executed elsewhere.

It executes requests by calls of the HTTP API, and refuses transactions: these would need the store itself.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from queues.context import StoreContext
from queues.errors import AnswerLost, LocalStoreOnly, QueueNotFound
from queues.kv.port import Count, ReadTransaction, Server, Ticket, Transaction, Wire
from queues.model.config import Config
from queues.operations.open_queue import OpenQueue, Request
from queues.remote.call import Call
from queues.remote.connection import Connection
from queues.remote.loop_thread import closed_meanwhile
from queues.remote.shapes import config_of
from queues.serving.batch import Batch, Execution

A = TypeVar("A")
T = TypeVar("T")

#: Seconds of one long poll: proxies cut off what is silent for a minute.
POLL = 30.0
#: Seconds after which queues that are gone are looked for again.
AGAIN = 2.0
#: Queues that one call asks about, and the bytes of its address that name them: servers and proxies limit both.
MOST, LONGEST = 100, 7_000

#: Makes the calls of a request, and returns its answer: (connection, queue, request, idempotency key).
Handler = Callable[[Connection, OpenQueue, Any, str], Awaitable[Any]]
_handlers: dict[type[Request[Any]], Handler] = {}


def over_http(*kinds: type[Request[Any]]) -> Callable[[Handler], Handler]:
    """Register what has requests of these kinds executed by a server."""

    def register(handler: Handler) -> Handler:
        _handlers.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def refuse() -> NoReturn:
    """Raise what tells that a server is asked for verbs alone."""
    raise LocalStoreOnly("This needs the store itself: it cannot be done through a server.")


class Delivery:
    """The port of a store behind a server. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: Requests of coroutines that are not begun: a withdrawn one never is.
        self._unsent: set[Ticket] = set()
        #: Requests of coroutines that wait for an item on the server.
        self._waits: dict[Ticket, asyncio.Task[Any]] = {}

    # Requests

    def serve(self, server: Server[Any, Any], request: Any) -> Any:
        """Have a request executed by the server of the store; a thread waits."""
        return self.connection.thread.run(self._execute(_queue(server), request, secrets.token_hex(16)))

    def submit(self, ticket: Ticket) -> None:
        """Have a request executed without waiting: its ticket goes to its landing."""
        self._unsent.add(ticket)
        self.connection.thread.begin(self._land(ticket))

    def execute_here(self, ticket: Ticket) -> bool:
        """Return False: a server executes it."""
        return False

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a request back. A begun one stops waiting, and lands: it may have taken an item."""
        try:
            self._unsent.remove(ticket)
        except KeyError:
            self.connection.thread.soon(self._stop_waiting, ticket)
            return False
        return True

    def _stop_waiting(self, ticket: Ticket) -> None:
        waiting = self._waits.get(ticket)
        if waiting is not None:
            waiting.cancel()

    async def _execute(self, queue: OpenQueue, request: Any, key: str) -> Any:
        handler = _handlers.get(type(request))
        if handler is None:
            refuse()
        try:
            return await handler(self.connection, queue, request, key)
        except (QueueNotFound, AnswerLost) as error:
            # Of one that was executed before the queue was renamed, the server repeats the answer under the new name.
            gone = error.__cause__ if isinstance(error, AnswerLost) else error
            if not isinstance(gone, QueueNotFound) or not await self._renamed(queue):
                raise
        return await handler(self.connection, queue, request, key)

    async def _renamed(self, queue: OpenQueue) -> bool:
        """Say whether the queue is there under another name, and use that from now on."""
        name = queue.config.name
        try:
            shape = await self.connection.send(description_call(name, queue.id))
        except QueueNotFound:
            return False
        queue.settle(config_of(shape).encode())
        return queue.config.name != name

    async def _land(self, ticket: Ticket) -> None:
        try:
            self._unsent.remove(ticket)
        except KeyError:  # withdrawn
            return
        queue, request, key = _queue(ticket.server), ticket.request, secrets.token_hex(16)
        try:
            if getattr(request, "wait", 0.0):
                ticket.answer = await self._wait(ticket, queue, request, key)
            else:
                ticket.answer = await self._execute(queue, request, key)
        except asyncio.CancelledError:
            ticket.error = closed_meanwhile()
        except BaseException as error:
            ticket.error = error
        assert ticket.landing is not None
        ticket.landing.land([ticket])

    async def _wait(self, ticket: Ticket, queue: OpenQueue, request: Any, key: str) -> Any:
        """Return the answer of a server that waits. Withdrawn, it asks under the same key what was taken."""
        waiting = self._waits[ticket] = asyncio.ensure_future(self._execute(queue, request, key))
        try:
            return await waiting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return await self._execute(queue, replace(request, wait=0.0), key)
        finally:
            del self._waits[ticket]

    # Watching: the keys are ids of queues, their values names

    def watch(self, known: Mapping[bytes, bytes | None], *, timeout: float) -> bool:
        """Block until one of these queues has an item to take; False after the timeout."""
        deadline = time.monotonic() + timeout
        names = {int(queue_id): name.decode() for queue_id, name in known.items() if name is not None}
        while (left := deadline - time.monotonic()) > 0:
            ask = partial(outlook, self.connection, names, min(left, POLL))
            found = self.connection.thread.run(self.connection.thread.interruptibly(ask)) if names else []
            if found is None or any(queue["ready"] for queue in found):
                return True
            if not found:  # the server waits for none of them: they are gone, but may be restored
                rest = partial(asyncio.sleep, min(left, AGAIN), result=True)
                if self.connection.thread.run(self.connection.thread.interruptibly(rest)) is None:
                    return True
        return False

    def interrupt(self) -> None:
        """Wake every thread that is in `watch`."""
        self.connection.thread.interrupt()

    # What needs the store itself

    def read(self, fn: Callable[[ReadTransaction], T], *, background: bool = False) -> T:
        """Refuse a read transaction."""
        refuse()

    def transact(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Refuse a transaction."""
        refuse()

    def host(self, wire: Wire) -> None:
        """Refuse to execute requests of other processes."""
        refuse()

    def count(self) -> Count:
        """Refuse the count of microseconds of the processes of a store."""
        refuse()

    def keep_time(self, clock: Callable[[], float]) -> None:
        """Leave the time to the server."""

    def reads(self) -> int:
        """Return 0: the server reads."""
        return 0

    def size(self) -> tuple[int, int]:
        """Refuse the size of the store."""
        refuse()

    def close(self) -> None:
        """End the connection."""
        self.connection.close()


class RemoteQueue(OpenQueue):
    """A queue with requests that a server executes."""

    longest_poll = POLL

    __slots__ = ("_batch",)

    def __init__(self, context: StoreContext, config: Config) -> None:
        super().__init__(context, config)
        execution = Execution(run=_refuse_transaction, contended=False, batch=Batch, prepare=None)
        self._batch = Batch(self, execution)

    def batch(self, kind: type[Request[Any]]) -> Batch:
        """Return what names this queue to the delivery."""
        return self._batch

    def send(self, request: Request[A], tr: Transaction | None = None) -> A:
        """Have a request executed by the server."""
        if tr is not None:
            refuse()
        return super().send(request)

    def look(
        self, request: Request[A], tr: ReadTransaction | None = None, *, background: bool = False, **local: Any
    ) -> A:
        """Have a request answered that changes nothing."""
        if tr is not None:
            refuse()
        return self.send(request)


def description_call(name: str, queue_id: int | None = None) -> Call:
    """Return the call that asks what a queue is; of an id, under whatever name."""
    return Call(method="GET", path=("queues", name, "description"), query={"id": queue_id})


def outlook_calls(names: Mapping[int, str], wait: float) -> list[Call]:
    """Return the calls that ask whether one of these queues, names by id, has an item to take."""
    parts, size = list[dict[int, str]](), 0
    for queue_id, name in names.items():
        size += len(f"&queue={quote(name, safe='')}&id={queue_id}")
        if not parts or len(parts[-1]) == MOST or size > LONGEST:
            parts.append({})
            size = len(f"&queue={quote(name, safe='')}&id={queue_id}")
        parts[-1][queue_id] = name
    return [
        Call(method="GET", path=("outlook",), query={"queue": [*part.values()], "id": [*part]}, wait=wait)
        for part in parts
    ]


async def outlook(connection: Connection, names: Mapping[int, str], wait: float) -> list[Mapping[str, Any]]:
    """Return what a server tells of these queues, names by id; with `wait` as soon as one has an item to take."""
    asking = [asyncio.ensure_future(connection.send(call)) for call in outlook_calls(names, wait)]
    found: list[Mapping[str, Any]] = []
    try:
        for answer in asyncio.as_completed(asking):
            found += (await answer)["queues"]
            if wait and any(queue["ready"] for queue in found):
                break
    finally:
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return found


def _refuse_transaction(*_: Any) -> NoReturn:
    refuse()


def _queue(server: Any) -> OpenQueue:
    queue: OpenQueue = server.queue
    return queue
