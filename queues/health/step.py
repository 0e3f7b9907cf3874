"""Step of the health of a queue, from one observation to the next.

`advance` is pure: the health before, an observation and the targets give the health after.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from queues.health.activity import first_item, seconds_between, watched
from queues.health.breaches import Breaches
from queues.health.health import STALE, Health
from queues.health.latch import Latch, Signal
from queues.health.levels import Code, Level, Verdict
from queues.health.observation import Observation
from queues.health.signals import signals_of
from queues.health.targets import DEFAULTS, LIMIT_OF, Targets
from queues.health.verdict import unknown, verdict_of
from queues.model.limits import LIMIT_NAMES


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
            began=first_item(seen),
            latches=latches,
            targets=targets,
            buried=seen.dead,
            unproven=0.0 if recorded is None else recorded.unproven,
        )
    health = watched(before, seen)
    signals = list(signals_of(health, targets))
    if targets != before.targets:
        before, signals = _retargeted(before, signals, targets)
    seconds = seconds_between(before.seen, seen)
    latches = {signal.code.value: _latch(before, signal).after(signal, seconds, seen.at) for signal in signals}
    kept = {code: latch for code, latch in latches.items() if latch.level or latch.toward}
    breaches = Breaches(seen.at) if recorded is None else _breaches(recorded, seen, kept)
    health = replace(health, latches=kept, targets=targets, breaches=breaches)
    return replace(health, verdict=verdict_of(before.verdict, health, signals))


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
    beyond = {LIMIT_OF[code]: latch.since for code, latch in latches.items() if latch.level and _is_beyond(code, latch)}
    beyond |= {LIMIT_OF[code]: was.at for code, latch in before.latches.items() if _is_beyond(code, latch)}
    if was.wait is None:  # the last one is told until there is another
        beyond.pop("wait", None)
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


def _is_beyond(code: str, latch: Latch) -> bool:
    """Say whether a limit is crossed, be it for too short a time to be told. Growth has to last, by its target."""
    return code in LIMIT_OF and bool(latch.toward and (latch.level or code != Code.GROWING))


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
        followed.append(replace(signal, level=signal.level or Level.OK, up=0.0, down=0.0, close=Level.OK))
    return replace(before, latches=latches), followed


def _latch(before: Health, signal: Signal) -> Latch:
    return before.latches.get(signal.code.value, Latch())
