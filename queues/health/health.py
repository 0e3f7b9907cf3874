"""Health of a queue: what is remembered of it from one observation to the next.

It is a value that the store keeps, so that every process says the same, also just after a restart.
"""

from collections.abc import Mapping

from msgspec import MsgspecError, Struct, field, msgpack

from queues.health.averages import Averages
from queues.health.breaches import Breaches
from queues.health.growth import Marks
from queues.health.latch import Latch
from queues.health.levels import Level, Trend, Verdict
from queues.health.observation import Observation
from queues.health.targets import DEFAULTS, LIMIT_OF, Targets

#: Seconds without an observation after which nothing is known any more.
STALE = 120.0
#: Seconds for which items are watched at least, where nothing was recorded of them, before they are judged.
WATCHED = 60.0
#: Seconds for which a queue from which nothing was ever taken is quiet, not stalled.
_FIRST_HOUR = 3600.0


class Health(Struct, frozen=True, kw_only=True, array_like=True):
    """What is remembered of one queue from observation to observation."""

    seen: Observation
    verdict: Verdict
    averages: Averages = Averages()
    marks: Marks = Marks()
    #: Seconds for which items were claimable and no consumer gave a sign, and for which none was taken.
    silent: float = 0.0
    untaken: float = 0.0
    #: The usual seconds without a take while items were claimable.
    usual: float = 0.0
    #: Seconds since something was finished, and items that came back since.
    fruitless: float = 0.0
    failed: int = 0
    #: When there was an item first.
    began: float | None = None
    latches: dict[str, Latch] = field(default_factory=dict)
    #: The targets by which it was judged.
    targets: Targets = DEFAULTS
    #: Seconds since items were taken while no consumer told of itself; None: none were, or one came.
    untold: float | None = None
    #: Seconds for which the number of consumers stays unknown: programs that do not tell take items.
    unknown: float = 0.0
    #: How long it was beyond its targets in the last day.
    breaches: Breaches = Breaches()
    #: Seconds for which its items were watched without a sign of a consumer, since there was no record, or a gap; None:
    #: they were not, or there was a sign.
    unproven: float | None = None
    #: Seconds of pauses since there was a sign of a consumer: they count against none, but the silence began before.
    rested: float = 0.0
    #: Dead items when something was finished last.
    buried: int = 0
    #: Seconds since the first item came back, of those that did since something was finished.
    failing: float = 0.0

    @property
    def consumers(self) -> int | None:
        """Live consumers; None when unknown, as where programs take that tell nothing of themselves."""
        return None if self.untold_takes else self.seen.consumers

    @property
    def unfinished(self) -> int:
        """Items that are there, or have died since something was finished."""
        seen = self.seen
        return seen.ready + seen.delayed + seen.leased + max(0, seen.dead - self.buried)

    @property
    def untold_takes(self) -> bool:
        """Say whether items were taken lately while no consumer told of itself."""
        return not self.seen.consumers and self.unknown > 0

    @property
    def missed(self) -> Mapping[str, Latch]:
        """What is beyond its target, by the name of the limit; also where another reason tells enough of it."""
        raised = [(code, latch) for code, latch in self.latches.items() if latch.level and code in LIMIT_OF]
        return {LIMIT_OF[code]: latch for code, latch in reversed(raised)}

    @property
    def is_unused(self) -> bool:
        """Say whether nothing was ever in the queue."""
        return self.seen == Observation(self.seen.at, most=self.seen.most) and not self.verdict.reasons

    @property
    def settled(self) -> bool:
        """Say whether the verdict stays the same by itself, for as long as nothing is observed to change."""
        waits = self.seen.ready and self.seen.paused is None and self.verdict.trend is not Trend.STALLED
        return not waits and all(latch.toward == latch.level for latch in self.latches.values())

    @property
    def is_quiet(self) -> bool:
        """Say whether nothing was ever taken, and the first item came within the hour."""
        return not self.seen.signs and self.began is not None and self.seen.at - self.began < _FIRST_HOUR

    @property
    def is_unproven(self) -> bool:
        """Say whether items wait, and too little was watched to know whether anything takes them."""
        seen, allowed = self.seen, self.targets.no_consumer
        if self.unproven is None or not allowed or seen.attached or self.is_quiet:
            return False
        # When it was seen first, the oldest had not waited for long yet.
        young = seen.oldest is not None and seen.at - seen.oldest - self.unproven < allowed
        return not young and self.unproven < self.proof

    @property
    def proof(self) -> float:
        """Seconds for which items are watched before they are judged, where nothing was known of them."""
        return max(WATCHED, self.targets.no_consumer)


#: The version of stored health.
_FORMAT = b"\x01"
_decoder = msgpack.Decoder(Health)


def encode(health: Health) -> bytes:
    """Return the health as the store keeps it."""
    return _FORMAT + msgpack.encode(health)


def decode(record: bytes | None) -> Health | None:
    """Read stored health. None when there is none, or none that can be read: it is only ever an advantage."""
    if record is None or record[:1] != _FORMAT:
        return None
    try:
        return _decoder.decode(record[1:])
    except MsgspecError:
        return None


def born(at: float) -> Health:
    """Return the health of a queue that was not there yet at a time, and is since."""
    return Health(seen=Observation(at), verdict=Verdict(Level.OK, at), averages=Averages(whole=True))
