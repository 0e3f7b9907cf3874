"""Two processes record one after the other: what the first one did not write is a gap, in queues and in sums."""

from itertools import pairwise
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


def test_a_queue_that_keeps_up_has_even_rates_across_a_takeover(tmp_path: Path, clock: Clock) -> None:
    clock.advance(60 - clock.now % 60)  # a point is due now
    url, began = f"lmdb:{tmp_path / 'store'}", int(clock.now)
    with open_store(url, clock=clock) as store:
        jobs = store.create_queue("jobs")

        def record(seconds: int) -> None:
            recorder = store.recorder(count=clock)
            for _ in range(seconds // 2):
                recorder.look()
                jobs.push_many([(b"x", 1)] * 2)
                jobs.pop_many(2)
                clock.advance(2)

        record(123)  # killed soon after a point was due, with the last seconds not written
        clock.advance(30)
        jobs.push_many([(b"x", 1)] * 30)
        jobs.pop_many(30)
        record(70)
        points = store.history.of(jobs.id, "m", since=began, until=int(clock.now)).points
    rates = [(b.arrived - a.arrived) / (b.at - a.at) for a, b in pairwise(points)]
    assert len(rates) >= 3
    assert [round(rate, 1) for rate in rates] == [1.0] * len(rates), points
