"""Health of a queue on this site: the recorded health with what this process read since.

The recorder's verdict and this one come from the same model. Where nothing was recorded yet, the model begins here.
"""

from dataclasses import dataclass, replace

from msgspec import structs

from queues import QueueStatus
from queues.admin import (
    Health,
    HealthCode,
    HealthLevel,
    HealthVerdict,
    Targets,
    advance_health,
    observation_of,
    unknown_health,
    with_estimates,
)

#: The levels, the worst first, as rows, filters and pages name them.
LEVELS = tuple(level.name.lower() for level in sorted(HealthLevel, reverse=True))
#: Seconds for which the estimates of a recorded verdict are told: the recorder writes every ten seconds.
_TOLD = 30.0


@dataclass(slots=True)
class Watch:
    """The health of one queue as this process knows it."""

    health: Health | None = None

    def look(self, status: QueueStatus, at: float, targets: Targets) -> HealthVerdict:
        """Take in a status that held at a time (seconds since the epoch), and return the verdict."""
        recorded, last = status.health, self.health
        seen = observation_of(status, at, wait=None if recorded is None else recorded.seen.wait)
        if last is None or (recorded is not None and recorded.seen.at > last.seen.at):
            last = recorded
        health = advance_health(last, seen, targets)
        if recorded is not None and at - recorded.seen.at < _TOLD:  # so that every process tells the same
            health = structs.replace(health, verdict=with_estimates(health.verdict, recorded.verdict))
        self.health = health
        return health.verdict

    def hold(self, at: float) -> None:
        """Note that nothing had changed until a time: what is not looked at because it stays the same is watched."""
        health = self.health
        if health is not None and self.settled and at > health.seen.at:
            self.health = advance_health(health, structs.replace(health.seen, at=at), health.targets)

    def glance(self, status: QueueStatus, at: float, targets: Targets) -> HealthVerdict:
        """Return the verdict on a status without keeping anything of it."""
        return replace(self).look(status, at, targets)

    def unconfirmed(self, since: float) -> HealthVerdict:
        """Return the verdict on a queue that was last read at a time, long ago."""
        if self.health is None or not self.settled:
            return unknown_health(HealthCode.STALE, since)
        return self.health.verdict

    @property
    def settled(self) -> bool:
        """Say whether the verdict stays the same by itself: nothing waits, and nothing is pending."""
        health = self.health
        return health is not None and health.settled and not (health.seen.ready and health.seen.paused is None)
