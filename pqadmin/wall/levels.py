"""The order of tiles on a wall: by level, the worst first."""

from datetime import datetime

from pqadmin.live.board.rows import Row

#: What comes after queues of the same level: a pause that a person chose, what other programs do, what is empty.
_LATER = ("", "unreadable", "paused", "attached", "empty")


def worst_first(row: Row, now: datetime) -> tuple[int, int, int, int, str]:
    """Sort by level. Among equals coarsely by depth and age, then by name, so that tiles seldom change places."""
    return -row.verdict.level, _LATER.index(row.mark), -row.load, -_age(row, now), row.status.name


def deepest_first(row: Row) -> tuple[int, str]:
    """Sort by depth; what was not counted yet comes last."""
    return -(-1 if row.ready is None else row.ready), row.status.name


def _age(row: Row, now: datetime) -> int:
    """Return for how long a queue has been in trouble, in powers of two of seconds."""
    if not row.troubled:
        return 0
    since = min((reason.since for reason in row.verdict.reasons), default=now.timestamp())
    return max(0, int(now.timestamp() - since)).bit_length()
