"""Bands are shared by all queues that have the like, and nevertheless each queue's own kind of number."""

from queues.model.bands import bands


def labels(*edges: int | float | str) -> list[str]:
    return [band.label for band in bands(edges, [0] * (len(edges) + 1))]


def test_equal_edges_of_other_kinds_keep_apart() -> None:
    for _ in range(2):
        assert labels(1, 2) == ["< 1", "1", "≥ 2"]
        assert labels(1.0, 2.0) == ["< 1.0", "1.0 … < 2.0", "≥ 2.0"]
        assert labels(0.0, 2.0) == ["< 0.0", "0.0 … < 2.0", "≥ 2.0"]
        assert labels(-0.0, 2.0) == ["< -0.0", "-0.0 … < 2.0", "≥ 2.0"]


def test_bands_have_the_depths_of_now() -> None:
    for depths in ([1, 2], [2, 1], [1, 2]):
        assert [band.depth for band in bands((5,), depths)] == depths
