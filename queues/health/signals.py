"""Signals of a queue: what its last observation says of each reason.

Critical is that work is not done: nothing is taken though items wait, what is taken is never finished, or a target is
missed twice over by a queue that does not drain. Everything else is a warning.
"""

from collections.abc import Iterator, Mapping
from math import sqrt

from msgspec import Struct
from msgspec.structs import replace

from queues.health.activity import FAILED, LEARNED
from queues.health.averages import NO_TRAFFIC, SPANS
from queues.health.growth import SEEN
from queues.health.health import WATCHED, Health
from queues.health.latch import Signal
from queues.health.levels import Code, Level, Trend
from queues.health.observation import Observation
from queues.health.rounding import told_at_least
from queues.health.targets import LIMIT_OF, Targets

#: How many times the usual pause between takes must pass before it is unusual.
_UNUSUAL = 3.0
#: Seconds without a take from consumers that are alive, and that hold items, as a multiple of what is allowed without.
_ALIVE = 5.0
#: Seconds after a pause within which consumers that wait take again; after which nothing finished is a failure.
_AGAIN = 10.0
#: Seconds for which items come back, and none is finished, that say that consumers fail.
_FRUITLESS = 90.0
#: Share of ended attempts that failed: from which on it is much, and below which no more; and items in 5 minutes.
_MUCH, _LITTLE, _SEVERAL = 0.45, 0.3, 10
#: Seconds without a take after which it is not said that a queue keeps up.
_UNMOVED = 20.0
#: Share of the pushed items of two minutes by which a queue must have grown or shrunk in them.
_SHARE = 0.05
#: Standard deviations of the change of a queue that wanders by chance, below which it is not said to shrink.
_CHANCE = 2.0
#: Of a limit, below which a queue is within it again; and how many times a limit is critical.
_WITHIN, _TWICE = 0.9, 2.0
#: Share of the limit of items from which on a queue is near it, and below which it has room again.
_NEAR, _ROOM = 0.9, 0.8
#: Items per second by which a growing queue is said to grow at least.
_SLOWLY = 0.01
#: Seconds beyond a target after which it is a warning.
_WARNS: Mapping[Code, float] = {Code.OLD: 30.0, Code.DEEP: 30.0, Code.WAITS: 60.0}


def warns_after(limit: str) -> float:
    """Return for how many seconds a queue is beyond a limit until that counts."""
    return next((seconds for code, seconds in _WARNS.items() if LIMIT_OF[code] == limit), 0.0)


def signals_of(health: Health, targets: Targets) -> Iterator[Signal]:
    """Yield what the last observation says of each reason, the most telling first."""
    seen = health.seen
    working = seen.paused is None
    own = working and not seen.attached
    yield from _idle(health, targets, own=own)
    yield _fruitless(health, own=own)
    yield _full(seen)
    yield _growing(health, targets, own=own)
    yield _retries(health, own=own)
    age = 0.0 if seen.oldest is None else seen.at - seen.oldest
    drains = is_draining(health)
    crossed = None if seen.oldest is None else seen.oldest + targets.oldest
    waiting = own and not health.is_quiet
    yield _beyond(Code.OLD, age, targets.oldest, drains=drains, applies=waiting, since=crossed)
    yield _beyond(Code.DEEP, float(seen.ready), targets.depth, drains=drains, applies=working)
    waits = _beyond(Code.WAITS, seen.wait or 0.0, targets.wait, drains=drains, applies=own)
    # Where none was taken lately, what waits may wait as long as those before.
    unknown = seen.wait is None and seen.ready and own and targets.wait
    yield replace(waits, value=seen.wait, level=None if unknown else waits.level)
    many = bool(targets.dead) and seen.dead >= targets.dead
    dead, level = told_at_least(float(seen.dead)), Level.WARNING if many else Level.OK
    yield Signal(Code.DEAD, level, down=10.0, value=dead, limit=float(targets.dead))
    yield Signal(Code.DRIFT, Level.WARNING if seen.drift else Level.OK, down=10.0)
    yield Signal(Code.PAUSED, Level.OK if seen.paused is None else Level.WARNING, down=0.0, since=seen.paused)


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
        usual = 0.0 if number == 0 and seen.lost else _UNUSUAL * min(health.usual, LEARNED)
        return Silence(health.silent, targets.no_consumer, max(targets.no_consumer, usual))
    # Consumers that hold items are at work, as far as is known: they hang, or their jobs take long.
    least = _ALIVE * targets.no_consumer if number else None
    return Silence(min(health.untaken, health.fruitless), least, max(least or 0.0, _UNUSUAL * health.usual))


def _idle(health: Health, targets: Targets, *, own: bool) -> Iterator[Signal]:
    """Yield whether items wait without a consumer, or with consumers that take none."""
    seen, number, silence = health.seen, health.consumers, silence_of(health, targets)
    silent, least = silence.seconds, silence.least
    gone = alone = Level.OK
    if own and least and seen.ready and not health.is_quiet and silent >= silence.longest:
        if not number:
            gone = Level.CRITICAL
        elif not seen.leased and silent >= max(_ALIVE * least, silence.longest):
            alone = Level.CRITICAL
        else:
            alone = Level.WARNING
    began, value = seen.at - silent - health.rested, float(number) if number else None
    up, down = _AGAIN if health.rested else 0.0, _calm(seen)
    yield Signal(Code.NO_CONSUMER, gone, up=up, down=down, since=began)
    yield Signal(Code.NONE_TAKEN, alone, up=up, down=down, since=began, value=value)


def _calm(seen: Observation) -> float:
    """Return for how many seconds a stall is told after its end. A pause is a person's act: it is followed at once."""
    return 60.0 if seen.paused is None else 0.0


def _fruitless(health: Health, *, own: bool) -> Signal:
    fails = own and health.failing >= _FRUITLESS and health.failed >= FAILED
    # What came back long ago says nothing of now.
    fails = fails and health.averages.returned[1] > NO_TRAFFIC
    # A few items that come back again and again may be the fault of these.
    level = Level.CRITICAL if health.unfinished >= FAILED else Level.WARNING
    since = health.seen.at - health.failing
    return Signal(Code.NOTHING_DONE, level if fails else Level.OK, down=_calm(health.seen), since=since)


def _full(seen: Observation) -> Signal:
    """Return whether pushes are refused, or soon may be; a full queue has room again and again, as items are taken."""
    level = Level.OK
    held, most = seen.ready + seen.delayed, float(seen.most or 0)
    if held >= _NEAR * most > 0:
        level = Level.WARNING
    close = Level.WARNING if held >= _ROOM * most > 0 else Level.OK
    value = most if seen.is_full else None
    return Signal(Code.FULL, level, up=_AGAIN, down=10.0, value=value, limit=most, close=close)


def growth_of(health: Health) -> float | None:
    """Return by how many items per second a queue grows; None where it does not grow now."""
    grows_by = health.marks.grows_by(noise_of(health))
    return None if grows_by is None else max(_SLOWLY, grows_by)


def noise_of(health: Health) -> float:
    """Return the items by which a queue must have grown or shrunk in two minutes, as it is never still."""
    averages = health.averages
    return _SHARE * averages.of(averages.pushed)[1] * 120.0


def is_draining(health: Health) -> bool:
    """Say whether a queue shrinks by more than chance does, where items come and go at random."""
    averages = health.averages
    chance = _CHANCE * sqrt(2.0 * averages.of(averages.pushed)[1] * 120.0)
    return bool(health.seen.ready) and health.marks.drains(health.verdict.trend is Trend.DRAINING, chance)


def _growing(health: Health, targets: Targets, *, own: bool) -> Signal:
    marks, level = health.marks, None
    if not own or not targets.growing or not health.seen.ready or marks.flat() or marks.falls(noise_of(health)):
        level = Level.OK
    elif marks.rises(noise_of(health)) or marks.creeps():
        level = Level.WARNING
    elif marks.rests():
        level = Level.OK
    up = max(0.0, targets.growing - SEEN)
    return Signal(Code.GROWING, level, up=up, down=_calm(health.seen), value=growth_of(health))


def _retries(health: Health, *, own: bool) -> Signal:
    averages, level = health.averages, None
    returned, done = averages.of(averages.returned), averages.of(averages.done)
    # What still runs has neither failed nor not.
    ended = [back + well for back, well in zip(returned, done, strict=True)]
    # Of one minute, where that are enough items to say so, and of five.
    shares = [back / out if out > NO_TRAFFIC else 0.0 for back, out in zip(returned[:2], ended[:2], strict=True)]
    enough = (2 * _SEVERAL, _SEVERAL)
    many = [rate * span >= least for rate, span, least in zip(returned, SPANS, enough, strict=False)]
    much = [share for share, are in zip(shares, many, strict=True) if are and share >= _MUCH]
    # What came back before the last minute says nothing of now, where enough attempts ended in it.
    known = ended[0] * SPANS[0] >= _SEVERAL
    if not own or (shares[0] if known else max(shares)) < _LITTLE:
        level = Level.OK
    elif much:
        level = Level.WARNING
    return Signal(Code.RETRIES, level, up=30.0, value=min(1.0, max(much, default=shares[1])))


def _beyond(
    code: Code, value: float, limit: float, *, drains: bool, applies: bool, since: float | None = None
) -> Signal:
    """Return whether a number is beyond its target, or twice that. A queue that drains is never critical by it."""
    up = warns = _WARNS[code]
    known = applies and limit > 0
    level = _level(value, limit, drains=drains) if known else Level.OK
    close = _level(value / _WITHIN, limit, drains=drains) if known else Level.OK
    if level is Level.CRITICAL:
        up = max(up, 120.0)
    # An age grows by itself: it is told by the time of the item.
    shown = None if code is Code.OLD else value
    # What waited longest is gone or is not: there is nothing to wait for, and its words would tell a small age.
    down = 60.0 if applies else 0.0
    if code is Code.OLD:
        down = 10.0 if value else 0.0
    return Signal(code, level, up=up, down=down, warns=warns, since=since, value=shown, limit=float(limit), close=close)


def _level(value: float, limit: float, *, drains: bool) -> Level:
    """Return the level of a number by its target alone."""
    if value < limit:
        return Level.OK
    return Level.WARNING if drains or value < _TWICE * limit else Level.CRITICAL


# The verdict


def is_unmoved(health: Health) -> bool:
    """Say whether none was taken for so long that nothing can be said of what waits."""
    # What is held may be long jobs; where nothing is, a minute without a take is long, be it as usual or not.
    unmoved = health.untaken >= max(_UNMOVED, _UNUSUAL * health.usual)
    # One that tells nothing of itself may have taken just now.
    left = health.consumers == 0 and (health.untaken > 0 or health.untold is None)
    return unmoved or left or (not health.seen.leased and health.silent >= (health.targets.no_consumer or WATCHED))


def is_failing(health: Health) -> bool:
    """Say whether what was taken came back, and none was finished, be it for too short a time to say so."""
    several = health.failed >= FAILED and health.failing >= _AGAIN
    return several or (bool(health.failed) and not health.seen.done)
