"""Processes are killed while one of them executes pops for all: a quick `tests/soak/staging_kills.py`."""

import pytest

from tests import cluster
from tests.soak import staging_kills


@pytest.mark.slow
def test_nothing_is_lost_or_taken_twice_and_no_process_is_stuck() -> None:
    found = cluster.find()
    if not found.url:
        pytest.skip(found.why_not)
    told = staging_kills.run(cluster.fresh(), seconds=8.0, processes=3, threads=3, seed=4)
    assert told["twice"] == 0, told
    assert not told["stuck"], told
    assert told["in the trash"] == told["unclaimed"] > 0, told
    assert told["well"], told
