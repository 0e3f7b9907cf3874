"""A real Chromium with a logged-in page of a running site, for measurements that end on a screen."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from typing import Any

from benchmarks.harness.running_site import RunningSite

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def open_page(site: RunningSite, faults: list[str], *, role: str = "operator") -> Iterator[Any]:
    """Open a page of a person logged in; console errors and exceptions are added to `faults`."""
    from playwright.sync_api import sync_playwright  # needed here only

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("PQ_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    address = f"http://{site.host}:{site.port}"
    cookies: SimpleCookie = SimpleCookie(site.log_in(role=role))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        context = browser.new_context(base_url=address)
        context.add_cookies([{"name": name, "value": morsel.value, "url": address} for name, morsel in cookies.items()])
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        try:
            yield page
        finally:
            browser.close()


def clock_offset_ms(page: Any) -> tuple[float, float]:
    """Return how far the page's clock is ahead of this process's, and how exactly that is known, in ms."""
    best = (0.0, float("inf"))
    for _ in range(50):
        before = time.time()
        there = page.evaluate("performance.timeOrigin + performance.now()")
        after = time.time()
        unsure = (after - before) * 500
        if unsure < best[1]:
            best = (there - (before + after) * 500, unsure)
    return best
