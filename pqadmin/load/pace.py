"""Pace: how many operations are due at which moment, by an absolute schedule.

A late operation does not move the ones after it, so the mean rate is the one that was asked for. With a burst the
rate is multiplied for the last part of every period.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Every `period` seconds, for its last `length` seconds, `factor` times the rate."""

    period: float
    length: float
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.length < self.period or self.factor <= 0:
            raise ValueError("a burst is shorter than its period, and its factor above 0")

    @classmethod
    def parse(cls, text: str) -> "Burst":
        """Read PERIOD:LENGTH:FACTOR, as in 30:3:10; raise ValueError."""
        period, length, factor = (float(part) for part in text.split(":"))
        return cls(period=period, length=length, factor=factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A schedule of operations at `rate` a second, bursts apart."""

    rate: float
    burst: Burst | None = None

    def due(self, elapsed: float) -> int:
        """Return how many operations are due in the first `elapsed` seconds."""
        if self.burst is None:
            return int(self.rate * elapsed)
        periods, rest = divmod(elapsed, self.burst.period)
        calm = self.burst.period - self.burst.length
        weight = min(rest, calm) + max(0.0, rest - calm) * self.burst.factor
        return int(self.rate * (periods * self._weight(self.burst) + weight))

    def moment(self, count: int) -> float:
        """Return after how many seconds the operation of this number (from 1) is due."""
        if self.burst is None:
            return count / self.rate
        periods, rest = divmod(count / self.rate, self._weight(self.burst))
        calm = self.burst.period - self.burst.length
        within = rest if rest <= calm else calm + (rest - calm) / self.burst.factor
        return periods * self.burst.period + within

    def shared_by(self, processes: int) -> "Pace":
        """Return the pace of one of so many processes."""
        return Pace(rate=self.rate / processes, burst=self.burst)

    @staticmethod
    def _weight(burst: Burst) -> float:
        """Return the seconds at the calm rate that hold as many operations as one period."""
        return burst.period - burst.length + burst.length * burst.factor
