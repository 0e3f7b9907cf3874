"""Targets of a queue: the limits beyond which it needs attention, and where each comes from.

A limit is taken from the first place that sets it: the queue itself, the patterns that match its name, the most
specific first, the store's defaults, the defaults of this release. A pattern is the more specific the more literal
characters it has; among equals the first by text counts. Each limit is inherited by itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

from msgspec import Struct

from queues.errors import Words
from queues.health.levels import Code
from queues.model.config import Config
from queues.model.limits import LIMIT_NAMES, TARGET, UNSET, Limits
from queues.model.name_patterns import pattern, specificity

#: Names of queues with targets that are kept resolved.
_KEPT = 20_000


class Targets(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of one queue; 0 switches a limit off.

    Beyond a limit a queue is in warning; beyond twice the depth, age or wait it is critical, unless it drains.
    """

    #: Ready items.
    depth: int = 0
    #: Seconds that the oldest claimable item may wait.
    oldest: float = 900.0
    #: Seconds that 95 of 100 taken items may have waited.
    wait: float = 0.0
    #: Dead items.
    dead: int = 1
    #: Seconds for which items may be claimable without a consumer that takes.
    no_consumer: float = 60.0
    #: Seconds for which a queue may grow.
    growing: float = 120.0
    #: Some that count for the queue cannot be read.
    unreadable: bool = False


DEFAULTS = Targets()
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


class Origin(StrEnum):
    """Where a limit comes from."""

    QUEUE = "queue"
    PATTERN = "pattern"
    DEFAULT = "default"


class Target(Struct, frozen=True):
    """One limit of one queue, and where it comes from."""

    limit: float
    origin: Origin
    #: The pattern that sets it, if one does.
    pattern: str = ""


def resolve(
    name: str, own: Limits, patterns: Iterable[tuple[str, Limits]], defaults: Limits = UNSET
) -> dict[str, Target]:
    """Return the limits of the queue of this name, in any order of the patterns."""
    matching = sorted(
        (one for one in patterns if pattern((one[0],)).fullmatch(name)), key=lambda one: specificity(one[0])
    )
    found = {}
    for limit in LIMIT_NAMES:
        built_in = Target(getattr(DEFAULTS, limit), Origin.DEFAULT)
        places = (
            (own, Origin.QUEUE, ""),
            *((limits, Origin.PATTERN, glob) for glob, limits in matching),
            (defaults, Origin.DEFAULT, ""),
        )
        set_there = (
            Target(value, origin, glob)
            for limits, origin, glob in places
            if (value := getattr(limits, limit)) is not None
        )
        found[limit] = next(set_there, built_in)
    return found


class TargetRules:
    """Patterns and defaults of one store, as read at one version: what tells the targets of any queue."""

    def __init__(
        self,
        patterns: Mapping[str, Limits] | None = None,
        defaults: Limits = UNSET,
        *,
        unreadable: Sequence[tuple[str, Words]] = (),
    ) -> None:
        #: Limits by pattern, the most specific pattern first.
        self.patterns: Mapping[str, Limits] = dict(
            sorted((patterns or {}).items(), key=lambda one: specificity(one[0]))
        )
        self.defaults = defaults
        #: Patterns with unreadable records, and why; "" stands for the defaults. They set nothing.
        self.unreadable = tuple(unreadable)
        #: The targets of a queue by its name and its own limits; quick.
        self.targets = lru_cache(maxsize=_KEPT)(self._targets)

    def resolve(self, name: str, own: Limits = UNSET) -> dict[str, Target]:
        """Return each limit of a queue with its origin, by the name of the limit."""
        return resolve(name, own, self.patterns.items(), self.defaults)

    def _targets(self, name: str, own: Limits = UNSET) -> Targets:
        limits: dict[str, Any] = {limit: target.limit for limit, target in self.resolve(name, own).items()}
        inherits = len(own.given) < len(LIMIT_NAMES)
        unreadable = inherits and any(not glob or pattern((glob,)).fullmatch(name) for glob, _ in self.unreadable)
        return Targets(**limits, unreadable=unreadable)


def limits_of(config: Config) -> Limits:
    """Return the limits that a queue sets itself."""
    own = {limit: value for limit in LIMIT_NAMES if (value := getattr(config, TARGET + limit)) is not None}
    return Limits(**own) if own else UNSET
