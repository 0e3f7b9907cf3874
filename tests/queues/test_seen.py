"""What a process has read of queues lately: the newest, whoever comes last with it."""

from __future__ import annotations

from queues import open_store
from queues.seen import Seen


def test_an_older_reading_that_comes_late_replaces_nothing() -> None:
    with open_store("memory:") as store:
        jobs = store.create_queue("jobs")
        old = store.snapshot([jobs.id])
        jobs.push(b"x", priority=1)
        new = store.snapshot([jobs.id])
        seen = Seen()
        seen.put(new.queues)
        seen.put(old.queues)
        assert seen.get(jobs.id) is new.queues[jobs.id]
        assert list(seen.take_changed()) == []


def test_a_newer_reading_replaces_an_older_one_and_tells_of_the_change() -> None:
    with open_store("memory:") as store:
        jobs = store.create_queue("jobs")
        old = store.snapshot([jobs.id])
        jobs.push(b"x", priority=1)
        new = store.snapshot([jobs.id])
        seen = Seen()
        seen.put(old.queues)
        seen.put(new.queues)
        assert seen.get(jobs.id) is new.queues[jobs.id]
        assert list(seen.take_changed()) == [jobs.id]
