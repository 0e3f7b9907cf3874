"""Playing a scenario, and comparing the verdicts with what is right."""

import itertools
from dataclasses import dataclass

from benchmarks.harness.queue_world import TICK, World
from benchmarks.harness.verdict_scenarios import HOUR, Phase, Scenario
from queues.health import Level, Verdict

#: Changes of the level in an hour, beyond those that a change of the truth explains.
MOST_FLIPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a scenario; times in seconds."""

    name: str
    minutes: int
    #: The last one.
    verdict: Verdict
    #: Until the verdict was right, in the phase where it took longest.
    delay: int
    #: For which it was wrong after it had to be right; and falsely critical at any time.
    wrong: int
    critical: int
    #: The most changes in an hour that no change of the truth explains.
    flips: int
    misses: tuple[str, ...]


def play(scenario: Scenario, *, seed: int = 1, tells: bool = True) -> Played:
    """Play a scenario from its beginning, with consumers that tell of themselves or not."""
    world = World(seed, tells=tells)
    try:
        scenario.begin(world)
        verdicts: list[tuple[int, Verdict]] = []
        for second in range(TICK, scenario.minutes * 60 + 1, TICK):
            scenario.play(world, second)
            verdict = world.tick()
            if verdict is not None:
                verdicts.append((second, verdict))
    finally:
        world.close()
    return _judged(scenario, verdicts)


def _judged(scenario: Scenario, verdicts: list[tuple[int, Verdict]]) -> Played:
    delay = wrong = critical = 0
    misses = []
    phases = list(scenario.phases)
    for n, phase in enumerate(phases):
        end = phases[n + 1].since if n + 1 < len(phases) else scenario.minutes * 60 + 1
        before = phases[n - 1].right if n else frozenset[Level]()
        inside = [(second, verdict) for second, verdict in verdicts if phase.since <= second < end]
        right_at = next((second for second, verdict in inside if _is_right(phase, verdict)), None)
        took = (end if right_at is None else right_at) - phase.since
        delay = max(delay, took)
        if took > phase.within + TICK:
            misses.append(f"right after {took} s from {phase.since} on")
        late = [
            second
            for second, verdict in inside
            if second > phase.since + phase.within + TICK and _is_wrong(phase, verdict)
        ]
        wrong += TICK * len(late)
        if late:
            misses.append(f"wrong for {TICK * len(late)} s, first at {late[0]}")
        false = [
            second
            for second, verdict in inside
            if verdict.level is Level.CRITICAL
            and Level.CRITICAL not in phase.right
            and (Level.CRITICAL not in before or second > phase.since + phase.within + TICK)
        ]
        critical += TICK * len(false)
        if false:
            misses.append(f"falsely critical for {TICK * len(false)} s, first at {false[0]}")
    flips = _flips(scenario, verdicts)
    if flips > MOST_FLIPS:
        misses.append(f"{flips} flips in an hour")
    return Played(
        name=scenario.name,
        minutes=scenario.minutes,
        verdict=verdicts[-1][1],
        delay=delay,
        wrong=wrong,
        critical=critical,
        flips=flips,
        misses=tuple(misses),
    )


def _is_right(phase: Phase, verdict: Verdict) -> bool:
    return not _is_wrong(phase, verdict) and (not phase.code or phase.code in verdict.codes)


def _is_wrong(phase: Phase, verdict: Verdict) -> bool:
    return verdict.level not in phase.right or bool(phase.trends and verdict.trend not in phase.trends)


def _flips(scenario: Scenario, verdicts: list[tuple[int, Verdict]]) -> int:
    """Return the most changes of the level in an hour, of those that follow no change of the truth."""
    changes = [
        second for (_, before), (second, after) in itertools.pairwise(verdicts) if before.level is not after.level
    ]
    caused = set()
    for phase in scenario.phases:
        caused |= set([second for second in changes if second >= phase.since][:1])
    free = [second for second in changes if second not in caused]
    return max((sum(0 <= other - second < HOUR for other in free) for second in free), default=0)
