"""Latch: the level of one reason, which follows its signal only after a time (hysteresis)."""

from math import inf

from msgspec import Struct
from msgspec.structs import replace

from queues.health.levels import Code, Level

#: Seconds close to a limit that lower a level.
CLOSE = 600.0


class Signal(Struct, frozen=True):
    """What one observation says of one reason."""

    code: Code
    #: By the limit alone; None: it says nothing of now, and what was told goes on.
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
    #: The level that it has, or is close to, just below its limit: that one is lowered slowly, as noise may raise it.
    close: Level = Level.OK


class Latch(Struct, frozen=True, array_like=True):
    """The level of one reason, which follows its signal only after a time."""

    level: Level = Level.OK
    since: float = 0.0
    #: The level of the signal, while it differs, and for how many seconds.
    toward: Level = Level.OK
    pending: float = 0.0

    def after(self, signal: Signal, seconds: float, at: float) -> "Latch":
        """Return the latch after the signal has been there for some more seconds."""
        toward = self.level if signal.level is None else signal.level
        if toward < self.level <= signal.close:
            seconds *= signal.down / CLOSE
        elif toward < self.level:
            toward = max(toward, signal.close)
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
