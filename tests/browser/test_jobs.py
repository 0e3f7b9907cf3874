"""Jobs in a browser: a bulk move through cancel, kill and restart; progress that is live, and silent afterwards."""

import json
import os
import re
from collections import Counter
from typing import Any

from playwright.sync_api import Locator, Page, Route, expect

from queues import Queue, Store
from tests.all_items import all_items
from tests.browser.axe import findings_by_day_and_night
from tests.browser.conftest import LIMITS, PATIENCE, NewPage, Site, Strict, open_live, until, wait_live

#: Items that are moved; from `MANY` on each part comes far before the next.
ITEMS, MANY = int(os.environ.get("PQ_MOVED_ITEMS", "700")), 10_000
#: What a browser says when the server is away, on purpose.
AWAY = [r"WebSocket connection to .* failed", r"Failed to load resource: net::ERR_", r"ERR_CONNECTION"]
#: Milliseconds; reached only when something hangs.
_LONG = 600_000


class Sums:
    """The sum of the depths of two queues after each live frame that a page got.

    It never changes: a frame is a consistent snapshot, in which each item is in exactly one of the two.
    """

    def __init__(self, page: Page, *names: str) -> None:
        self.seen: Counter[int] = Counter()
        self._depths: dict[str, int] = {}
        self._names = names
        page.on("websocket", lambda socket: socket.on("framereceived", self._frame))

    def _frame(self, payload: Any) -> None:
        message = json.loads(payload)
        if message["t"] != "frame":
            return
        self._depths |= {row["name"]: row["ready"] for row in message["rows"] if row["name"] in self._names}
        if len(self._depths) == len(self._names):
            self.seen[sum(self._depths.values())] += 1


class BulkMove:
    """Moves all items of `jobs` to `review` and back, in a browser."""

    def __init__(self, site: Site, store: Store, page: Page, watcher: Page, items: int) -> None:
        self._site, self._store, self._page, self._watcher = site, store, page, watcher
        self._items = items
        self._queues = [store.create_queue(name) for name in ("jobs", "review")]
        self.sums = Sums(watcher, "jobs", "review")

    def run(self, *, rate: str, more: bool) -> None:
        """Do all of it; whatever is lost or doubled, or a sum that changes, fails.

        `more` lets each part come far before the next, restarts the server in an orderly way too, and kills it while
        it undoes.
        """
        fifth = self._items // 5 if more else 0
        jobs, review = self._queues
        for first in range(0, self._items, 1_000):
            jobs.push_many([(b"%d" % n, n % 9) for n in range(first, min(first + 1_000, self._items))])
        before = listed(jobs)
        open_live(self._watcher, "/")
        self._begin(rate)
        self._until_some_more(fifth)
        moved = self._cancel()
        self._press("Continue")
        self._until_some_more(max(moved, 2 * fifth))
        self._restart("killed", self._site.kill)
        if more:
            self._until_some_more(3 * fifth)
            self._restart("restarted", self._site.stop)
        expect(self._status).to_have_text("done", timeout=_LONG)
        assert (jobs.depth(), review.depth()) == (0, self._items)
        assert [value for _, _, value in listed(review)] == [value for _, _, value in before]
        self._press("Undo all of it")
        expect(self._page.locator("h1")).to_have_text(re.compile("^Undo in"))
        if more:
            self._until_some_more(2 * fifth)
            self._restart("killed while undoing", self._site.kill)
        expect(self._status).to_have_text("done", timeout=_LONG)
        assert listed(jobs) == before, "every item is where it was"
        assert review.depth() == 0
        assert self._store.doctor.examine().healthy, "the counters say something else than a full count"
        wait_live(self._watcher)
        assert set(self.sums.seen) == {self._items}, self.sums.seen

    @property
    def _status(self) -> Locator:
        return self._page.locator(".job-head .word")

    def _begin(self, rate: str) -> None:
        page = self._page
        page.goto("/queues/jobs/bulk/?act=move")
        expect(page.locator(".reckoning .figure dd")).to_have_text(re.compile(grouped(self._items)))
        page.get_by_label("To the queue").fill("review")
        page.get_by_label("Items a second").fill(rate)
        page.get_by_label("Why").fill("the queue of the wrong region")
        page.get_by_role("button", name=re.compile("^Move")).click()
        expect(self._status).to_have_text("running", timeout=PATIENCE * 1000)

    def _until_some_more(self, than: int) -> None:
        """Wait until the page shows that more were changed; it does so without being loaded again."""
        self._page.wait_for_function(
            """than => {
                const shown = document.querySelector(".job-figures div:nth-child(2) dd").textContent;
                return Number(shown.replace(/[^0-9]/g, "")) > than;
            }""",
            arg=than,
            timeout=_LONG,
        )

    def _changed(self) -> int:
        return int(re.sub(r"\D", "", self._page.locator(".job-figures div:nth-child(2) dd").inner_text()))

    def _press(self, label: str) -> None:
        with self._page.expect_navigation():
            self._page.get_by_role("button", name=label).click()

    def _cancel(self) -> int:
        self._press("Cancel")
        expect(self._status).to_have_text("canceled")
        moved = self._changed()
        jobs, review = self._queues
        assert 0 < moved < self._items, "the cancel came too late to show anything"
        assert (jobs.depth(), review.depth()) == (self._items - moved, moved)
        return moved

    def _restart(self, how: str, end: Any) -> None:
        """End the server in the middle of a job, look at both queues, and start it again: the job goes on by itself."""
        end()
        depths = [queue.depth() for queue in self._queues]
        assert sum(depths) == self._items, "an item is lost, or there twice"
        assert all(depths), f"the server was {how} too late to show anything"
        self._site.start()
        self._page.reload()


def listed(queue: Queue) -> list[tuple[str, object, bytes]]:
    """Return id, priority and value of every ready item in order."""
    return [(item.id, item.priority, item.value) for item in all_items(queue.items)]


def grouped(number: int) -> str:
    """Return a pattern for a number as pages write it."""
    return r"\s".join(f"{number:,}".split(","))


def test_a_bulk_move_survives_cancel_kill_and_restart_and_is_undone(
    new_page: NewPage, store: Store, site: Site, strict: Strict
) -> None:
    strict.allowed += AWAY
    move = BulkMove(site, store, new_page(), new_page(), ITEMS)
    move.run(rate="100" if ITEMS < MANY else "", more=ITEMS >= MANY)


def test_pages_of_jobs_are_accessible_and_fit_a_phone(new_page: NewPage, store: Store) -> None:
    page = new_page(viewport={"width": 360, "height": 800})
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
        if faults := findings_by_day_and_night(page):
            found[path] = faults
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    ann.cancel_bulk(slow.id)
    page.goto(f"/jobs/{slow.id}/")
    if faults := findings_by_day_and_night(page):
        found["canceled"] = faults
    assert found == {}


def test_progress_goes_on_after_an_answer_that_never_came(page: Page, store: Store) -> None:
    page.add_init_script(LIMITS)
    page.clock.install()
    store.create_queue("jobs").push_many([(b"x", n) for n in range(400)])
    ann = store.actions("ann")
    job = ann.begin_bulk("delete", "jobs", rate=4.0)
    page.goto(f"/jobs/{job.id}/")
    expect(page.locator(".job-head .word")).to_have_text("running")
    waiting: list[Route] = []
    page.route("**/jobs/**", lambda route: route.continue_() if waiting else waiting.append(route))
    until(page, lambda: waiting)
    ann.cancel_bulk(job.id)
    page.clock.run_for(66_000)
    expect(page.locator(".job-head .word")).to_have_text("canceled", timeout=20_000)


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
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.clock.run_for(20_000)
    page.evaluate("fetch('/livez')")  # what was asked for before it is known by then
    until(page, lambda: requests)
    assert [url for url in requests if not url.endswith("/livez")] == []
