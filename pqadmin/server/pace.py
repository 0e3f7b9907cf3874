"""How fast a client takes an answer, and whether that is fast enough to go on with it."""

from __future__ import annotations

#: Bytes that a client takes at least in so many seconds in which we wait for it.
LEAST, WITHIN = 100_000, 60.0


class Pace:
    """What one client took of one answer while we waited; only our waiting counts, not what we are slow at."""

    def __init__(self) -> None:
        self._unsent = 0
        self._taken = 0
        self._waited = 0.0

    def sending(self, before: int, after: int) -> None:
        """Note what waited for the client before more was sent to it, and what waits with that."""
        self._note(before)
        self._unsent = after

    def waited(self, seconds: float, unsent: int) -> None:
        """Note that we waited, and what still waits for the client."""
        self._waited += seconds
        self._note(unsent)

    @property
    def too_slow(self) -> bool:
        """Say whether it had its time and took less than the least."""
        return self._waited > WITHIN

    def _note(self, unsent: int) -> None:
        self._taken += max(0, self._unsent - unsent)
        self._unsent = unsent
        if self._taken >= LEAST:
            self._taken, self._waited = 0, 0.0
