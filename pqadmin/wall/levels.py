"""The order of tiles on a wall: the worst first, as the overview has it."""

from pqadmin.live.board.rows import Row


def worst_first(row: Row) -> tuple[int, bool, int, str]:
    """Sort by the overview's rank: level, reason, coarse depth. Then what is well by depth, empty last, and by name."""
    return row.rank, row.mark == "empty", -row.load, row.status.name


def deepest_first(row: Row) -> tuple[int, str]:
    """Sort by depth; what was not counted yet comes last."""
    return -(-1 if row.ready is None else row.ready), row.status.name
