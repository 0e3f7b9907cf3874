"""How often attached queues on screens are looked at: others' writes wake nobody, so there is no waiting for them."""

from __future__ import annotations

from collections.abc import Callable

#: Seconds between two looks: while something changes, and at most.
FASTEST, SLOWEST = 0.05, 0.25
#: The share of the time since the last change that is waited: what was quiet for long is looked at seldom.
SHARE = 0.1


class Pace:
    """Chooses the time of the next look by how long ago the last change was seen."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed_at = clock()

    def changed(self) -> None:
        """Note that a change was seen."""
        self._changed_at = self._clock()

    @property
    def seconds(self) -> float:
        """How long to wait until the next look."""
        return min(SLOWEST, max(FASTEST, SHARE * (self._clock() - self._changed_at)))
