"""Failures that a simulated store has on demand, replayable from a seed."""

from __future__ import annotations

import random
import threading
from collections import Counter
from enum import Enum
from typing import Protocol


class Fault(Enum):
    """What may go wrong with a commit: nothing is written, and the transaction may be tried again."""

    CONFLICT = "conflict"  # FoundationDB's 1020
    TOO_OLD = "too old"  # FoundationDB's 1007


class Faults(Protocol):
    """Decides the fate of commits."""

    def at_commit(self) -> Fault | None:
        """Return what goes wrong with the commit that is about to happen; None lets it pass."""


class SeededFaults:
    """Faults by chance: the same seed and the same order of commits give the same faults."""

    def __init__(self, seed: int, *, conflict: float = 0.0, too_old: float = 0.0) -> None:
        self.seed = seed
        self.counts: Counter[Fault] = Counter()
        self._random = random.Random(seed)  # noqa: S311 - replayable on purpose
        self._conflict = conflict
        self._too_old = too_old
        self._lock = threading.Lock()

    def at_commit(self) -> Fault | None:
        """Draw the fate of one commit."""
        with self._lock:
            drawn = self._random.random()
            fault = None
            if drawn < self._conflict:
                fault = Fault.CONFLICT
            elif drawn < self._conflict + self._too_old:
                fault = Fault.TOO_OLD
            if fault is not None:
                self.counts[fault] += 1
            return fault
