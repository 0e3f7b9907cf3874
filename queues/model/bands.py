"""Priority bands: the priority mix of a queue, kept in counters.

A queue has at most 16 bands, cut at edges that its config fixes when it is created. Band 0 lies below the first
edge; band i begins at edge i − 1, which belongs to it.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, repeat
from typing import Any

from queues.errors import BadPriority
from queues.model.priority import Priority, PriorityType, normalize

MAX_BANDS = 16

#: Fine where people choose numbers by hand, coarse where numbers are measured; floats are mostly scores.
_INTS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 50, 100, 1_000, 100_000, 10_000_000)
_FLOATS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 10.0, 100.0, 1_000.0, 1_000_000.0)
_LETTERS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "N", "a", "n", "{")


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One band of the priority mix, as it was when read."""

    #: Included; None: no lower edge.
    low: Priority | None
    #: Excluded; None: no upper edge.
    high: Priority | None
    #: Ready items in the band.
    depth: int

    @property
    def label(self) -> str:
        """The band as text: `< 0`, `5`, `10 … < 20`, `≥ 100`."""
        if self.low is None:
            return "all" if self.high is None else f"< {self.high}"
        if self.high is None:
            return f"≥ {self.low}"
        if isinstance(self.low, int) and self.high == self.low + 1:
            return str(self.low)
        return f"{self.low} … < {self.high}"


def default_edges(priority_type: PriorityType) -> tuple[Priority, ...]:
    """Return the default edges of a priority type."""
    if priority_type == "str":
        return _LETTERS
    if priority_type == "float":
        return _FLOATS
    return _INTS


def check_edges(edges: Sequence[Priority], priority_type: PriorityType) -> tuple[Priority, ...]:
    """Return normalized edges; raise `BadPriority` unless they increase and are at most 15."""
    checked: tuple[Any, ...] = tuple(normalize(edge, priority_type) for edge in edges)
    if len(checked) >= MAX_BANDS:
        raise BadPriority("A queue has at most {most} bands, so {edges} edges.", most=MAX_BANDS, edges=MAX_BANDS - 1)
    if any(a >= b for a, b in pairwise(checked)):
        raise BadPriority("The edges of bands increase from each to the next.")
    return checked


#: The band of a priority, given the edges first: the number of edges up to it.
band_of = bisect_right


#: For fewer priorities, `Counter` takes longer.
_FEW = 16


def count_bands(priorities: Sequence[Priority], edges: tuple[Priority, ...]) -> dict[int, int]:
    """Return how many of these priorities are in each band."""
    bands: dict[int, int] = {}
    counted = zip(priorities, repeat(1), strict=False) if len(priorities) < _FEW else Counter(priorities).items()
    for priority, n in counted:
        band = band_of(edges, priority)
        bands[band] = bands.get(band, 0) + n
    return bands


def bands(edges: tuple[Priority, ...], depths: Sequence[int]) -> tuple[Band, ...]:
    """Return the bands with their depths, lowest first."""
    lows: tuple[Priority | None, ...] = (None, *edges)
    highs: tuple[Priority | None, ...] = (*edges, None)
    # -0.0 equals 0.0, but is another priority.
    make = _new if any(edge == 0 and str(edge) == "-0.0" for edge in edges) else _again
    return tuple(map(make, lows, highs, depths))


def _new(low: Priority | None, high: Priority | None, depth: int) -> Band:
    return Band(low=low, high=high, depth=depth)


#: Thousands of queues share a few edges and small depths, and so their bands; `typed` keeps 1 and 1.0 apart.
_again = lru_cache(maxsize=8_192, typed=True)(_new)
