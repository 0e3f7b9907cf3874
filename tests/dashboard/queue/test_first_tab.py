"""The list that a queue's page shows first: the state in trouble, or one that has items."""

import re
from datetime import timedelta

import pytest

from queues import Queue, Store
from tests.dashboard.conftest import Desk


def shown(desk: Desk, path: str) -> str:
    """Return the state whose tab is chosen."""
    found = re.search(r'id="tab-(\w+)"[^>]*aria-current="page"', desk.open(path).html)
    assert found
    return found[1]


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "dead"])
def test_the_state_that_has_items_is_first(operator: Desk, jobs: Queue, state: str) -> None:
    jobs.configure(max_attempts=1)
    jobs.push(b"x", priority=1, delay=timedelta(hours=1) if state == "delayed" else None)
    if state in ("leased", "dead"):
        lease = jobs.lease()
        if state == "dead":
            jobs.release(lease, reason="no")
    assert shown(operator, "/queues/jobs/") == state
    for asks, meant in (("state=trash", "trash"), ("q=x", "ready"), ("end=max", "ready"), ("low=1", "ready")):
        assert shown(operator, f"/queues/jobs/?{asks}") == meant


def test_an_empty_queue_shows_what_is_ready(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    assert shown(operator, "/queues/jobs/") == "ready"


def test_dead_items_that_are_the_reason_come_before_ready_ones(operator: Desk, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"x", 1)] * 3)
    lease = jobs.lease()
    jobs.release(lease, reason="no")
    page = operator.open("/queues/jobs/")
    assert re.findall(r'<li data-reason="(\w+)" data-level="\w+">', page.html)[:1] == ["dead"]
    assert shown(operator, "/queues/jobs/") == "dead"
