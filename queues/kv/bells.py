"""Bells: what threads that wait for an answer, or for work, sleep on."""

import os
import select
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from queues.kv.descriptor import Descriptor

_ONE = (1).to_bytes(8, "little")
#: The largest event descriptor that is used, and the share of the process's descriptors.
_LARGEST, _SHARE = 511, 4


class Listener(Protocol):
    """What the helper thread sleeps on."""

    @property
    def ring(self) -> Callable[[], Any]:
        """Wakes the thread; it cannot be interrupted half-way."""

    def listen_for(self, seconds: float) -> bool:
        """Sleep until it rings, or for so many seconds; False when nothing happened."""

    def close(self) -> None:
        """End: its thread listens no more."""


class Bell:
    """Wakes the one thread that listens to it.

    It is an event descriptor where the system has them: to ring it gives up the interpreter's lock, so the woken thread
    finds that free. It is a lock where another library replaces threads, and where descriptors run short.
    """

    __slots__ = ("_within", "listen", "ring")

    #: Lets the listener go on, now or when it listens next; it cannot be interrupted half-way.
    ring: Callable[[], Any]
    #: Sleeps until it rings.
    listen: Callable[[], Any]

    def __init__(self, *, quiet: bool = False) -> None:
        #: A quiet one keeps the interpreter's lock: its listener has nothing to do before the ringing thread sleeps.
        event = None if quiet else _event()
        if event is None:
            rings: SimpleQueue[None] = SimpleQueue()
            self.ring, self.listen = partial(rings.put, None), rings.get
            self._within = partial(_rang, rings)
        else:
            self.ring, self.listen = partial(os.write, event, _ONE), partial(os.read, event, len(_ONE))
            self._within = partial(_within, event)

    def listen_for(self, seconds: float) -> bool:
        """Sleep until it rings, or for so many seconds; False when it did not ring."""
        return self._within(seconds)

    def close(self) -> None:
        """End: its thread listens no more."""


def _event() -> Descriptor | None:
    """Return a new event descriptor, or None where a lock does better."""
    if not hasattr(os, "eventfd") or type(threading.Lock()).__module__ != "_thread":
        return None
    try:
        event = Descriptor(os.eventfd(0))
    except OSError:  # none is left
        return None
    return event if event <= min(_LARGEST, os.sysconf("SC_OPEN_MAX") // _SHARE) else None


def _rang(rings: SimpleQueue[None], seconds: float) -> bool:
    try:
        rings.get(timeout=seconds)
    except Empty:
        return False
    return True


def _within(event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(event, select.POLLIN)
    return bool(poll.poll(seconds * 1000) and os.read(event, len(_ONE)))
