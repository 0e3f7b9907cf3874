"""The points at which a deterministic scheduler may let another client act."""

from collections.abc import Callable
from enum import Enum


class Point(Enum):
    """A moment at which another client may act, or at which a client may die."""

    BEGIN = "before the read version is taken"
    READ = "before a read"
    COMMIT = "before the commit"
    ANSWER = "after the commit, before its answer"
    WATCH = "while watching"
    WAIT = "while another thread of the process serves"


Schedule = Callable[[Point], None]


def unscheduled(point: Point) -> None:
    """Let threads interleave as they like."""
