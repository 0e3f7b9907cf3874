"""Targets of a queue: the limits beyond which it needs attention."""

from msgspec import Struct


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


DEFAULTS = Targets()
