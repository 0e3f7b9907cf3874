"""Telling those who wait for one batch: threads, each by a bell of its own, and landings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import call
from typing import Protocol, TypeVar

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
