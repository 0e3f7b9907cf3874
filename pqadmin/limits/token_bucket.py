"""Token bucket: a rate that may be exceeded in bursts."""


class Allowance:
    """Permits `rate` events a second, and `burst` at once. The caller passes the time."""

    __slots__ = ("_burst", "_counted", "_left", "_rate")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._counted = float(burst), now

    def take(self, now: float) -> bool:
        """Count one event and return whether it is within the rate. One beyond is not counted."""
        self._left = min(self._burst, self._left + (now - self._counted) * self._rate)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def left(self) -> int:
        """How many events were permitted at once when the last one was counted."""
        return int(self._left)

    @property
    def wait(self) -> float:
        """Seconds from the last event until another one is permitted."""
        return max(0.0, (1 - self._left) / self._rate)
