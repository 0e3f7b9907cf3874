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


def test_only_the_latest_changes_are_remembered() -> None:
    seen = StatusCache()
    with open_store("memory:") as store:
        queues = store.transact(lambda tr: [store.create_queue(f"q{number}", tr=tr) for number in range(1_200)])
        ids = [queue.id for queue in queues]
        parts = [ids[first : first + 400] for first in range(0, 1_200, 400)]
        before = [store.snapshot(part).queues for part in parts]
        for known in before:
            seen.put(known)
        store.transact(lambda tr: [queue.push(b"x", priority=1, tr=tr) for queue in queues])
        for part in parts:
            seen.put(store.snapshot(part).queues)
    taken = list(seen.take_changed())
    assert (len(taken), set(taken)) == (1_000, set(ids[200:]))
