"""Blocking: taking from a queue as soon as there is something to take, woken by the store.

Each waiter takes for itself, in a transaction of its own; nothing is taken ahead. So no item is lost when a waiter
gives up or is killed, and a take under way is finished and its item returned.
"""

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from queues.errors import BadTime, Conflict, QueueNotFound, QueuePaused, StoreClosed, StoreUnavailable
from queues.items.counters import total
from queues.keys.queue_keys import GenerationKeys
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config
from queues.model.duration import Wait, wait_seconds
from queues.model.ids import to_ms
from queues.operations.lease import ExpireRequest
from queues.operations.open_queue import OpenQueue, Request, reads
from queues.operations.promote import PromoteRequest
from queues.serving.waiters import Call, Waiter, WaitQueue

T = TypeVar("T")

#: Seconds after which a waiter looks again though nothing woke it.
LONGEST = 30.0
#: Seconds between two looks at an attached queue, as pushes of other programs wake no waiter: while something comes, at
#: most, and by how much each look comes later that finds nothing.
BUSY_LOOK, IDLE_LOOK, SLOWER = 0.05, 0.1, 0.005
#: Items that a waiter promotes, and leases that it ends, at once.
TENDED = 100
#: Seconds after a due time, at most, until waiters act on it: those of other processes may be there already.
_JITTER = 0.004
#: Seconds until a waiter looks again where all that is due has a record that cannot be read.
_AFTER_NOTHING = 1.0

_random = random.Random()  # noqa: S311 - spreads processes, guards nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a waiter needs to know of a queue, at one read version."""

    #: What to watch, with the values that were read.
    known: Mapping[bytes, bytes | None]
    #: Items to be taken now; at least 1 when there is one, none while taking is paused.
    ready: int
    #: A delayed item is due, or a lease has expired: see `tend`.
    late: bool = False
    #: Seconds until something changes without a write: an item is due, a lease or a pause ends. Where it is late, what
    #: to wait if nothing could be done.
    rest: float = math.inf


class OutlookRequest(Request[Outlook], frozen=True, gc=False):
    """Look how many items can be taken now, and when that changes by itself. The answer is an `Outlook`."""

    #: As that of `PopRequest`.
    wait: float = 0.0


def tend(queue: OpenQueue) -> bool:
    """Do some of what is due: make delayed items ready, and end expired leases.

    A caller that does so at the same time finds it done. False: there is nothing but what cannot be read.
    """
    now_ms = queue.context.clock.now_ms()
    promoted = queue.send(PromoteRequest(queue.id, TENDED, now_ms))
    if queue.send(ExpireRequest(queue.id, TENDED, now_ms)) or promoted:
        return True
    outlook: Outlook = queue.look(OutlookRequest(queue.id))
    return outlook.ready > 0 or not outlook.late


def wait_for(queue: OpenQueue, take: Callable[[float], T], nothing: T, wait: Wait, tr: Transaction | None) -> T:
    """Return what `take` takes as soon as that is something; `nothing` after the longest wait.

    `wait` is False: `take` alone, once. While taking is paused, waiting goes on. `take` is given the seconds for which
    the server of a remote store may wait; else 0.
    """
    if wait is False:
        return take(0.0)
    if tr is not None:
        raise BadTime("A transaction cannot wait for items: give tr= or wait=, not both.")
    deadline = time.monotonic() + wait_seconds(wait)
    while True:
        found = _try(take, nothing, poll_seconds(queue, deadline))
        if found or time.monotonic() >= deadline:
            return found
        if not queue.longest_poll:
            break
    waiting, waiter = queue.context.wait_queues.of(queue.id), Waiter()
    with queue.consumption.waits():
        try:
            waiting.enter(waiter)
            while call := waiting.sleep(waiter, deadline):
                if call is Call.LEAD:
                    return _lead(queue, waiting, take, nothing, deadline)
                if found := _try(take, nothing):
                    return found
                waiting.enter_again(waiter)
            return nothing
        finally:
            waiting.leave(waiter)


def _lead(queue: OpenQueue, waiting: WaitQueue, take: Callable[[float], T], nothing: T, deadline: float) -> T:
    """Watch for all waiters until there is an item for this waiter, or the deadline has passed."""
    looks: int | None = 0
    while True:
        looks = look_out(queue, waiting, deadline, looks or 0)
        if looks is None and (found := _try(take, nothing)):
            return found
        if time.monotonic() >= deadline:
            return nothing


def look_out(queue: OpenQueue, waiting: WaitQueue, deadline: float, looks: int) -> int | None:
    """Look once for the whole waiting, and sleep if there is nothing. None when the leader is to take something.

    Else how many looks in a row have found nothing.
    """
    try:
        outlook: Outlook = queue.look(OutlookRequest(queue.id))
        if outlook.ready:
            if waiting.call(outlook.ready):
                return None
            waiting.sleep_until_taken(deadline)
            return 0
        left = deadline - time.monotonic()
        if left <= 0:
            return looks
        if outlook.late and tend(queue):
            return looks
        queue.context.kv.watch(outlook.known, timeout=min(left, _rest(queue, outlook, looks)))
        return looks + 1
    except (QueueNotFound, StoreUnavailable, StoreClosed):
        waiting.call_all()  # each is woken at once, not one after the other
        raise


@reads(OutlookRequest)
def look_ahead(tr: ReadTransaction, queue: OpenQueue, request: OutlookRequest) -> Outlook:
    """Read what there is to take, and what may change that."""
    keys = queue.keys
    wake, expiry = tr.get(keys.wake), tr.get_key(*keys.expiries.all)

    def issue(config: Config) -> list[Callable[[], tuple[int, int | None]]]:
        return [_part(tr, keys.generation(generation)) for generation in config.generations]

    config, parts = queue.with_config(tr, issue)
    known = {keys.wake: wake.wait()}
    counts, dues = zip(*(part() for part in parts), strict=True)
    moments = [due_ms for due_ms in dues if due_ms is not None]
    if (expiry_key := expiry.wait()) is not None:
        moments.append(keys.expiries.elements(expiry_key)[0])
    now_ms = queue.context.clock.now_ms()
    late = bool(moments) and min(moments) <= now_ms
    ready, pause = sum(counts), config.pause
    if pause is not None and pause.holds(now_ms):
        ready = 0
        moments += [] if pause.until is None else [to_ms(pause.until)]
    rest = (min(moments) - now_ms) / 1000 if moments else math.inf
    return Outlook(known=known, ready=ready, late=late, rest=_AFTER_NOTHING if late else rest)


def _part(tr: ReadTransaction, keys: GenerationKeys) -> Callable[[], tuple[int, int | None]]:
    """Look at a generation: how many items are ready in it, and when its next delayed one is due."""
    first, due = tr.get_key(*keys.ready.all), tr.get_key(*keys.delayed.all)
    arrived, left = tr.get(keys.counters.key("ready", "in")), tr.get(keys.counters.key("ready", "out"))

    def finish() -> tuple[int, int | None]:
        # What is there is believed more than what was counted.
        ready = 0 if first.wait() is None else max(1, total(arrived.wait()) - total(left.wait()))
        due_key = due.wait()
        return ready, None if due_key is None else keys.delayed.elements(due_key)[0]

    return finish


@reads(OutlookRequest, attached=True)
def look_ahead_attached(tr: ReadTransaction, queue: OpenQueue, request: OutlookRequest) -> Outlook:
    """Read whether there is anything to take."""
    assert queue.foreign is not None
    wake, first = tr.get(queue.keys.wake), tr.get_key(*queue.foreign.all)
    queue.current(tr)
    return Outlook(known={queue.keys.wake: wake.wait()}, ready=0 if first.wait() is None else 1)


def _rest(queue: OpenQueue, outlook: Outlook, looks: int) -> float:
    """Return the seconds to watch after so many looks that found nothing."""
    if queue.foreign is not None:
        return min(BUSY_LOOK + SLOWER * looks, IDLE_LOOK)
    # Other processes may do first what is due then.
    return min(LONGEST, outlook.rest + _random.uniform(0.001, _JITTER))


#: Errors after which a waiter goes on waiting.
NOT_NOW = (QueuePaused, Conflict)


def poll_seconds(queue: OpenQueue, deadline: float) -> float:
    """Return the seconds for which the server of a remote store is to wait now."""
    return max(0.0, min(queue.longest_poll, deadline - time.monotonic()))


def _try(take: Callable[[float], T], nothing: T, seconds: float = 0.0) -> T:
    try:
        return take(seconds)
    except NOT_NOW:
        return nothing
