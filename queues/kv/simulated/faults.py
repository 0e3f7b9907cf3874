"""Failures that a simulated store has on demand, replayable from a seed."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from queues.kv.simulated.late_commits import Lateness

#: Seconds after its lost answer within which a late commit lands, at the latest.
MAX_LATENESS = 5.0
#: Begins and commits of any client after which a late commit lands: before the next begin, before the next commit …
_LATE_OPERATIONS = (0, 1, 1, 2, 3, 5, 8, 13, 21)
#: Seconds by which a clock jumps, forwards or back: within a transaction's time, beyond it, beyond all patience,
#: beyond the time for which a slot is trusted.
_JUMPS = (1.0, 4.0, 7.0, 40.0, 40.0, 4_000.0)


class Fault(Enum):
    """What may go wrong."""

    #: FoundationDB's 1020: nothing is written, and the transaction may be tried again.
    CONFLICT = "conflict"
    #: FoundationDB's 1007: the same.
    TOO_OLD = "too old"
    #: FoundationDB's 1021: the answer is lost, and nothing is ever written.
    UNKNOWN_BEFORE = "unknown, not committed"
    #: FoundationDB's 1021: the answer is lost, and the transaction was committed.
    UNKNOWN_AFTER = "unknown, committed"
    #: The answer is lost, and the commit lands later, unless something conflicts with it by then.
    LATE = "late commit"
    #: FoundationDB's 1032, 1009 or a canceled watch: must be taken for a wake-up.
    WATCH_ERROR = "watch error"
    #: A watch that fires although nothing has changed.
    SPURIOUS_WAKE = "spurious wake-up"
    #: A client's clock jumps, forwards or back.
    CLOCK_JUMP = "clock jump"


AT_COMMIT = (Fault.CONFLICT, Fault.TOO_OLD, Fault.UNKNOWN_BEFORE, Fault.UNKNOWN_AFTER, Fault.LATE)
AT_WATCH = (Fault.WATCH_ERROR, Fault.SPURIOUS_WAKE)


class Faults(Protocol):
    """Decides what goes wrong."""

    def at_commit(self) -> Fault | None:
        """Return what goes wrong with the commit that is about to happen. None lets it pass."""

    def lateness(self) -> Lateness:
        """Return how late the commit lands that `at_commit` made late."""

    def at_watch(self) -> Fault | None:
        """Return what goes wrong with the watch that is about to begin. None lets it pass."""

    def clock_jump(self) -> float:
        """Return the seconds by which a client's clock jumps now; mostly 0."""


class SeededFaults:
    """Faults by chance: the same seed and the same order of events give the same faults."""

    def __init__(self, seed: int, rates: Mapping[Fault, float]) -> None:
        self.seed = seed
        self.counts: Counter[Fault] = Counter()
        self._random = random.Random(seed)  # noqa: S311 - replayable on purpose
        self._rates = dict(rates)
        self._lock = threading.Lock()

    def at_commit(self) -> Fault | None:
        """Draw the fate of one commit."""
        return self._draw(AT_COMMIT)

    def lateness(self) -> Lateness:
        """Draw how late a commit lands."""
        with self._lock:
            return Lateness(
                seconds=self._random.uniform(0, MAX_LATENESS), operations=self._random.choice(_LATE_OPERATIONS)
            )

    def at_watch(self) -> Fault | None:
        """Draw the fate of one watch."""
        return self._draw(AT_WATCH)

    def clock_jump(self) -> float:
        """Draw whether a clock jumps now, and how far."""
        if self._draw((Fault.CLOCK_JUMP,)) is None:
            return 0.0
        with self._lock:
            return self._random.choice(_JUMPS) * self._random.choice((1, 1, -1))

    def _draw(self, faults: tuple[Fault, ...]) -> Fault | None:
        rates = [(fault, rate) for fault in faults if (rate := self._rates.get(fault, 0.0))]
        if not rates:
            return None
        with self._lock:
            drawn = self._random.random()
            for fault, rate in rates:
                if drawn < rate:
                    self.counts[fault] += 1
                    return fault
                drawn -= rate
            return None


class JumpingClock:
    """A client's clock: another one that jumps when its faults say so."""

    def __init__(self, clock: Callable[[], float], faults: Faults) -> None:
        self._clock = clock
        self._faults = faults
        self._offset = 0.0

    def __call__(self) -> float:
        self._offset += self._faults.clock_jump()
        return self._clock() + self._offset
