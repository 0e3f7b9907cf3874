"""Jobs: what a handler is given, and how it says that it was stopped half way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from queues.item import Item


class Stopped(Exception):
    """Raised by a handler that ends early because `job.stopping()` is true.

    A stop is not a failure: the item is back at its place at once, and the lease counts as no attempt. Raised while the
    pool goes on, it is an error as any other: the pool would lease the item again at once, for ever.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a handler is given."""

    #: The queue's name when the item was leased.
    queue: str
    #: The item; `item.attempts` says how often it was leased, this time included.
    item: Item
    #: Whether the pool is stopping: a long handler may then end early by raising `Stopped`.
    stopping: Callable[[], bool]
