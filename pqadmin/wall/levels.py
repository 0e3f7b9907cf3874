"""The urgency of a queue on a wall. Codes, not texts; the words are the dashboard's."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from pqadmin.live.board.rows import Row


class Level(StrEnum):
    """What a tile's color and shape say, the worst first."""

    BAD = "bad"
    WARN = "warn"
    PAUSED = "paused"
    OK = "ok"
    #: Other programs write the items: their traffic is unknown.
    ATTACHED = "attached"
    EMPTY = "empty"

    @property
    def trouble(self) -> bool:
        """Return whether the queue needs attention."""
        return self in (Level.BAD, Level.WARN)

    @property
    def rank(self) -> int:
        """Return a number that is smaller for what is more urgent."""
        return _RANK[self]


_RANK = {Level.BAD: 0, Level.WARN: 1, Level.PAUSED: 2, Level.OK: 3, Level.ATTACHED: 3, Level.EMPTY: 4}
#: Reasons that stop work; every other one is a warning.
_STOPS = frozenset({"stalled", "unreadable"})
_OF_STATE = {"paused": Level.PAUSED, "attached": Level.ATTACHED, "empty": Level.EMPTY}


def level(state: str, problems: Collection[str]) -> Level:
    """Return the level of a queue by the codes of its state and problems."""
    reasons = {problem for problem in problems if problem and problem != "paused"}
    if reasons & _STOPS:
        return Level.BAD
    return Level.WARN if reasons else _OF_STATE.get(state, Level.OK)


def level_of(row: Row) -> Level:
    """Return the level of a row."""
    return level(row.state, row.problems)


def worst_first(row: Row, found: Level, now: datetime) -> tuple[int, int, str]:
    """Sort by urgency; among equals coarsely by age or depth, then by name, so that tiles seldom change places."""
    return found.rank, -_coarsely(row, found, now), row.status.name


def deepest_first(row: Row) -> tuple[int, str]:
    """Sort by depth; what was not counted yet comes last."""
    return -(-1 if row.ready is None else row.ready), row.status.name


def _coarsely(row: Row, found: Level, now: datetime) -> int:
    if found.trouble:
        since = row.quiet_since or row.status.oldest
        return 0 if since is None else max(0, int((now - since).total_seconds())).bit_length()
    return len(str(row.ready or 0))
