"""The row of one queue, as last read, with its rates and its verdict. Pages and frames show it."""

from dataclasses import dataclass
from datetime import datetime

from pqadmin.live.board.health import Watch
from pqadmin.live.board.rates import three_digits
from queues import QueueStatus
from queues.admin import HealthCode, HealthLevel, HealthTrend, HealthVerdict, Targets

#: The most telling reason first.
_RANKS = {code: rank for rank, code in enumerate(HealthCode)}
#: The powers of ten of items by which equally bad queues are told apart; all beyond are one.
_LOADS = 12


@dataclass(frozen=True, slots=True)
class Row:
    """One queue, as last read, with its verdict and its rates: items per second, to three digits."""

    status: QueueStatus
    #: When the status held that the row was made of; later readings that found the same leave it as it is.
    as_of: datetime
    verdict: HealthVerdict
    rate_in: float | None = None
    rate_out: float | None = None
    #: The power of ten of ready items, as `load_of` gives it.
    load: int = 0

    @property
    def level(self) -> str:
        """The level as pages and frames name it: critical, warning, unknown or ok."""
        return self.verdict.level.name.lower()

    @property
    def mark(self) -> str:
        """What is shown in a way of its own within its level: unreadable, attached, paused or empty."""
        if self.status.unreadable:
            return "unreadable"
        if self.status.attached:
            return "attached"
        if self.verdict.level is HealthLevel.WARNING and self.verdict.codes == (HealthCode.PAUSED,):
            return "paused"
        return "empty" if self.verdict.level is HealthLevel.OK and self.verdict.trend is HealthTrend.EMPTY else ""

    @property
    def trend(self) -> str:
        """Where the ready items are heading; of attached and unreadable queues, why it is unknown."""
        if self.verdict.trend is not HealthTrend.UNKNOWN:
            return self.verdict.trend.value
        return self.mark or "unknown"

    @property
    def troubled(self) -> bool:
        """Whether the queue needs attention."""
        return self.verdict.level >= HealthLevel.WARNING

    @property
    def rank(self) -> int:
        """Return the place of the row among all: by level, the worst first, by its first reason, then by its load."""
        first = next((_RANKS[code] for code in self.verdict.codes), len(_RANKS))
        place = (HealthLevel.CRITICAL - self.verdict.level) * (len(_RANKS) + 1) + first
        return place * (_LOADS + 1) + (_LOADS - self.load if self.troubled else 0)

    @property
    def ready(self) -> int | None:
        """Return how many items are ready. None if unknown: unreadable, or attached and not counted yet."""
        return depth_of(self.status)


def depth_of(status: QueueStatus) -> int | None:
    """Return how many items are ready. None if unknown: unreadable, or attached and not counted yet."""
    unknown = status.unreadable or (status.attached and status.counted_at is None)
    return None if unknown else status.totals.ready


def load_of(ready: int | None, before: int = 0) -> int:
    """Return how many digits a number of ready items has; 0 for none.

    After the load before, a smaller one counts when it is half of what that begins with: rows do not change places for
    an item more or less.
    """
    load = min(len(str(ready)), _LOADS) if ready else 0
    return before if load < before and 2 * (ready or 0) > 10 ** (before - 1) else load


def row_of(
    status: QueueStatus,
    as_of: datetime,
    verdict: HealthVerdict | None = None,
    *,
    rates: tuple[float, float] | None = None,
    before: Row | None = None,
) -> Row:
    """Return the row of a status that was read at `as_of`; without a verdict, with that of the recorded health.

    The traffic of attached and unreadable queues is unknown.
    """
    if verdict is None:
        verdict = Watch().look(status, as_of.timestamp(), Targets())
    rate_in, rate_out = rates or (None, None)
    load = load_of(depth_of(status), 0 if before is None else before.load)
    return Row(status, as_of, verdict, rate_in=three_digits(rate_in), rate_out=three_digits(rate_out), load=load)
