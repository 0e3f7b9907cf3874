"""A bulk move, seen in a browser from its beginning to its undo, through a cancel, kills and a restart of the server.

A second page has the overview open all the while and notes the sum of both queues' depths after every live frame: it
never changes, as every frame is a consistent snapshot in which each item is in exactly one of the two.
"""

import json
import re
import time
from collections import Counter
from typing import Any

from playwright.sync_api import Locator, Page, expect

from queues import Queue, Store
from tests.all_items import all_items
from tests.browser.conftest import PATIENCE, Site, wait_live

#: Milliseconds; reached only when something hangs.
_LONG = 600_000


class Sums:
    """The sum of the depths of some queues after each live frame that a page got."""

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
        #: What was seen when, for a report.
        self.told: list[str] = []

    def run(self, *, rate: str = "", more: bool = True) -> None:
        """Do all of it; whatever is lost or doubled, or a sum that changes, fails.

        `more` lets each part come far before the next, restarts the server in an orderly way too, and kills it while
        it undoes.
        """
        fifth = self._items // 5 if more else 0
        jobs, review = self._queues
        for first in range(0, self._items, 1_000):
            jobs.push_many([(b"%d" % n, n % 9) for n in range(first, min(first + 1_000, self._items))])
        before = listed(jobs)
        self._watcher.goto("/")
        wait_live(self._watcher)
        began = time.monotonic()
        self._begin(rate)
        self._until_some_more(fifth)
        moved = self._cancel()
        self._press("Let it go on")
        self._until_some_more(max(moved, 2 * fifth))
        self._restart("killed", self._site.kill)
        if more:
            self._until_some_more(3 * fifth)
            self._restart("restarted", self._site.stop)
        expect(self._status).to_have_text("done", timeout=_LONG)
        took = time.monotonic() - began
        self._tell(f"done after {took:.1f} s, cancel, kill and restart included")
        assert (jobs.depth(), review.depth()) == (0, self._items)
        assert [value for _, _, value in listed(review)] == [value for _, _, value in before]
        began = time.monotonic()
        self._press("Undo all of it")
        expect(self._page.locator("h1")).to_have_text(re.compile("^Undo in"))
        if more:
            self._until_some_more(2 * fifth)
            self._restart("killed while undoing", self._site.kill)
        expect(self._status).to_have_text("done", timeout=_LONG)
        self._tell(f"undone after {time.monotonic() - began:.1f} s")
        assert listed(jobs) == before, "every item is where it was"
        assert review.depth() == 0
        assert self._store.doctor.examine().healthy, "the counters say something else than a full count"
        wait_live(self._watcher)
        assert set(self.sums.seen) == {self._items}, self.sums.seen
        self._tell(f"{sum(self.sums.seen.values())} live frames, the sum of both queues in each: {self._items:,}")

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
        self._tell(f"canceled after {moved:,} items")
        return moved

    def _restart(self, how: str, end: Any) -> None:
        """End the server in the middle of a job, look at both queues, and start it again: the job goes on by itself."""
        end()
        depths = [queue.depth() for queue in self._queues]
        assert sum(depths) == self._items, "an item is lost, or there twice"
        assert all(depths), f"the server was {how} too late to show anything"
        self._tell(f"{how} with {depths[1]:,} items moved")
        self._site.start()
        self._page.reload()

    def _tell(self, what: str) -> None:
        self.told.append(what)


def listed(queue: Queue) -> list[tuple[str, object, bytes]]:
    """Return id, priority and value of every ready item in order."""
    return [(item.id, item.priority, item.value) for item in all_items(queue.items)]


def grouped(number: int) -> str:
    """Return a pattern for a number as pages write it."""
    return r"\s".join(f"{number:,}".split(","))
