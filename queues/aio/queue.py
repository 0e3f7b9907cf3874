"""The verbs of one queue for coroutines, with the same arguments, answers and promises as those of `Queue`."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from queues.aio.lease_block import AsyncBinding
from queues.aio.mailbox import Arrival, Mailbox, mailbox
from queues.aio.waiting import wait_for
from queues.errors import NotForAttached
from queues.items.admission import encoded
from queues.kv.port import Server
from queues.model.cursor import End
from queues.model.duration import LEASE, Duration, Wait, seconds_of
from queues.model.item import Item
from queues.model.priority import Priority
from queues.operations.delay import either
from queues.operations.handle import check_number
from queues.operations.lease import Lease, leasing, stale
from queues.queue import Queue, check_end
from queues.serving.pop_batch import Late
from queues.serving.push_batch import Push
from queues.serving.take_request import LATE, Take


class AsyncQueue:
    """A queue for the coroutines of any event loop; `queue` has the verbs that are not here, for threads.

    A coroutine that is canceled has either done nothing, or gets its answer all the same and is canceled as soon as
    it waits again: no item is taken into nobody's hands. (`asyncio.wait_for` of Python 3.11 throws answers away when
    it is canceled itself: give `wait=`, or use `asyncio.timeout`.)
    """

    def __init__(self, queue: Queue) -> None:
        if queue.attached:
            raise NotForAttached(queue.name, "use its verbs in threads (asyncio.to_thread).")
        self.queue = queue
        self._box: Mailbox | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue.name!r} {self.queue.kind}>"

    # Putting in

    async def push(
        self, value: Any, priority: Priority, *, delay: Duration | None = None, due: datetime | None = None
    ) -> Item:
        """Add an item: see `Queue.push`."""
        if delay is not None or due is not None:
            return (await self.push_many([(value, priority)], delay=delay, due=due))[0]
        queue = self.queue
        item: Item = await self._ask(queue._own_pushes or queue._pushes, queue._pushing(value, priority))
        return item

    async def push_many(
        self,
        items: Iterable[tuple[Any, Priority] | tuple[Any, Priority, Duration | datetime | None]],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
    ) -> list[Item]:
        """Add items as one: see `Queue.push_many`."""
        queue = self.queue
        queue._require("priority", "push", "enqueue")
        return await self._insert(queue._checked(items, either(delay, due)))

    async def enqueue(self, value: Any, *, delay: Duration | None = None, due: datetime | None = None) -> Item:
        """Add an item at the tail: see `Queue.enqueue`."""
        return (await self.enqueue_many([value], delay=delay, due=due))[0]

    async def enqueue_many(
        self, values: Iterable[Any], *, delay: Duration | None = None, due: datetime | None = None
    ) -> list[Item]:
        """Add items at the tail as one: see `Queue.enqueue_many`."""
        self.queue._require("fifo", "enqueue", "push")
        common = either(delay, due)
        return await self._insert([(encoded(value, self.queue.config), None, common) for value in values])

    # Taking

    async def pop_min(self, *, wait: Wait = False) -> Item | None:
        """Take the item of the smallest priority, or wait for one: see `Queue.pop_min`."""
        if wait is False:
            item = await self._popping("min")
            return await self._late("min") if item is LATE else item
        return await self._wait_for_one("min", wait)

    async def pop_max(self, *, wait: Wait = False) -> Item | None:
        """Take the item of the largest priority, or wait for one: see `Queue.pop_max`."""
        if wait is False:
            item = await self._popping("max")
            return await self._late("max") if item is LATE else item
        return await self._wait_for_one("max", wait)

    async def pop_many(self, n: int, *, end: str = "min") -> list[Item]:
        """Take at most `n` items from one end: see `Queue.pop_many`."""
        self.queue._require("priority", "pop", "dequeue")
        return await self._pop(n, check_end(end))

    async def dequeue(self, *, wait: Wait = False) -> Item | None:
        """Take the item at the head, or wait for one: see `Queue.dequeue`."""
        self.queue._require("fifo", "dequeue", "pop")

        async def take() -> Item | None:
            return _only(await self._pop(1, "min"))

        return await wait_for(self.queue, take, None, wait)

    async def dequeue_many(self, n: int) -> list[Item]:
        """Take at most `n` items from the head: see `Queue.dequeue_many`."""
        self.queue._require("fifo", "dequeue", "pop")
        return await self._pop(n, "min")

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
        queue, side = self.queue, self.queue._leasing_end(end)
        held = seconds_of(seconds, LEASE, above_zero=True)

        async def take() -> list[Lease]:
            check_number(n)
            entries = await self._punctually(leasing(n, side, queue._terms(n, held, worker)))
            return queue._as_leases(entries, AsyncBinding(self, seconds=held, keep=keep))

        return await wait_for(queue, take, list[Lease](), wait)

    # What is held

    async def ack(self, lease: Lease | str, *, must_hold: bool = False) -> None:
        """Say that the leased item is done: see `Queue.ack`."""
        errand = self.queue._acking([lease], must_hold=must_hold)
        if errand is not None and await self._ask(self.queue._errands, errand):
            raise stale()

    async def ack_many(self, leases: Iterable[Lease | str]) -> list[str]:
        """Acknowledge leases as one: see `Queue.ack_many`."""
        errand = self.queue._acking(leases)
        over: list[str] = [] if errand is None else await self._ask(self.queue._errands, errand)
        return over

    async def release(
        self, lease: Lease | str, *, delay: Duration | None = None, reason: str = "", count_attempt: bool = True
    ) -> Item:
        """Give a leased item back: see `Queue.release`."""
        item: Item = await self._ask(self.queue._errands, self.queue._releasing(lease, delay, reason, count_attempt))
        return item

    async def extend(self, lease: Lease | str, *, seconds: Duration) -> Lease:
        """Let a lease end so many seconds from now: see `Queue.extend`."""
        extended: Lease = await self._ask(self.queue._errands, self.queue._extending(lease, seconds))
        return extended

    # Inside

    def _ask(self, server: Server[Any, Any], request: Any, takes: bool = False) -> Arrival:
        """Have a request served, and return what is to be awaited for its answer."""
        box, loop = self._box, get_running_loop()
        if box is None or box.loop() is not loop:
            box = self._box = mailbox()
        kv = self.queue._context.kv
        arrival = Arrival(loop, kv, server, request, box, takes)
        kv.submit(arrival)
        return arrival

    async def _insert(self, entries: list[tuple[bytes, Priority | None, timedelta | datetime | None]]) -> list[Item]:
        queue = self.queue
        if any(when is not None for _, _, when in entries):
            delayed: list[Item] = await self._ask(queue._errands, queue._delaying(entries))
            return delayed
        values = [(value, priority) for value, priority, _ in entries]
        rands = queue._rands(values)
        if not rands:
            return []
        pushed: list[Item] = await self._ask(queue._pushes, Push(values, rands))
        return pushed

    def _popping(self, end: End) -> Arrival:
        """Ask for one item; what is to be awaited gives it, None, or LATE."""
        queue = self.queue
        if queue._guess[1].kind != "priority":
            queue._require("priority", "pop", "dequeue")
        return self._ask(queue._own_takes or queue._takes, end, True)

    async def _late(self, end: End) -> Item | None:
        return _only(await self._after_late(self.queue._now_taking(end)))

    async def _wait_for_one(self, end: End, wait: Wait) -> Item | None:
        queue = self.queue
        queue._require("priority", "pop", "dequeue")

        async def take() -> Item | None:
            return _only(await self._pop(1, end))

        return await wait_for(queue, take, None, wait)

    async def _pop(self, n: int, end: End) -> list[Item]:
        check_number(n)
        items: list[Item] = await self._punctually(self.queue._now_taking(end, n))
        return items

    async def _punctually(self, take: Take) -> Any:
        """Take; before it, do some of what should have been done long ago."""
        taken = await self._ask(self.queue._takes, take, takes=True)
        return await self._after_late(take) if taken is None else taken

    async def _after_late(self, take: Take) -> Any:
        """Do some of what is late, then take."""
        assert take.late_ms is not None
        queue = self.queue
        await self._ask(queue._catching_up, Late(now_ms=take.now_ms, late_ms=take.late_ms))
        return await self._ask(queue._takes, take._replace(late_ms=None), takes=True)


def _only(items: list[Item]) -> Item | None:
    return items[0] if items else None
