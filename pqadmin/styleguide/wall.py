"""A wall with hostile and extreme data, for the styleguide."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pqadmin.live.board.rows import Row
from pqadmin.wall.layout import lay_out
from pqadmin.wall.levels import level_of, worst_first
from pqadmin.wall.models import Board
from pqadmin.wall.tiles import places, tile
from queues.errors import display_name


def sample_wall(rows: Sequence[Row], now: datetime) -> dict[str, Any]:
    """Return the styleguide's wall: as many of these rows as fit, the worst first, and a tile for the rest."""
    layout = lay_out(21, density="middle", stress=True)
    spots = list(places(layout))
    shown = sorted(rows, key=lambda row: worst_first(row, level_of(row), now))[:20]
    several = [shown[n % len(shown)] for n in range(20)]
    return {
        "wall_tiles": [tile(row, now, place) for row, place in zip(several, spots, strict=False)],
        "wall_layout": layout,
        "wall_place": spots[-1],
        "wall_rest": {"bad": 1, "trouble": 10**6},
        "wall_part": {"name": "n" * 80},
        "wall_counts": {"bad": 1, "trouble": 10**6},
        "wall_previews": [
            {"total": 10**6, "names": [display_name(row.status.name) for row in rows[:4]], "more": 10**6 - 4},
            {"total": 0},
            {"wrong": "[x: \u201c[\u201d stands for nothing here."},
        ],
        "themes": Board.Theme.choices,
    }
