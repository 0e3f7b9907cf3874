"""Telling those who wait for one batch: threads, each by a lock of its own, and landings."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from queues.kv.port import Landing

#: Called by `map`, so that nothing can interrupt a thread between taking the next lock and opening it.
_release = type(threading.Lock()).release


class Landed(Protocol):
    """What may have a landing."""

    landing: Landing | None


T = TypeVar("T", bound=Landed)


def chain(locks: Iterable[threading.Lock]) -> Iterator[None]:
    """Return what opens these locks, at each step one: of the threads behind them each goes on with it."""
    return map(_release, locks)


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
