"""Two processes record one after the other: what the first one did not write is a gap, in queues and in sums."""

from pathlib import Path

import pytest

from queues import open_store
from queues.history import ALL_QUEUES
from tests.conftest import Clock


@pytest.mark.parametrize("outage", [30, 8_000])
def test_what_a_killed_process_saw_and_did_not_write_is_a_gap_for_the_next(
    tmp_path: Path, clock: Clock, outage: int
) -> None:
    url, began = f"lmdb:{tmp_path / 'store'}", int(clock.now)
    with open_store(url, clock=clock) as one, open_store(url, clock=clock) as two:
        jobs = one.create_queue("jobs")
        jobs.push_many([(b"x", 1)] * 10)
        killed = one.recorder()
        killed.look()
        killed.flush()
        clock.advance(1)
        jobs.pop_many(5)
        killed.look()  # it sees this, and is killed before it writes
        clock.advance(outage - 1)
        two.queue("jobs").push_many([(b"x", 1)] * 900)
        successor = two.recorder()
        successor.look()
        successor.flush()
        clock.advance(1)
        jobs.pop_min()
        successor.look()
        successor.flush()
        for store in (one, two):
            for queue_id in (jobs.id, ALL_QUEUES):
                points = store.history.of(queue_id, "s", since=began + 1, until=began + 9_000).points
                assert [(point.at - began, point.ready, point.gap) for point in points] == [
                    (outage, 905, True),
                    (outage + 1, 904, False),
                ]
