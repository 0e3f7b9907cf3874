"""Latch: the level of one reason, which follows its signal only after a time (hysteresis)."""

from math import inf

from msgspec import Struct
from msgspec.structs import replace

from queues.health.levels import Code, Level


class Signal(Struct, frozen=True):
    """What one observation says of one reason."""

    code: Code
    #: None: neither clearly over a limit nor clearly within it.
    level: Level | None
    #: Seconds for which it must last to raise the level, and to lower it.
    up: float = 0.0
    down: float = 60.0
    #: Seconds after which it is a warning at least.
    warns: float = inf
    #: When it began; None: now.
    since: float | None = None
    value: float | None = None
    limit: float | None = None
    #: The level by the limit alone, without hysteresis.
    beyond: Level = Level.OK


class Latch(Struct, frozen=True, array_like=True):
    """The level of one reason, which follows its signal only after a time."""

    level: Level = Level.OK
    since: float = 0.0
    #: The level of the signal, while it differs, and for how many seconds.
    toward: Level = Level.OK
    pending: float = 0.0

    def after(self, signal: Signal, seconds: float, at: float) -> "Latch":
        """Return the latch after the signal has been there for some more seconds."""
        # Between two limits the level stays, but what is beyond the lower one is no less than that.
        toward = max(self.level, signal.beyond) if signal.level is None else signal.level
        if toward == self.level:
            return (
                self
                if self.toward == self.level and not self.pending
                else replace(self, toward=self.level, pending=0.0)
            )
        same = toward == self.toward or (not self.level and toward and self.toward)
        pending = self.pending + seconds if same else 0.0
        since = self.since if self.level and toward else signal.since or at - pending
        if pending >= (signal.up if toward > self.level else signal.down):
            return Latch(level=toward, since=since, toward=toward)
        if self.level == Level.OK and pending >= signal.warns:
            return Latch(level=Level.WARNING, since=since, toward=toward, pending=pending)
        return replace(self, toward=toward, pending=pending)
