"""Rules by which the soak of two sites is judged: pure functions over logs of attempts, effects and samples.

All moments are seconds of CLOCK_BOOTTIME, which no shifted wall clock changes and which all processes share.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

#: Seconds by which a delayed item may be begun early: its delay is counted in milliseconds, by the store's clock.
EARLY = 0.1
#: Part of a lease by which its end may be misjudged: it is extended every third.
SLACK = 1 / 3
#: Seconds that a handler of this kind holds the interpreter, and so the lines of its process back.
HELD_KIND, HELD = "held", 4.0
#: Growth of a site's memory: bytes a minute, and bytes altogether that no slope is asked about.
SLOPE, GROWTH = 500_000, 12_000_000
#: Seconds of a site's life that are not looked at, and that are needed behind them.
WARM_UP, JUDGED = 120.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One process: when it was told to stop (SIGTERM), and when it ended; None where neither happened."""

    process: str
    told: float | None = None
    ended: float | None = None


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One call of a handler, as its process wrote it down."""

    item: str
    name: str
    kind: str
    process: str
    attempt: int
    began: float
    not_before: float | None
    ended: float | None = None
    #: The item was completed.
    done: bool = False


def read_attempts(files: Iterable[Path]) -> list[Attempt]:
    """Read the logs of worker processes; a last line that a kill cut off is left out."""
    found: list[Attempt] = []
    for file in files:
        open_attempts: dict[tuple[str, int], Attempt] = {}
        for line in file.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                continue
            said = json.loads(line)
            key = said["item"], said["attempt"]
            if said["what"] == "begin":
                open_attempts[key] = Attempt(
                    item=said["item"],
                    name=said["name"],
                    kind=said["kind"],
                    process=said["process"],
                    attempt=said["attempt"],
                    began=said["at"],
                    not_before=said["not_before"],
                )
                found.append(open_attempts[key])
            else:
                open_attempts[key].ended = said["at"]
                open_attempts[key].done = said["what"] == "done"
    return found


@dataclass(slots=True)
class Overlaps:
    """Attempts of one item that ran at the same time."""

    #: The earlier one's process had been killed or told to stop.
    after_an_end: int = 0
    #: The earlier one's process lived: its lease had been over, or was taken.
    beside_the_living: Counter[str] = field(default_factory=Counter)
    #: The earlier one's lease cannot have been over.
    wrong: list[str] = field(default_factory=list)


def overlaps(attempts: Sequence[Attempt], lives: Mapping[str, Life], leased: Mapping[str, float]) -> Overlaps:
    """Look for attempts of one item that began while an earlier one's lease was not over.

    A lease of `seconds` is extended every third of that while its process lives. So an attempt that has not ended
    may be followed by another one:

    - from the moment on at which its process was told to stop, as that gives its items back;
    - after its process was killed, but not within two thirds of `seconds` after the attempt began;
    - never while its process lives.

    A handler that holds the interpreter keeps its process from writing lines, so leases begin earlier than lines say:
    what such a handler took before an attempt began is allowed for. Its own attempts have no first line in time, so
    they are counted and not judged here; their effects are.
    """
    found = Overlaps()
    holding = _holding(attempts)
    for one_item in _by_item(attempts).values():
        for at, earlier in enumerate(one_item):
            life = lives[earlier.process]
            for later in one_item[at + 1 :]:
                if earlier.ended is not None and later.began >= earlier.ended:
                    break
                gone = [moment for moment in (life.told, life.ended) if moment is not None and moment <= later.began]
                if gone:
                    found.after_an_end += 1
                else:
                    found.beside_the_living[earlier.kind] += 1
                if earlier.kind == HELD_KIND or (life.told is not None and life.told <= later.began):
                    continue
                earliest = _over_at(earlier, leased[earlier.kind], holding[earlier.process])
                if not gone or later.began < earliest:
                    found.wrong.append(
                        f"{earlier.name}: {earlier.process} began at {earlier.began:.2f}, {later.process} at "
                        f"{later.began:.2f}, {'after a kill' if gone else 'while the first one lived'}"
                    )
    return found


def _over_at(earlier: Attempt, seconds: float, holding: Sequence[tuple[float, float]]) -> float:
    """Return the earliest moment at which the lease of a killed process may have been over."""
    held_back = sum(end - begin for begin, end in holding if earlier.began - seconds <= end <= earlier.began + 1)
    return earlier.began + seconds * (1 - SLACK) - held_back


def _holding(attempts: Iterable[Attempt]) -> Mapping[str, list[tuple[float, float]]]:
    """Return when each process's interpreter was held."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for attempt in attempts:
        if attempt.kind == HELD_KIND:
            ended = attempt.began + HELD if attempt.ended is None else attempt.ended
            found[attempt.process].append((attempt.began, max(ended, attempt.began + HELD)))
    return found


def _by_item(attempts: Iterable[Attempt]) -> Mapping[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda attempt: attempt.began):
        found[attempt.item].append(attempt)
    return found


def wrong_ids(attempts: Iterable[Attempt]) -> list[str]:
    """Return what shares an id, and what has two: equal ids, and pushes that were done twice."""
    names, ids = defaultdict(set), defaultdict(set)
    for attempt in attempts:
        names[attempt.item].add(attempt.name)
        ids[attempt.name].add(attempt.item)
    shared = [f"{item} is the id of {sorted(called)}" for item, called in names.items() if len(called) > 1]
    return shared + [f"{name} was pushed as {sorted(found)}" for name, found in ids.items() if len(found) > 1]


def begun_after_done(attempts: Iterable[Attempt]) -> list[str]:
    """Return items on which work began after an attempt had completed them."""
    found = []
    for one_item in _by_item(attempts).values():
        done = min((attempt.ended for attempt in one_item if attempt.done and attempt.ended), default=None)
        found += [
            f"{attempt.name} by {attempt.process}" for attempt in one_item if done is not None and attempt.began > done
        ]
    return found


def begun_early(attempts: Iterable[Attempt]) -> list[str]:
    """Return delayed items on which work began before they were due."""
    return [
        f"{attempt.name}: {attempt.not_before - attempt.began:.2f} s"
        for attempt in attempts
        if attempt.not_before is not None and attempt.began < attempt.not_before - EARLY
    ]


@dataclass(frozen=True, slots=True)
class Effects:
    """Names of values whose effects are not what they should be."""

    lost: list[str]
    twice: list[str]
    from_nowhere: list[str]


def judge_effects(expected: Iterable[str], effects: Mapping[str, int]) -> Effects:
    """Compare what should have been completed once with how often it was."""
    wanted = Counter(expected)
    return Effects(
        lost=sorted(wanted.keys() - effects.keys()),
        twice=sorted(name for name, count in effects.items() if count > 1),
        from_nowhere=sorted(effects.keys() - wanted.keys()),
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """What the anonymous memory of one process did behind its warm-up."""

    seconds: float
    #: Means of the first, the middle and the last third, bytes.
    first: int
    middle: int
    last: int
    #: Bytes a minute, by least squares.
    slope: float

    @property
    def judged(self) -> bool:
        """Say whether it was watched for long enough."""
        return self.seconds >= JUDGED

    @property
    def grows(self) -> bool:
        """Say whether it was seen to grow for as long as it was looked at."""
        return self.judged and self.slope > SLOPE and self.last - self.first > GROWTH


def memory(samples: Sequence[tuple[float, int]]) -> Memory | None:
    """Judge samples (moment, bytes) of one process; None when it did not outlive its warm-up."""
    late = [(at, size) for at, size in samples if at >= samples[0][0] + WARM_UP]
    if len(late) < 3:
        return None
    mean_at, mean_size = fmean(at for at, _ in late), fmean(size for _, size in late)
    spread = sum((at - mean_at) ** 2 for at, _ in late)
    slope = sum((at - mean_at) * (size - mean_size) for at, size in late) / spread
    third = len(late) // 3
    parts = (late[:third], late[third:-third], late[-third:])
    first, middle, last = (int(fmean(size for _, size in part)) for part in parts)
    return Memory(seconds=late[-1][0] - late[0][0], first=first, middle=middle, last=last, slope=slope * 60)
