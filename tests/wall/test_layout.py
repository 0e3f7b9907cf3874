"""Tiles fill their rows, never more than the screen holds, at every number of queues."""

import json
from pathlib import Path

import pytest

from pqadmin.wall.layout import GRIDS, lay_out
from pqadmin.wall.tiles import compact, places

VECTORS = json.loads((Path(__file__).parent / "compact_vectors.json").read_text("utf-8"))


@pytest.mark.parametrize("density", GRIDS)
@pytest.mark.parametrize("stress", [False, True])
def test_every_number_of_tiles_fills_rows_that_fit(density: str, stress: bool) -> None:
    grid = GRIDS[density]
    for tiles in range(1, grid.capacity(stress=stress) + 1):
        layout = lay_out(tiles, density=density, stress=stress)
        assert sum(layout.wide) == sum(layout.high) == tiles
        assert len(layout.wide) <= grid.rows
        assert max(layout.wide) <= grid.columns
        assert max(layout.high) <= 4, "a high screen has few columns"
        assert len(layout.high) <= 12
        assert list(layout.wide) == sorted(layout.wide), "the first rows have the larger tiles"
        assert len(list(places(layout))) == tiles


def test_a_screen_without_queues_has_no_rows() -> None:
    assert lay_out(0, density="far", stress=True).wide == ()


def test_trouble_gets_more_room() -> None:
    calm, alarmed = lay_out(8, density="far", stress=False), lay_out(8, density="far", stress=True)
    assert calm.wide == (4, 4)
    assert alarmed.wide[0] < calm.wide[0]
    assert [place.top_wide for place in places(alarmed)][: alarmed.wide[0] + 1] == [True] * alarmed.wide[0] + [False]
    assert not any(place.top_wide for place in places(calm))


@pytest.mark.parametrize(("number", "written"), VECTORS)
def test_depths_are_written_in_few_characters(number: str, written: str) -> None:
    assert compact(int(number)) == written
