"""Backoff: the delay before the next attempt."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from queues.model.duration import BACKOFF, Duration, seconds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential backoff with jitter: first · factor^(attempts − 1) seconds, at most `most`.

    `jitter` is the largest part that is taken off at random, so that items that failed together do not return together.
    """

    first: Duration = 1.0
    factor: float = 2.0
    most: Duration = 600.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse numbers that make no backoff."""
        for name in ("first", "most"):
            object.__setattr__(self, name, seconds_of(getattr(self, name), BACKOFF))  # it is frozen
        if not (math.isfinite(self.factor) and self.factor >= 1 and 0 <= self.jitter <= 1):
            raise ValueError("A back-off has factor ≥ 1 and jitter from 0 to 1.")

    def delay(self, attempts: int, *, dice: Callable[[], float] = random.random) -> timedelta:
        """Return the delay of an item after this number of attempts."""
        most = seconds_of(self.most, BACKOFF)
        try:
            whole = min(most, seconds_of(self.first, BACKOFF) * self.factor ** (max(attempts, 1) - 1))
        except OverflowError:
            whole = most
        return timedelta(seconds=whole * (1 - self.jitter * dice()))
