"""What a process has read of queues lately: the newest, in any order of arrival."""

import pytest

from queues import open_store
from queues.status.status_cache import StatusCache


@pytest.mark.parametrize("late", [False, True])
def test_the_newer_of_two_readings_is_kept_in_whatever_order_they_come(late: bool) -> None:
    with open_store("memory:") as store:
        jobs = store.create_queue("jobs")
        old = store.snapshot([jobs.id])
        jobs.push(b"x", priority=1)
        new = store.snapshot([jobs.id])
        seen = StatusCache()
        for reading in (new, old) if late else (old, new):
            seen.put(reading.queues)
        assert seen.get(jobs.id) is new.queues[jobs.id]
        assert list(seen.take_changed()) == ([] if late else [jobs.id])
