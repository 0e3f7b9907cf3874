"""Verdict on a queue: critical, warning or ok, from one observation to the next.

`advance` is pure: the health before, an observation and the targets give the health after. The health is a value that
the store keeps, so that every process says the same, also just after a restart.

Each reason has a latch: a signal must last before the latch follows it, longer towards calm than towards alarm
(hysteresis). Time is what was watched: a step of the clock, or a gap between two observations, counts for a minute at
most, so that neither raises an alarm by itself.

Critical is that work is not done: nothing is taken though items wait, what is taken is never finished, or a target is
missed twice over by a queue that does not drain. Everything else is a warning.
"""

from collections.abc import Iterator, Mapping
from math import inf

from msgspec import MsgspecError, Struct, field, msgpack
from msgspec.structs import replace

from queues.health.averages import SPANS, Averages
from queues.health.breaches import Breaches
from queues.health.growth import Marks
from queues.health.levels import Code, Level, Reason, Trend, Verdict
from queues.health.observation import Observation
from queues.health.rounding import told, told_at_least, told_roughly
from queues.health.targets import DEFAULTS, Targets
from queues.model.limits import LIMIT_NAMES

#: Seconds for which one step counts at most, and after which nothing is known any more without an observation.
STEP, STALE = 60.0, 120.0
#: Seconds for which items are watched at least, where nothing was recorded of them, before they are judged.
_WATCHED = 60.0
#: Seconds for which a queue from which nothing was ever taken is quiet, not stalled.
FIRST_HOUR = 3600.0
#: How many times the usual pause between takes must pass before it is unusual; and in seconds its longest where no
#: item is held, and its longest that is learned from an alarm.
_UNUSUAL, _LEARNED = 3.0, 300.0
#: Shares by which a longer, and a shorter, pause becomes the usual one.
_UPWARD, _DOWNWARD = 0.5, 0.1
#: Seconds without a take from consumers that are alive, and that hold items, as a multiple of what is allowed without.
_ALIVE = 5.0
#: Seconds after a pause within which consumers that wait take again; after which nothing finished is a failure.
_AGAIN = 10.0
#: Seconds without anything finished, and items that came back meanwhile, that say that consumers fail.
_FRUITLESS, _FAILED = 90.0, 5
#: Seconds after its first take within which a consumer tells of itself, with its first heartbeat.
_TOLD = 10.0
#: Seconds for which the number of consumers is unknown after one took that does not tell of itself.
_UNKNOWN = 3600.0
#: Share of what is taken that comes back: from which on it is much, and below which no more; and items in 5 minutes.
_MUCH, _LITTLE, _SEVERAL = 0.5, 0.3, 10
#: Share of the pushed items of two minutes by which a queue must have grown in them.
_SHARE = 0.05
#: Of a limit, below which a queue is within it again; and how many times a limit is critical.
_WITHIN, _TWICE = 0.9, 2.0
#: Items per second that are no traffic.
_NONE = 0.001
#: Items per second by which a growing queue is said to grow at least.
_SLOWLY = 0.01

_OK, _WARNING, _CRITICAL = int(Level.OK), int(Level.WARNING), int(Level.CRITICAL)


class Latch(Struct, frozen=True, array_like=True):
    """The level of one reason, which follows its signal only after a time."""

    level: int = _OK
    since: float = 0.0
    #: The level of the signal, while it differs, and for how many seconds.
    toward: int = _OK
    pending: float = 0.0

    def after(self, signal: "Signal", seconds: float, at: float) -> "Latch":
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
        if self.level == _OK and pending >= signal.warns:
            return Latch(level=_WARNING, since=since, toward=toward, pending=pending)
        return replace(self, toward=toward, pending=pending)


class Signal(Struct, frozen=True):
    """What one observation says of one reason."""

    code: Code
    #: None: neither clearly over a limit nor clearly within it.
    level: int | None
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
    beyond: int = _OK


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

    @property
    def consumers(self) -> int | None:
        """Live consumers; None when unknown, as where programs take that tell nothing of themselves."""
        return None if self.untold_takes else self.seen.consumers

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
        return self.seen == Observation(self.seen.at) and not self.verdict.reasons

    @property
    def settled(self) -> bool:
        """Say whether the verdict stays the same by itself, for as long as nothing is observed to change."""
        waits = self.seen.ready and self.seen.paused is None and self.verdict.trend is not Trend.STALLED
        return not waits and all(latch.toward == latch.level for latch in self.latches.values())


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


def advance(before: Health | None, seen: Observation, targets: Targets = DEFAULTS) -> Health:
    """Return the health after an observation; without one before, it is the first of a queue."""
    if seen.unreadable:
        return _unreadable(before, seen)
    recorded = before
    if before is None or not seen.follows(before.seen):
        latches = {} if before is None else before.latches
        verdict = Verdict(Level.OK, seen.at) if before is None else before.verdict
        before = Health(
            seen=seen,
            verdict=verdict,
            began=_first(seen),
            latches=latches,
            targets=targets,
            unproven=0.0 if recorded is None else recorded.unproven,
        )
    health = _watched(before, seen)
    signals = list(_signals(health, targets))
    if targets != before.targets:
        before, signals = _retargeted(before, signals, targets)
    seconds = _step(before.seen, seen)
    latches = {signal.code.value: _latch(before, signal).after(signal, seconds, seen.at) for signal in signals}
    kept = {code: latch for code, latch in latches.items() if latch.level or latch.toward}
    breaches = Breaches(seen.at) if recorded is None else _breaches(recorded, seen, kept)
    health = replace(health, latches=kept, targets=targets, breaches=breaches)
    return replace(health, verdict=_verdict(before.verdict, health, signals))


def born(at: float) -> Health:
    """Return the health of a queue that was not there yet at a time, and is since."""
    return Health(seen=Observation(at), verdict=Verdict(Level.OK, at), averages=Averages(whole=True))


def _unreadable(before: Health | None, seen: Observation) -> Health:
    """Return the health of an unreadable queue: what was known is kept for later."""
    told_before = () if before is None else before.verdict.reasons
    since = next((reason.since for reason in told_before if reason.code is Code.UNREADABLE), seen.at)
    verdict = unknown(Code.UNREADABLE, min(since, seen.at))
    if before is None:
        return Health(seen=seen, verdict=verdict)
    breaches = _breaches(before, seen, {})
    return replace(before, seen=replace(before.seen, at=seen.at), verdict=verdict, breaches=breaches)


def _breaches(before: Health, seen: Observation, latches: Mapping[str, Latch]) -> Breaches:
    """Return the time in breach after a step, during which the queue was as before it."""
    was, targets = before.seen, before.targets
    watched = seen.at - was.at <= STALE or (before.settled and not seen.unreadable and seen.counts == was.counts)
    known = watched and Code.UNREADABLE not in before.verdict.codes
    beyond = {LIMIT_OF[code]: latch.since for code, latch in latches.items() if code in LIMIT_OF and latch.level}
    beyond |= {LIMIT_OF[code]: was.at for code, latch in before.latches.items() if code in LIMIT_OF and latch.level}
    unknown = set()
    if not known:
        beyond, unknown = {}, set(LIMIT_NAMES)
    elif targets.unreadable:
        unknown = set(LIMIT_NAMES)
    else:
        # Unwatched, what waits may have become too old.
        aged = seen.at - was.at > STALE and was.ready and was.paused is None
        unknown = {limit for limit, holds in {"wait": was.wait is None, "oldest": aged}.items() if holds}
    unknown = {limit for limit in unknown if getattr(targets, limit)} - beyond.keys()
    return before.breaches.after(was.at, seen.at, beyond=beyond, unknown=unknown)


def at(health: Health, now: float) -> Verdict:
    """Return the verdict as it is at a time after the last observation: unknown where that is long ago."""
    if now - health.seen.at <= STALE or health.settled:
        return health.verdict
    return unknown(Code.STALE, health.seen.at)


def unknown(code: Code, since: float) -> Verdict:
    """Return the verdict where nothing is known, and why."""
    return Verdict(Level.UNKNOWN, since, (Reason(code, Level.UNKNOWN, since),))


#: The reasons that a target decides.
LIMIT_OF: Mapping[str, str] = {
    Code.NO_CONSUMER: "no_consumer",
    Code.NONE_TAKEN: "no_consumer",
    Code.GROWING: "growing",
    Code.OLD: "oldest",
    Code.DEEP: "depth",
    Code.WAITS: "wait",
    Code.DEAD: "dead",
}


#: Seconds beyond a target after which it is a warning.
_WARNS: Mapping[Code, float] = {Code.OLD: 30.0, Code.DEEP: 30.0, Code.WAITS: 60.0}


def warns_after(limit: str) -> float:
    """Return for how many seconds a queue is beyond a limit until that counts."""
    return next((seconds for code, seconds in _WARNS.items() if LIMIT_OF[code] == limit), 0.0)


def _retargeted(before: Health, signals: list[Signal], targets: Targets) -> tuple[Health, list[Signal]]:
    """Let the reasons of a changed target follow at once: hysteresis is against noise, not against people."""
    latches, followed = dict(before.latches), []
    for signal in signals:
        limit = LIMIT_OF.get(signal.code, "")
        if not limit or getattr(before.targets, limit) == getattr(targets, limit):
            followed.append(signal)
            continue
        if signal.code is Code.GROWING:
            latch = _latch(before, signal)
            grown = before.seen.at - latch.since
            if latch.level and grown < signal.up:
                latches[signal.code.value] = Latch(toward=latch.level, pending=max(0.0, grown))
            followed.append(replace(signal, down=0.0))
            continue
        if signal.since is not None:
            latches.pop(signal.code.value, None)  # since when is reckoned by the new limit
        level = signal.beyond if signal.level is None else signal.level
        followed.append(replace(signal, level=level, up=0.0, down=0.0))
    return replace(before, latches=latches), followed


def _latch(before: Health, signal: Signal) -> Latch:
    return before.latches.get(signal.code.value, Latch())


def _step(before: Observation, seen: Observation) -> float:
    return min(max(seen.at - before.at, 0.0), STEP)


def _first(seen: Observation) -> float | None:
    return (seen.oldest or seen.at) if seen.ready else None


def _watched(before: Health, seen: Observation) -> Health:
    """Return the health with its averages, marks and times brought up to an observation."""
    was, seconds = before.seen, _step(before.seen, seen)
    by_hand = seen.hands != was.hands
    paused = seen.paused is not None or was.paused is not None
    taken, waiting = seen.taken - was.taken, bool(was.ready and seen.ready)
    marks = Marks() if paused else before.marks
    if by_hand:
        marks = marks.shifted(seen.ready - was.ready)
    # A pause counts against no consumer; what was not taken before it was not taken after it either.
    worked = 0.0 if paused else seconds
    unseen = waiting and seen.signs == was.signs
    silent = before.silent + worked if unseen else 0.0
    untaken = before.untaken + worked if waiting and not taken else 0.0
    usual = before.usual
    returned, finished = seen.returned - was.returned, seen.done != was.done
    if taken:
        # A pause that ends with a job is as long as jobs take; any other may have been a failure.
        job = (was.leased and finished) or before.fruitless < STEP
        pause = before.untaken if job else min(before.untaken, _LEARNED)
        # After long jobs, pauses count by their length: many takes at once, one of each worker, are few pauses.
        shorter = _DOWNWARD * (pause / usual if usual > _LEARNED else 1.0)
        usual += (pause - usual) * (_UPWARD if pause > usual else shorter)
    return replace(
        before,
        seen=seen,
        averages=before.averages.after(
            seen.at - was.at,
            pushed=seen.pushed - was.pushed,
            taken=taken,
            done=seen.done - was.done,
            returned=returned,
            net=0 if by_hand else seen.ready - was.ready,
        ),
        marks=marks.after(seconds, seen.ready if by_hand else was.ready, seen.ready),
        silent=silent,
        untaken=untaken,
        usual=usual,
        fruitless=0.0 if finished else before.fruitless + worked,
        failed=0 if finished else _failed(before.failed + returned, paused=paused),
        began=before.began if before.began is not None else _first(seen),
        unproven=_unproven(before, seen, worked, unseen=unseen),
        rested=before.rested + (max(0.0, seen.at - was.at) if paused else 0.0) if silent else 0.0,
        **_untold(before, seen, seconds, taken),
    )


def _failed(items: int, *, paused: bool) -> int:
    """Return how many items came back. After a pause it takes one more to say that consumers fail: they may be new."""
    return min(items, _FAILED - 1) if paused else items


def _unproven(before: Health, seen: Observation, seconds: float, *, unseen: bool) -> float | None:
    """Return for how long items were watched without a sign of a consumer, since nothing was known of them."""
    if seen.at - before.seen.at > STALE:  # what took items meanwhile may be gone
        alive = seen.signs != before.seen.signs and seen.consumers
        return None if alive or not seen.ready or seen.paused is not None else 0.0
    return None if before.unproven is None or not unseen else before.unproven + seconds


def _untold(before: Health, seen: Observation, seconds: float, taken: int) -> dict[str, float | None]:
    """Return since when, and for how long from now, takes say that there are consumers that do not tell."""
    was, untold, unknown = before.seen, before.untold, max(0.0, before.unknown - seconds)
    if seen.consumers != 0:
        return {"untold": None, "unknown": unknown}
    told = was.consumers or (seen.ended is not None and seen.ended >= was.at - _TOLD)
    if untold is not None:
        untold += seconds
        if untold >= _TOLD:
            return {"untold": None, "unknown": _UNKNOWN}
    elif taken and not told:
        return {"untold": 0.0, "unknown": _UNKNOWN if unknown else 0.0}
    return {"untold": untold, "unknown": unknown}


def _signals(health: Health, targets: Targets) -> Iterator[Signal]:
    """Yield what the last observation says of each reason, the most telling first."""
    seen = health.seen
    working = seen.paused is None
    own = working and not seen.attached
    yield from _idle(health, targets, own=own)
    yield _fruitless(health, own=own)
    yield _growing(health, targets, own=own)
    yield _retries(health, own=own)
    age = 0.0 if seen.oldest is None else seen.at - seen.oldest
    drains = health.marks.falls()
    crossed = None if seen.oldest is None else seen.oldest + targets.oldest
    waiting = own and not _is_quiet(health)
    yield _beyond(Code.OLD, age, targets.oldest, drains=drains, applies=waiting, since=crossed)
    yield _beyond(Code.DEEP, float(seen.ready), targets.depth, drains=drains, applies=working)
    waits = _beyond(Code.WAITS, seen.wait or 0.0, targets.wait, drains=drains, applies=own)
    yield replace(waits, value=seen.wait)
    many = bool(targets.dead) and seen.dead >= targets.dead
    dead, level = told_at_least(float(seen.dead)), _WARNING if many else _OK
    yield Signal(Code.DEAD, level, down=10.0, value=dead, limit=float(targets.dead), beyond=level)
    yield Signal(Code.DRIFT, _WARNING if seen.drift else _OK, down=10.0)
    yield Signal(Code.PAUSED, _OK if seen.paused is None else _WARNING, down=0.0, since=seen.paused)


class Silence(Struct, frozen=True):
    """For how long nothing was taken while items waited, and for how long that is well."""

    seconds: float
    #: By the target; None: it is never too long, as what is held may be worked on.
    least: float | None
    #: By the target and the usual pause.
    longest: float


def silence_of(health: Health, targets: Targets) -> Silence:
    """Return for how long no consumer gave a sign, or took where items are held, and when that is too long."""
    seen, number = health.seen, health.consumers
    if not seen.leased or number == 0:
        # One that ended by itself may come again, as it does when it comes by every few minutes.
        usual = 0.0 if number == 0 and seen.lost else _UNUSUAL * min(health.usual, _LEARNED)
        return Silence(health.silent, targets.no_consumer, max(targets.no_consumer, usual))
    # Consumers that hold items are at work, as far as is known: they hang, or their jobs take long.
    least = _ALIVE * targets.no_consumer if number else None
    return Silence(min(health.untaken, health.fruitless), least, max(least or 0.0, _UNUSUAL * health.usual))


def _idle(health: Health, targets: Targets, *, own: bool) -> Iterator[Signal]:
    """Yield whether items wait without a consumer, or with consumers that take none."""
    seen, number, silence = health.seen, health.consumers, silence_of(health, targets)
    silent, least = silence.seconds, silence.least
    gone = alone = _OK
    if own and least and seen.ready and not _is_quiet(health) and silent >= silence.longest:
        if not number:
            gone = _CRITICAL
        else:
            alone = _CRITICAL if not seen.leased and silent >= max(_ALIVE * least, silence.longest) else _WARNING
    began, value = seen.at - silent - health.rested, float(number) if number else None
    up, down = _AGAIN if health.rested else 0.0, _calm(seen)
    yield Signal(Code.NO_CONSUMER, gone, up=up, down=down, since=began)
    yield Signal(Code.NONE_TAKEN, alone, up=up, down=down, since=began, value=value)


def _calm(seen: Observation) -> float:
    """Return for how many seconds a stall is told after its end. A pause is a person's act: it is followed at once."""
    return 60.0 if seen.paused is None else 0.0


def _is_quiet(health: Health) -> bool:
    """Say whether nothing was ever taken, and the first item came within the hour."""
    return not health.seen.signs and health.began is not None and health.seen.at - health.began < FIRST_HOUR


def _is_unproven(health: Health) -> bool:
    """Say whether items wait, and too little was watched to know whether anything takes them."""
    seen, allowed = health.seen, health.targets.no_consumer
    if health.unproven is None or not allowed or seen.attached or _is_quiet(health):
        return False
    # When it was seen first, the oldest had not waited for long yet.
    young = seen.oldest is not None and seen.at - seen.oldest - health.unproven < allowed
    return not young and health.unproven < _proof(health)


def _proof(health: Health) -> float:
    """Return for how many seconds items are watched before they are judged, where nothing was known of them."""
    return max(_WATCHED, health.targets.no_consumer)


def _fruitless(health: Health, *, own: bool) -> Signal:
    fails = own and health.fruitless >= _FRUITLESS and health.failed >= _FAILED
    # What came back long ago says nothing of now.
    fails = fails and health.averages.returned[1] > _NONE
    since = health.seen.at - health.fruitless
    return Signal(Code.NOTHING_DONE, _CRITICAL if fails else _OK, down=_calm(health.seen), since=since)


def _growing(health: Health, targets: Targets, *, own: bool) -> Signal:
    marks, averages, level = health.marks, health.averages, None
    if not own or not targets.growing or not health.seen.ready or marks.falls() or marks.flat():
        level = _OK
    elif marks.rises(_SHARE * averages.of(averages.pushed)[1] * 120.0) or marks.creeps():
        level = _WARNING
    elif marks.rests():
        level = _OK
    grows_by = max(_SLOWLY, averages.of(averages.net)[1])
    up = max(0.0, targets.growing - DEFAULTS.growing)
    return Signal(Code.GROWING, level, up=up, down=_calm(health.seen), value=grows_by)


def _retries(health: Health, *, own: bool) -> Signal:
    averages, level = health.averages, None
    taken, returned = averages.of(averages.taken), averages.of(averages.returned)
    # Of one minute, where that are enough items to say so, and of five.
    shares = [back / out if out > _NONE else 0.0 for back, out in zip(returned[:2], taken[:2], strict=True)]
    enough = (2 * _SEVERAL, _SEVERAL)
    many = [rate * span >= least for rate, span, least in zip(returned, SPANS, enough, strict=False)]
    much = [share for share, are in zip(shares, many, strict=True) if are and share >= _MUCH]
    if not own or max(shares) < _LITTLE:
        level = _OK
    elif much:
        level = _WARNING
    return Signal(Code.RETRIES, level, up=30.0, value=min(1.0, max(much, default=shares[1])))


def _beyond(
    code: Code, value: float, limit: float, *, drains: bool, applies: bool, since: float | None = None
) -> Signal:
    """Return whether a number is beyond its target, or twice that. A queue that drains is never critical by it."""
    level: int | None = None
    up = warns = _WARNS[code]
    if not applies or not limit or value < _WITHIN * limit:
        level = _OK
    elif value >= _TWICE * limit and not drains:
        level = _CRITICAL
        up = max(up, 120.0)
    elif value >= limit and (drains or value < _TWICE * _WITHIN * limit):
        level = _WARNING
    # An age grows by itself: it is told by the time of the item.
    shown = None if code is Code.OLD else value
    # What waited longest is gone or is not: there is nothing to wait for, and its words would tell a small age.
    down = 60.0 if applies else 0.0
    if code is Code.OLD:
        down = 10.0 if value else 0.0
    beyond = _WARNING if value >= limit else _OK
    return Signal(
        code, level, up=up, down=down, warns=warns, since=since, value=shown, limit=float(limit), beyond=beyond
    )


# The verdict


def _verdict(before: Verdict, health: Health, signals: list[Signal]) -> Verdict:
    seen, at = health.seen, health.seen.at
    told_before = {reason.code: reason.value for reason in before.reasons}
    ends = {reason.code: reason.until for reason in before.reasons}
    over = _over(health)
    reasons = []
    for signal in signals:
        latch = health.latches.get(signal.code.value)
        if latch is not None and latch.level:
            tell = told_roughly if signal.code is Code.GROWING else told
            value = tell(signal.value, told_before.get(signal.code))
            if value is None or (signal.limit and not signal.beyond):  # no number of now explains the trouble
                value = told_before.get(signal.code, value)
            until = (ends.get(signal.code) or at) if signal.code in over else None
            reasons.append(Reason(signal.code, Level(latch.level), min(latch.since, at), value, signal.limit, until))
    if any(reason.code is Code.NO_CONSUMER for reason in reasons):  # then none of them takes either
        reasons = [reason for reason in reasons if reason.code is not Code.NONE_TAKEN]
    raised = {reason.code: reason.level for reason in reasons}
    reasons = [reason for reason in reasons if not _follows(reason, raised)]
    reasons.sort(key=lambda reason: -reason.level)
    level = max((reason.level for reason in reasons), default=Level.OK)
    blind = {
        Code.STALE: not reasons and _is_unproven(health),
        Code.ATTACHED: seen.attached,
        Code.TARGETS: health.targets.unreadable,
    }
    for code in [code for code, holds in blind.items() if holds]:
        level = max(level, Level.UNKNOWN)
        since = next((reason.since for reason in before.reasons if reason.code is code), at)
        reasons.append(Reason(code, Level.UNKNOWN, since, _proof(health) if code is Code.STALE else None))
    since = before.since if level is before.level else at
    if not reasons and seen.ready and seen.paused is None and _is_quiet(health):
        reasons.append(Reason(Code.QUIET, Level.OK, health.began or at))
    trend = _trend(before.trend, health)
    net = health.averages.of(health.averages.net)
    drained = health.marks.clears_in if trend is Trend.DRAINING else None
    grown = max(_SLOWLY, net[1]) if trend is Trend.GROWING else None
    return Verdict(
        level=level,
        since=min(since, at),
        reasons=tuple(reasons),
        trend=trend,
        clears_in=told_roughly(drained, before.clears_in),
        grows_by=told_roughly(grown, before.grows_by),
    )


#: Reasons that say that nothing is taken or finished.
_STALLS = frozenset({Code.NO_CONSUMER, Code.NONE_TAKEN, Code.NOTHING_DONE})


def _over(health: Health) -> frozenset[Code]:
    """Return the stalls that have ended, though their levels hold for a while."""
    found = ((code, health.latches.get(code)) for code in _STALLS)
    return frozenset(code for code, latch in found if latch is not None and latch.level and not latch.toward)


#: Reasons that follow from another one, which then tells enough.
_FOLLOWS: Mapping[Code, frozenset[Code]] = {
    Code.RETRIES: frozenset({Code.NOTHING_DONE}),
    Code.GROWING: frozenset({Code.NO_CONSUMER, Code.NONE_TAKEN, Code.NOTHING_DONE, Code.PAUSED}),
}


def _follows(reason: Reason, raised: Mapping[Code, int]) -> bool:
    """Say whether a reason follows from another one that is at least as grave."""
    return any(raised.get(cause, Level.OK) >= reason.level for cause in _FOLLOWS.get(reason.code, ()))


def _is_unmoved(health: Health) -> bool:
    """Say whether none was taken for so long that nothing can be said of what waits."""
    # What is held may be long jobs; where nothing is, a minute without a take is long, be it as usual or not.
    unmoved = health.untaken >= max(_LEARNED, _UNUSUAL * health.usual)
    return unmoved or (not health.seen.leased and health.silent >= (health.targets.no_consumer or _WATCHED))


def _is_failing(health: Health) -> bool:
    """Say whether what was taken came back, and none was finished, be it for too short a time to say so."""
    several = health.failed >= _FAILED and health.fruitless >= _AGAIN
    return several or (bool(health.failed) and not health.seen.done)


def _trend(before: Trend, health: Health) -> Trend:
    seen, latches = health.seen, health.latches
    over = _over(health)
    raised = {code for code, latch in latches.items() if latch.level} - over
    if seen.attached:
        return Trend.UNKNOWN
    if seen.paused is not None:
        return Trend.PAUSED
    hung = Code.NONE_TAKEN in raised
    if Code.NO_CONSUMER in raised or (hung and not seen.leased and health.silent >= health.targets.no_consumer):
        return Trend.STALLED
    if Code.GROWING in raised:
        return Trend.GROWING
    if hung or (seen.ready and (_is_unmoved(health) or _is_quiet(health) or _is_unproven(health))):
        return Trend.UNKNOWN
    if not seen.ready and not any(average[0] > _NONE for average in (health.averages.pushed, health.averages.taken)):
        return Trend.EMPTY
    marks = health.marks
    if seen.ready and marks.drains(before is Trend.DRAINING):
        return Trend.DRAINING
    return Trend.UNKNOWN if over or _is_failing(health) else Trend.STEADY
