"""The verbs of one queue for coroutines, with the same arguments, answers and promises as those of `Queue`."""

import asyncio
import inspect
from asyncio import get_running_loop
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast, overload

from queues.aio.mailbox import Arrival, Mailbox, mailbox
from queues.aio.waiting import wait_for
from queues.model.config import Kind
from queues.model.duration import LEASE, Duration, Wait, seconds_of
from queues.model.item import Item
from queues.model.moment import When, either
from queues.model.priority import Priority, PriorityType
from queues.operations.lease import Lease, as_leases, extended, lease_request, leasing_end
from queues.operations.lease_block import AsyncBinding
from queues.operations.open_queue import Request
from queues.operations.peek import check_end
from queues.operations.pop import PopRequest, pop_request, waiting
from queues.operations.push import enqueue_many_request, push_many_request, push_request
from queues.operations.settle import ack_request, extend_request, release_request, settled, stale, stale_tokens
from queues.operations.wait import Outlook, OutlookRequest
from queues.queue import AnyQueue, FifoQueue, PriorityQueue, Queue, verb_of_other_kind

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@overload
def in_thread(verb: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]: ...


@overload
def in_thread(
    verb: Callable[Concatenate[Any, P], T], then: Callable[[T], R]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]: ...


def in_thread(
    verb: Callable[Concatenate[Any, P], Any], then: Callable[[Any], Any] = lambda answer: answer
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]]:
    """Return a method that runs a verb of `self.sync` in a thread and returns `then` of its answer.

    It takes no `tr`: a function that `AsyncStore.transact` runs calls the verbs of threads. A coroutine that is
    canceled leaves a thread that has begun to finish: the verb is then done and its answer is lost.
    """

    @wraps(verb)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        if "tr" in kwargs:
            raise TypeError(f"{verb.__name__}() of a coroutine takes no tr=: use the verbs of threads in transact().")
        return then(await asyncio.to_thread(getattr(self.sync, verb.__name__), *args, **kwargs))

    signature, described = inspect.signature(verb), cast(Any, call)
    described.__signature__ = signature.replace(
        parameters=[parameter for name, parameter in signature.parameters.items() if name != "tr"]
    )
    return call


class AsyncQueue:
    """A queue for the coroutines of any event loop. It has the verbs of both kinds, without `tr`.

    `sync` is the queue for threads. Pushes, pops, leases and what settles them join batches; the other verbs run in a
    thread. A coroutine that is canceled during the first has either done nothing, or gets its answer all the same and
    is canceled as soon as it waits again, so no item is lost. (`asyncio.wait_for` of Python 3.11 discards answers when
    it is canceled itself: give `wait=`, or use `asyncio.timeout`.)
    """

    #: Whether the event loop executes what joins batches itself where no other request is under way. That spares two
    #: switches between threads, and the loop does nothing else until the commit is durable.
    in_loop = False

    def __init__(self, queue: Queue) -> None:
        self.sync = queue
        self.opened = queue.opened
        self._kv = self.opened.context.kv
        self._batches = self.opened.batches
        self._consumption = self.opened.consumption
        #: What most pops are.
        self._pops = {"min": pop_request(self.opened, 1, "min", None), "max": pop_request(self.opened, 1, "max", None)}
        self._box: Mailbox | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sync.name!r} {self.sync.kind}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., None]:
            """Return what raises `WrongKind` for a verb of the other kind."""
            return verb_of_other_kind(self, name)

    @property
    def id(self) -> int:
        """The queue's number, the same through renames."""
        return self.opened.id

    @property
    def name(self) -> str:
        """The name, as last read."""
        return self.sync.name

    @property
    def kind(self) -> Kind:
        """`priority` or `fifo`."""
        return self.sync.kind

    @property
    def priority_type(self) -> PriorityType:
        """`int`, `float` or `str`; without meaning in a FIFO queue."""
        return self.sync.priority_type

    @property
    def codec(self) -> str:
        """`bytes`, `text`, `json` or `msgpack`."""
        return self.sync.codec

    async def lease(
        self,
        *,
        seconds: Duration = 60.0,
        end: str = "min",
        worker: str | None = None,
        keep: bool = False,
        wait: Wait = False,
    ) -> Lease | None:
        """Hold the item at one end for a time: see `Queue.lease`. Use a lease in `async with`."""
        leases = await self.lease_many(1, seconds=seconds, end=end, worker=worker, keep=keep, wait=wait)
        return leases[0] if leases else None

    async def lease_many(
        self,
        n: int,
        *,
        seconds: Duration = 60.0,
        end: str = "min",
        worker: str | None = None,
        keep: bool = False,
        wait: Wait = False,
    ) -> list[Lease]:
        """Hold at most `n` items for a time: see `Queue.lease_many`. Use a lease in `async with`."""
        opened, side = self.opened, leasing_end(self.opened, end)
        held = seconds_of(seconds, LEASE, above_zero=True)
        binding = AsyncBinding(self, seconds=held, keep=keep)

        async def take(within: float) -> list[Lease]:
            request = lease_request(opened, n, seconds=held, end=side, worker=worker, tr=None)
            entries = await self._send(waiting(request, within), takes=True)
            self._consumption.leased({entry.nonce: entry.expires_ms for entry in entries}, request.worker)
            return as_leases(opened, entries, binding)

        return await wait_for(opened, take, list[Lease](), wait)

    async def wait(self, timeout: Duration) -> bool:
        """Return True as soon as an item can be taken: see `Queue.wait`. No thread waits."""

        async def look(seconds: float) -> bool:
            request = OutlookRequest(self.opened.id, seconds)
            if self.opened.longest_poll:  # a server waits
                seen: Outlook = await self._send(request)
            else:
                seen = await asyncio.to_thread(self.opened.look, request)
            return seen.ready > 0

        return await wait_for(self.opened, look, False, timeout)

    async def ack(self, lease: Lease | str, *, must_hold: bool = False) -> None:
        """Acknowledge that the leased item is done: see `Queue.ack`."""
        request = ack_request(self.opened, [lease], must_hold=must_hold)
        over = await self._send(request)
        settled(self.opened, request.leases)
        if over:
            raise stale()

    async def ack_many(self, leases: Iterable[Lease | str]) -> list[str]:
        """Acknowledge leases as one: see `Queue.ack_many`."""
        leases = list(leases)
        request = ack_request(self.opened, leases)
        if not request.leases:
            return []
        over = await self._send(request)
        settled(self.opened, request.leases)
        return stale_tokens(over, leases)

    async def release(
        self,
        lease: Lease | str,
        *,
        delay: Duration | None = None,
        reason: str = "",
        traceback: str = "",
        count_attempt: bool = True,
    ) -> Item:
        """Give a leased item back: see `Queue.release`."""
        request = release_request(
            self.opened, lease, delay=delay, reason=reason, traceback=traceback, count_attempt=count_attempt
        )
        settled(self.opened, [request.lease])
        item: Item = await self._send(request)
        return item

    async def extend(self, lease: Lease | str, *, seconds: Duration) -> Lease:
        """Let a lease end so many seconds from now: see `Queue.extend`."""
        entry = await self._send(extend_request(self.opened, lease, seconds))
        self._consumption.extended(entry.nonce, entry.expires_ms)
        return extended(self.opened, entry, lease)

    # What a thread runs

    peek_many = in_thread(Queue.peek_many)
    expire = in_thread(Queue.expire)
    promote = in_thread(Queue.promote)
    promote_now = in_thread(Queue.promote_now)
    reschedule = in_thread(Queue.reschedule)
    retry_dead = in_thread(Queue.retry_dead)
    delete_dead = in_thread(Queue.delete_dead)
    remove = in_thread(Queue.remove)
    outlook = in_thread(Queue.outlook)
    tend = in_thread(Queue.tend)
    consumers = in_thread(Queue.consumers)
    depth = in_thread(Queue.depth)
    totals = in_thread(Queue.totals)
    oldest = in_thread(Queue.oldest)
    items = in_thread(Queue.items)
    delayed = in_thread(Queue.delayed)
    leased = in_thread(Queue.leased)
    dead = in_thread(Queue.dead)
    finished = in_thread(Queue.finished)
    status = in_thread(Queue.status)
    find = in_thread(Queue.find)
    find_finished = in_thread(Queue.find_finished)
    query = in_thread(Queue.query)
    search = in_thread(Queue.search)
    pause = in_thread(Queue.pause)
    resume = in_thread(Queue.resume)
    configure = in_thread(Queue.configure)

    # Inside

    async def _pop(self, request: PopRequest, wait: Wait = False) -> list[Item]:
        if wait is False:  # sent from here: each coroutine in between costs
            items: list[Item] = await self._send(request, takes=True)
            self._consumption.took(len(items))
            return items
        return await wait_for(self.opened, lambda seconds: self._pop(waiting(request, seconds)), list[Item](), wait)

    def _send(self, request: Request[Any], *, takes: bool = False) -> Arrival:
        """Have a request executed with those of concurrent callers. What is returned is awaited for its answer."""
        box, loop = self._box, get_running_loop()
        if box is None or box.loop() is not loop:
            box = self._box = mailbox()
        kind = type(request)
        batch = self._batches.get(kind) or self.opened.batch(kind)
        arrival = Arrival(loop, self._kv, batch, request, box, takes)
        if self.in_loop and self._kv.execute_here(arrival):
            arrival.is_here = True
        else:
            self._kv.submit(arrival)
        return arrival


class AsyncPriorityQueue(AsyncQueue):
    """A `PriorityQueue` for coroutines."""

    #: The queue for threads: a function that `transact` runs calls its verbs.
    sync: PriorityQueue

    def __init__(self, queue: PriorityQueue) -> None:
        super().__init__(queue)

    async def push(
        self, value: Any, priority: Priority, *, delay: Duration | None = None, due: datetime | None = None
    ) -> Item:
        """Add an item: see `PriorityQueue.push`."""
        if delay is not None or due is not None:
            return (await self.push_many([(value, priority)], delay=delay, due=due))[0]
        item: Item = await self._send(push_request(self.opened, value, priority))
        return item

    async def push_many(
        self,
        items: Iterable[tuple[Any, Priority] | tuple[Any, Priority, When | None]],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
    ) -> list[Item]:
        """Add items as one: see `PriorityQueue.push_many`."""
        request = push_many_request(self.opened, items, either(delay, due))
        return await self._send(request) if request.values else []

    async def pop_min(self, *, wait: Wait = False) -> Item | None:
        """Take the item of the smallest priority, or wait for one: see `PriorityQueue.pop_min`."""
        items = await self._pop(self._pops["min"], wait)
        return items[0] if items else None

    async def pop_max(self, *, wait: Wait = False) -> Item | None:
        """Take the item of the largest priority, or wait for one: see `PriorityQueue.pop_max`."""
        items = await self._pop(self._pops["max"], wait)
        return items[0] if items else None

    async def pop_many(self, n: int, *, end: str = "min", wait: Wait = False) -> list[Item]:
        """Take at most `n` items from one end, or wait for some: see `PriorityQueue.pop_many`."""
        return await self._pop(pop_request(self.opened, n, check_end(end), None), wait)

    peek_min = in_thread(PriorityQueue.peek_min)
    peek_max = in_thread(PriorityQueue.peek_max)


class AsyncFifoQueue(AsyncQueue):
    """A `FifoQueue` for coroutines."""

    #: The queue for threads: a function that `transact` runs calls its verbs.
    sync: FifoQueue

    def __init__(self, queue: FifoQueue) -> None:
        super().__init__(queue)

    async def enqueue(self, value: Any, *, delay: Duration | None = None, due: datetime | None = None) -> Item:
        """Add an item at the tail: see `FifoQueue.enqueue`."""
        return (await self.enqueue_many([value], delay=delay, due=due))[0]

    async def enqueue_many(
        self, values: Iterable[Any], *, delay: Duration | None = None, due: datetime | None = None
    ) -> list[Item]:
        """Add items at the tail as one: see `FifoQueue.enqueue_many`."""
        request = enqueue_many_request(self.opened, values, either(delay, due))
        return await self._send(request) if request.values else []

    async def dequeue(self, *, wait: Wait = False) -> Item | None:
        """Take the item at the head, or wait for one: see `FifoQueue.dequeue`."""
        items = await self._pop(self._pops["min"], wait)
        return items[0] if items else None

    async def dequeue_many(self, n: int, *, wait: Wait = False) -> list[Item]:
        """Take at most `n` items from the head, or wait for some: see `FifoQueue.dequeue_many`."""
        return await self._pop(pop_request(self.opened, n, "min", None), wait)

    peek = in_thread(FifoQueue.peek)


#: A queue of either kind for coroutines; `isinstance` tells which.
AnyAsyncQueue: TypeAlias = AsyncPriorityQueue | AsyncFifoQueue


def for_coroutines(queue: AnyQueue, *, in_loop: bool = False) -> AnyAsyncQueue:
    """Return a queue for coroutines. For `in_loop` see `AsyncQueue`."""
    made = AsyncFifoQueue(queue) if isinstance(queue, FifoQueue) else AsyncPriorityQueue(queue)
    made.in_loop = in_loop
    return made
