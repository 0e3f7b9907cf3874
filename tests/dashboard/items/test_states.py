"""Delayed, leased and dead items, as the overview, a queue's page and an item's page show them."""

import re
from datetime import timedelta

import pytest

from queues import Queue, Store
from queues.items.counters import CounterDelta
from queues.kv.port import Transaction
from queues.serving.leadership import Holding
from tests.dashboard.conftest import Desk

HOUR = timedelta(hours=1)


@pytest.fixture
def jobs(store: Store) -> Queue:
    """3 delayed, 2 leased, 1 dead, 4 ready."""
    jobs = store.create_queue("jobs")
    jobs.configure(max_attempts=1)
    jobs.push(b"hopeless", priority=-9)
    lease = jobs.lease()
    jobs.release(lease, reason="no such customer")
    jobs.push_many([(b"ready-%d" % n, n) for n in range(4)])
    jobs.push_many([(b"held-%d" % n, -n - 1) for n in range(2)])
    jobs.lease_many(2, seconds=3600, worker="w1")
    jobs.push_many([(b"later-%d" % n, n, (n + 1) * HOUR) for n in range(3)])
    return jobs


def test_the_overview_shows_every_state(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/")
    row = page.rows["jobs"]
    assert row["ready"] == "4"
    assert "3" in row["delayed"]
    assert "2" in row["leased"]
    assert "1" in row["dead"]
    # An hour from when it was pushed, by the second: 1:00:00, 59:59 …
    assert re.search(r"delayed 3 next due in (1:00:00|5\d:\d\d)", page.text)
    assert re.search(r"leased · dead 2 · 1 next expiry in (1:00:00|5\d:\d\d)", page.text)
    assert re.fullmatch(r"in (1:00:00|5\d:\d\d)", row["due"])
    for query, found in (("delayed=3", True), ("leased>2", False), ("dead>0", True)):
        assert operator.open(f"/?q={query}").order == (["jobs"] if found else [])


def test_a_queues_page_shows_every_state(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/")
    assert "delayed 3" in page
    assert re.search(r"delayed 3 next due in (1:00:00|5\d:\d\d)", page.text)
    assert re.search(r"leased · dead 2 · 1 next expiry in (1:00:00|5\d:\d\d)", page.text)
    assert page.title == "warning (4) · jobs · pqadmin"


def test_where_nothing_falls_due_there_is_nothing_to_count_down_to(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    for address in ("/", "/queues/jobs/"):
        page = operator.open(address)
        # The style shows the second words only behind hidden ones.
        for field, otherwise in (("due", "not due yet"), ("expiry", "no lease is held")):
            hidden = rf'<span data-(total|field)="{field}" hidden>[^<]*</span>'
            assert re.search(rf'{hidden}<span class="otherwise">{otherwise}</span>', page.html), (address, field)


@pytest.mark.parametrize("state", ["delayed", "leased", "dead"])
def test_an_items_page_shows_its_state(operator: Desk, jobs: Queue, state: str) -> None:
    item = getattr(jobs, state)().items[0]
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert page.status == 200
    assert f"State {state}" in page
    assert item.value.decode() in page


def test_it_shows_that_a_queue_is_staging(operator: Desk, jobs: Queue, store: Store) -> None:
    assert "one process pops for all" not in operator.open("/").text
    holding = Holding(holder="another process", expires_ms=jobs.opened.context.clock.now_ms() + 20_000)

    def hold(tr: Transaction) -> None:
        tr.set(jobs.opened.keys.staging, holding.encode())
        CounterDelta(jobs.opened.keys, wake=False).apply(tr)

    store.transact(hold)
    assert "staging: one process pops for all" in operator.open("/").text
    assert "staging: one process pops for all" in operator.open("/queues/jobs/").text
