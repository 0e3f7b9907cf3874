"""Where priorities stand in a queue: their packed bytes and bands, remembered, as a queue has the same ones again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from fdb import tuple as fdb_tuple

from queues.bands import band_of
from queues.packing import pack
from queues.priority import Priority, PriorityType

#: Priorities that are remembered; a transaction has at most a quarter as many.
_MANY = 4_096
_FEW = 16
T = TypeVar("T")


def counted(these: Sequence[T]) -> dict[T, int]:
    """Return how many there are of each; a Counter takes longer to make than to count a few."""
    if len(these) > _FEW:
        return Counter(these)
    counts: dict[T, int] = {}
    for one in these:
        counts[one] = counts.get(one, 0) + 1
    return counts


class _Known(NamedTuple):
    #: Of what was pushed; normalised, so 0.0 is never −0.0 here.
    packed: dict[Priority, bytes]
    #: Of what was popped, as the store has it.
    priorities: dict[bytes, Priority]
    bands: dict[bytes, int]


class Places:
    """The places of a queue's priorities. Thread-safe: what is remembered is replaced, never taken away."""

    def __init__(self, edges: tuple[Priority, ...]) -> None:
        self.edges = edges
        self._known = _Known({}, {}, {})

    def pack(self, priorities: Sequence[Priority]) -> tuple[list[bytes], dict[int, int]]:
        """Return these priorities packed, and how many are in each band."""
        known = self._room()
        try:
            packed = list(map(known.packed.__getitem__, priorities))
        except KeyError:
            for priority in priorities:
                if priority not in known.packed:
                    one = pack(priority)
                    known.bands[one] = band_of(priority, self.edges)
                    known.packed[priority] = one
            packed = list(map(known.packed.__getitem__, priorities))
        return packed, counted(list(map(known.bands.__getitem__, packed)))

    def unpack(self, packed: Sequence[bytes]) -> tuple[list[Priority], dict[int, int]] | None:
        """Return these packed priorities, and how many are in each band; None when one is none of this queue's."""
        known = self._room()
        try:
            priorities = list(map(known.priorities.__getitem__, packed))
        except KeyError:
            for one in set(packed).difference(known.priorities):
                priority = _unpacked(one)
                if priority is None:
                    return None
                known.bands[one] = band_of(priority, self.edges)
                known.priorities[one] = priority
            priorities = list(map(known.priorities.__getitem__, packed))
        return priorities, counted(list(map(known.bands.__getitem__, packed)))

    def _room(self) -> _Known:
        known = self._known
        if len(known.bands) > _MANY:
            known = self._known = _Known({}, {}, {})
        return known


@lru_cache(maxsize=64)
def places(priority_type: PriorityType, edges: tuple[Priority, ...]) -> Places:
    """Return the places of all queues of this type and these edges."""
    return Places(edges)


def _unpacked(packed: bytes) -> Priority | None:
    """Return what is packed here, if it is one number or text as we pack it."""
    try:
        (priority,) = fdb_tuple.unpack(packed)
    except Exception:  # the tuple layer raises whatever it stumbles over
        return None
    fits = type(priority) in (int, float, str) and pack(priority) == packed
    return priority if fits else None
