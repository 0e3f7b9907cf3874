"""What the recorder keeps in memory: a bound for each queue, so for 10,000 that change all the time."""

import pytest

from benchmarks.history_memory import MOST_BYTES, measure


@pytest.mark.slow
def test_what_a_recorder_keeps_of_10_000_changing_queues_is_bounded() -> None:
    assert measure(4) * 10_000 < MOST_BYTES
