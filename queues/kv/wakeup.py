"""What wakes one thread that sleeps.

Where the system has event descriptors (Linux) a bell is one of them: to ring gives up the interpreter's lock, so a
thread that is woken on another processor finds it free. Who opens a `threading.Lock` keeps the interpreter's lock: the
woken thread stands up only to wait again (docs/benchmarks.md has the numbers). It is a lock all the same where another
library stands in for threads, as that knows nothing of descriptors, and where descriptors could run short for others.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import call
from typing import Any, Protocol, TypeVar

from queues.kv.port import Landing


class Landed(Protocol):
    """What may have a landing."""

    landing: Landing | None


T = TypeVar("T", bound=Landed)


def chain(rings: Iterable[Callable[[], object]]) -> Iterator[object]:
    """Return what rings these bells, at each step one: of the threads that listen each goes on with it.

    It is `map` that rings, so that nothing can interrupt a thread between taking the next bell and ringing it.
    """
    return map(call, rings)


def by_landing(tickets: Iterable[T]) -> dict[Landing, list[T]]:
    """Return the tickets of each landing, in their order; those without one are left out."""
    landings: dict[Landing, list[T]] = {}
    for ticket in tickets:
        landing = ticket.landing
        if landing is not None:
            landed = landings.get(landing)
            if landed is None:
                landings[landing] = [ticket]
            else:
                landed.append(ticket)
    return landings


_ONE = (1).to_bytes(8, "little")
#: The largest descriptor that a bell may be, and its part of those that the process may have.
_LARGEST, _PART = 511, 4


class Bell:
    """Wakes the one thread that listens to it."""

    __slots__ = ("_within", "listen", "ring")

    #: Lets the listener go on, now or when it listens next; nothing can interrupt this half-way.
    ring: Callable[[], Any]
    #: Sleeps until it rings.
    listen: Callable[[], Any]

    def __init__(self) -> None:
        event = _event()
        if event is None:
            lock = threading.Lock()
            lock.acquire()
            self.ring, self.listen = lock.release, lock.acquire
            self._within = partial(lock.acquire, True)
        else:
            self.ring, self.listen = partial(os.write, event, _ONE), partial(os.read, event, len(_ONE))
            self._within = partial(_within, event)

    def listen_for(self, seconds: float) -> bool:
        """Sleep until it rings, or for so long; False when it did not ring."""
        return self._within(seconds)


class _Event(int):
    """An event descriptor; closed once nobody can ring or listen any more."""

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self)


def _event() -> _Event | None:
    """Return a new event descriptor, or None where a lock does better."""
    if not hasattr(os, "eventfd") or type(threading.Lock()).__module__ != "_thread":
        return None
    try:
        event = _Event(os.eventfd(0))
    except OSError:  # none is left
        return None
    return event if event <= min(_LARGEST, os.sysconf("SC_OPEN_MAX") // _PART) else None


def _within(event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(event, select.POLLIN)
    return bool(poll.poll(seconds * 1000) and os.read(event, len(_ONE)))
