"""Delayed, leased and dead items, as the overview, a queue's page and an item's page show them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from queues import Queue, Store
from tests.dashboard.conftest import Desk

HOUR = timedelta(hours=1)


@pytest.fixture
def jobs(store: Store) -> Queue:
    """3 delayed, 2 leased, 1 dead, 4 ready."""
    jobs = store.create_queue("jobs")
    jobs.configure(max_attempts=1)
    jobs.push(b"hopeless", priority=-9)
    (lease,) = jobs.lease()
    jobs.release(lease, reason="no such customer")
    jobs.push_many([(b"ready-%d" % n, n) for n in range(4)])
    jobs.push_many([(b"held-%d" % n, -n - 1) for n in range(2)])
    jobs.lease(2, seconds=3600, worker="w1")
    jobs.push_many([(b"later-%d" % n, n, (n + 1) * HOUR) for n in range(3)])
    return jobs


def test_the_overview_shows_every_state(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/")
    row = page.rows["jobs"]
    assert row["ready"] == "4"
    assert "3" in row["delayed"]
    assert "2" in row["leased"]
    assert "1" in row["dead"]
    assert "3 not due yet" in page
    for query, found in (("delayed=3", True), ("leased>2", False), ("dead>0", True)):
        assert operator.open(f"/?q={query}").order == (["jobs"] if found else [])


def test_a_queues_page_shows_every_state(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/")
    assert "delayed 3" in page
    assert "leased 2" in page
    assert "1 dead" in page
    assert page.title == "(4) jobs · pqadmin"


@pytest.mark.parametrize("state", ["delayed", "leased", "dead"])
def test_an_items_page_shows_its_state(operator: Desk, jobs: Queue, state: str) -> None:
    item = getattr(jobs, state)().items[0]
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert page.status == 200
    assert f"State {state}" in page
    assert item.value.decode() in page
