"""Jobs in a browser: a bulk move through cancel, kill and restart; progress that is live, and silent afterwards."""

import pytest
from playwright.sync_api import Page, expect

from queues import Store
from tests.browser.axe import findings
from tests.browser.bulk_move import BulkMove
from tests.browser.conftest import NewPage, Site, Strict, until

#: What a browser says when the server is away, on purpose.
AWAY = [r"WebSocket connection to .* failed", r"Failed to load resource: net::ERR_", r"ERR_CONNECTION"]


def test_a_bulk_move_survives_cancel_kill_and_restart_and_is_undone(
    new_page: NewPage, store: Store, site: Site, strict: Strict
) -> None:
    """The same with 100,000 items: python -m tests.soak.bulk_move."""
    strict.allowed += AWAY
    BulkMove(site, store, new_page(), new_page(), 1_000).run(rate="100", more=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_jobs_are_accessible_and_fit_a_phone(new_page: NewPage, store: Store, scheme: str) -> None:
    page = new_page(color_scheme=scheme, viewport={"width": 360, "height": 800})
    queue = store.create_queue("jobs")
    queue.push_many([(b"x" * 500 + b"<b>%d" % n, n) for n in range(400)])
    store.create_queue("r" * 190)
    ann = store.actions("ann")  # at an item a second it is done long after everything was looked at
    slow = ann.begin_bulk("move", "jobs", to="r" * 190, rate=1.0, reason="<script>")
    found = {}
    for path in (
        "/jobs/",
        f"/jobs/{slow.id}/",
        "/queues/jobs/bulk/?act=move&q=x&low=1",
        "/queues/jobs/bulk/?act=reprioritize",
    ):
        page.goto(path)
        if faults := findings(page):
            found[path] = faults
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    ann.cancel_bulk(slow.id)
    page.goto(f"/jobs/{slow.id}/")
    if faults := findings(page):
        found["canceled"] = faults
    assert found == {}


def test_progress_is_live_while_it_runs_and_silent_afterwards(page: Page, store: Store) -> None:
    page.clock.install()
    store.create_queue("jobs").push_many([(b"x", n) for n in range(400)])
    ann = store.actions("ann")
    job = ann.begin_bulk("delete", "jobs", rate=4.0)
    page.goto(f"/jobs/{job.id}/")
    word, figures = page.locator(".job-head .word"), page.locator(".job-figures div:nth-child(2) dd")
    expect(word).to_have_text("running")
    page.evaluate("window.mark = 'the same document'")
    cancel = page.get_by_role("button", name="Cancel")
    cancel.focus()
    before = figures.inner_text()
    expect(figures).not_to_have_text(before)
    expect(cancel).to_be_focused()
    ann.cancel_bulk(job.id)
    expect(word).to_have_text("canceled")
    assert page.evaluate("window.mark") == "the same document"
    expect(page.get_by_role("button", name="Let it go on")).to_be_visible()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.clock.run_for(20_000)
    page.evaluate("fetch('/livez')")  # what was asked for before it is known by then
    until(page, lambda: requests)
    assert [url for url in requests if not url.endswith("/livez")] == []
