"""Token bucket: a rate that may be exceeded in bursts."""


class Allowance:
    """Permits `rate` events a second, and `burst` at once. The caller passes the time."""

    __slots__ = ("_burst", "_counted", "_left", "_rate")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._counted = float(burst), now

    def take(self, now: float) -> bool:
        """Count one event; return whether it is within the rate."""
        self._left = min(self._burst, self._left + (now - self._counted) * self._rate) - 1
        self._counted = now
        return self._left >= 0
