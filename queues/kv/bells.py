"""What wakes one thread that sleeps.

Where the system has event descriptors (Linux) a bell is one of them: to ring gives up the interpreter's lock, so a
thread that is woken on another processor finds it free. Who opens a `threading.Lock` keeps the interpreter's lock: the
woken thread stands up only to wait again (docs/benchmarks.md has the numbers).
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

_ONE = (1).to_bytes(8, "little")


class Bell:
    """Wakes the one thread that listens to it."""

    __slots__ = ("_within", "listen", "ring")

    #: Lets the listener go on, now or when it listens next; nothing can interrupt this half-way.
    ring: Callable[[], Any]
    #: Sleeps until it rings.
    listen: Callable[[], Any]

    def __init__(self) -> None:
        try:
            event = _Event(os.eventfd(0))
        except (AttributeError, OSError):  # the system has no such thing, or the process no descriptor left
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


def _within(event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(event, select.POLLIN)
    return bool(poll.poll(seconds * 1000) and os.read(event, len(_ONE)))
