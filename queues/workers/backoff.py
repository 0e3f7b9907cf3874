"""How long an item rests before it is tried again."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential, capped, with jitter: first · factor^(attempts − 1) seconds, at most `most`, less a random part.

    `jitter` is the largest part that is taken off, so that items that failed together do not come back together.
    """

    first: float = 1.0
    factor: float = 2.0
    most: float = 600.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse numbers that make no back-off."""
        finite = all(math.isfinite(number) for number in (self.first, self.factor, self.most, self.jitter))
        if not finite or self.first < 0 or self.factor < 1 or self.most < 0 or not 0 <= self.jitter <= 1:
            raise ValueError("A back-off has first ≥ 0, factor ≥ 1, most ≥ 0 and jitter from 0 to 1.")

    def delay(self, attempts: int, *, dice: Callable[[], float] = random.random) -> timedelta:
        """Return how long an item rests that was tried so often."""
        try:
            whole = min(self.most, self.first * self.factor ** (max(attempts, 1) - 1))
        except OverflowError:
            whole = self.most
        return timedelta(seconds=whole * (1 - self.jitter * dice()))
