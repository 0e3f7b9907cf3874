"""Health of a queue on this site: the recorded health with what this process read since.

The recorder's verdict and this one come from the same model. Where nothing was recorded yet, the model begins here, and
the verdict is unknown until it has seen enough.
"""

from dataclasses import dataclass, replace

from msgspec import structs

from queues import QueueStatus
from queues.admin import (
    Health,
    HealthCode,
    HealthLevel,
    HealthVerdict,
    Observation,
    Targets,
    advance_health,
    observation_of,
    unknown_health,
    with_estimates,
)

#: The levels, the worst first, as rows, filters and pages name them.
LEVELS = tuple(level.name.lower() for level in sorted(HealthLevel, reverse=True))
#: Seconds that must pass without a sign of a consumer before an unrecorded queue with items is judged.
_WATCHED = 60.0
#: Seconds for which the estimates of a recorded verdict are told: the recorder writes every ten seconds.
_TOLD = 30.0


@dataclass(slots=True)
class Watch:
    """The health of one queue as this process knows it."""

    health: Health | None = None
    #: What was seen first, while it is watched without a record; None once there is one.
    first: Observation | None = None

    def look(self, status: QueueStatus, at: float, targets: Targets) -> HealthVerdict:
        """Take in a status that held at a time (seconds since the epoch), and return the verdict."""
        recorded, last = status.health, self.health
        seen = observation_of(status, at, wait=None if recorded is None else recorded.seen.wait)
        if recorded is not None:
            self.first = None
        elif last is None:
            self.first = seen
        if last is None or (recorded is not None and recorded.seen.at > last.seen.at):
            last = recorded
        health = advance_health(last, seen, targets)
        if recorded is not None and at - recorded.seen.at < _TOLD:  # so that every process tells the same
            health = structs.replace(health, verdict=with_estimates(health.verdict, recorded.verdict))
        self.health = health
        return self._unless_new(health, targets)

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
        if health is None or self.first is not None or (health.seen.ready and health.seen.paused is None):
            return False
        return health.settled

    def _unless_new(self, health: Health, targets: Targets) -> HealthVerdict:
        """Return the verdict, or unknown where items wait and it is not known yet whether anything takes them."""
        verdict, seen = health.verdict, health.seen
        if self.first is None or verdict.level is not HealthLevel.OK or verdict.reasons:
            return verdict
        waits = seen.ready and seen.paused is None and targets.no_consumer
        watched = seen.at - self.first.at
        alive = seen.signs != self.first.signs or health.silent + 1.0 < watched
        young = seen.oldest is not None and seen.at - seen.oldest < targets.no_consumer
        if not waits or alive or young or watched >= max(_WATCHED, targets.no_consumer):
            return verdict
        return unknown_health(HealthCode.STALE, self.first.at)
