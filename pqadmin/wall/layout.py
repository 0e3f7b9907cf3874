"""The number of tiles on a screen, and their rows. Pure arithmetic.

What can be read from afar is a share of the screen, not a number of pixels: a 4K screen of the same size holds as
many tiles as a 720p one. So the density alone says how many, and the server can lay them out without knowing the
screen. Rows are filled to their ends; the upper rows, for the worst queues, have fewer and larger tiles.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The most rows and tiles a row, for a screen that is wider than high."""

    rows: int
    columns: int

    def capacity(self, *, stress: bool) -> int:
        """Return how many tiles fit. Under stress the first row has half as many, and larger ones."""
        return (self.rows - stress) * self.columns + (self.columns // 2 if stress else 0)


GRIDS = {
    "far": Grid(rows=3, columns=4),
    "middle": Grid(rows=4, columns=6),
    "near": Grid(rows=5, columns=8),
}
#: What a tile's width should be of its height, in both ways to hang a screen, times the screen's own proportions.
_WIDE, _HIGH = 1.3, 0.36


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Tiles in each row, from above, for a wide screen and for a high one."""

    wide: tuple[int, ...]
    high: tuple[int, ...]
    #: The first row is higher, because a queue in it needs attention.
    stress: bool


def lay_out(tiles: int, *, density: str, stress: bool) -> Layout:
    """Put tiles into rows; there are at most as many as the grid's capacity."""
    grid = GRIDS[density]
    stress = stress and tiles > 1
    return Layout(
        wide=_rows(tiles, shape=_WIDE, most=grid.rows, columns=grid.columns, stress=stress),
        high=_rows(tiles, shape=_HIGH, most=grid.columns * 3 // 2, columns=grid.rows - 1, stress=stress),
        stress=stress,
    )


def _rows(tiles: int, *, shape: float, most: int, columns: int, stress: bool) -> tuple[int, ...]:
    if not tiles:
        return ()
    room = tiles * 1.25 + 1 if stress else tiles
    count = max(1, min(most, tiles, round(math.sqrt(room / shape))))
    while count < tiles:
        spread = _spread(tiles, count, stress=stress)
        if max(spread) <= columns:
            return spread
        count += 1
    return _spread(tiles, count, stress=stress)


def _spread(tiles: int, rows: int, *, stress: bool) -> tuple[int, ...]:
    if stress and rows > 1:
        first = max(1, tiles // (2 * rows - 1))
        return (first, *_spread(tiles - first, rows - 1, stress=False))
    base, more = divmod(tiles, rows)
    return (base,) * (rows - more) + (base + 1,) * more
