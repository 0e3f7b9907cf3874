"""The item page in a real browser: hostile values, exact numbers, what is hidden and revealed, narrow and dark."""

import gzip
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from fdb import tuple as fdb_tuple
from playwright.sync_api import Error, Page, expect

from queues import Queue, Store
from tests.browser.axe import findings, findings_by_day_and_night
from tests.browser.conftest import NewPage

SECRET = "hunter2-and-more"
VALUES: Mapping[str, bytes] = {
    "json": json.dumps(
        {"order": 9_007_199_254_740_993_123, "auth": {"password": SECRET}, "<script>": ["<img src=x onerror=alert(1)>"]}
    ).encode(),
    "msgpack": b"\x82\xa4user\xcf" + b"\xff" * 8 + b"\xa8password\xb0" + SECRET.encode(),
    "tuple": fdb_tuple.pack(("dispatch", 71, ("nested", b"\x00\xff"))),
    "gzip": gzip.compress(json.dumps([f"line {n}" for n in range(300)]).encode(), mtime=0),
    "bomb": gzip.compress(bytes(20_000_000), mtime=0),
    "large": ("a long line of text " * 5_000)[:90_000].encode(),
    "rtl": "שלום \u202e kcatta \u200f مرحبا \u0007".encode(),
    "binary": bytes(n * 7 % 256 for n in range(300)),
    "wide": b"x" * 5_000,
    "empty": b"",
}
#: What axe looks at: a tree with covers, a dump, a packed one, none; the rest are made of the same parts.
LOOKED_AT = ("json", "binary", "gzip", "empty")


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue with an item of each kind."""
    return store.create_queue("orders:eu")


def put(jobs: Queue, kind: str, **options: Any) -> str:
    """Push a value and return the address of its page."""
    item = jobs.push(VALUES[kind], priority=5, **options)
    return f"/queues/orders:eu/items/{item.id}/"


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


def test_every_kind_of_value_is_accessible_and_fits(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": 360, "height": 800})
    faults = {}
    for kind in VALUES:
        page.goto(put(jobs, kind))
        assert overflow(page) <= 0, kind
        if kind in LOOKED_AT and (found := findings_by_day_and_night(page)):
            faults[kind] = found
    assert faults == {}


def test_each_state_shows_what_matters_in_it(new_page: NewPage, jobs: Queue, store: Store) -> None:
    delayed = put(jobs, "json", delay=timedelta(hours=3))
    jobs.configure(max_attempts=1)
    put(jobs, "json")
    dead = jobs.lease(worker="render-3")
    jobs.release(dead, reason="no such frame <b>12</b>")
    put(jobs, "json")
    leased = jobs.lease(seconds=600, worker="render-7:4412")
    page = new_page(viewport={"width": 320, "height": 800})
    for address, words in (
        (delayed, [r"Due\s*in \d", "Promote…", "Reschedule…"]),
        (f"/queues/orders:eu/items/{dead.item.id}/", ["no such frame <b>12</b>", "Retry…"]),
        (f"/queues/orders:eu/items/{leased.item.id}/", ["render-7:4412", r"Ends\s*in \d", "Release…"]),
    ):
        page.goto(address)
        for word in words:
            expect(page.locator("main")).to_contain_text(re.compile(word) if "\\" in word else word)
        assert overflow(page) <= 0
    assert findings(page) == []


def test_large_values_come_when_they_are_asked_for(page: Page, jobs: Queue) -> None:
    page.goto(put(jobs, "large"))
    shown = "() => document.querySelector('pre.value')?.innerText.length"
    assert page.evaluate(shown) == 20_000
    page.get_by_role("link", name="Show all of it").click()
    page.wait_for_function(f"() => ({shown})() === 90_000")
    assert overflow(page) <= 0
    page.goto("/queues/orders:eu/")
    assert len(page.content()) < 60_000, "lists hold the beginning of a value"


def test_copies_and_downloads_hold_what_is_shown(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.clock.install()
    page.goto(put(jobs, "json"))
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 5)  # it says so for two seconds
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied["auth"] == {"password": "[redacted]"}
    assert copied["order"] == 9_007_199_254_740_993_123
    with page.expect_download() as download:
        page.get_by_role("link", name="Download Text").click()
    assert json.loads(download.value.path().read_bytes()) == copied
    page.goto(put(jobs, "gzip"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download Raw").click()
    assert download.value.path().read_bytes() == VALUES["gzip"]


@pytest.mark.parametrize("scripts", [True, False])
def test_what_is_redacted_is_revealed_once_and_told_to_the_audit(
    scripts: bool, new_page: NewPage, jobs: Queue, store: Store
) -> None:
    page = new_page(java_script_enabled=scripts)
    address = put(jobs, "json")
    for where in ("/", "/queues/orders:eu/", address, f"{address}?as=text", f"{address}?as=hex"):
        page.goto(where)
        assert SECRET[:6] not in page.content(), where
    page.goto(f"{address}?as=text")
    expect(page.locator(".redacted")).to_have_text("redacted")
    page.get_by_label("Why it has to be seen, for the audit").fill("ticket 7")
    page.get_by_role("button", name="Reveal", exact=True).click()
    expect(page.locator("pre.value")).to_contain_text(SECRET)
    expect(page.locator(".reveal.open")).to_contain_text("The audit says that you saw it.")
    if scripts:
        assert findings(page) == []
    with page.expect_navigation():
        page.get_by_role("link", name="Hide it again").click()
    assert SECRET[:6] not in page.content()
    expect(page.locator(".history")).to_contain_text("admin revealed a value")
    expect(page.locator(".history")).to_contain_text("ticket 7")
    with pytest.raises(Error, match="ERR_CACHE_MISS"):  # no copy of the answer is kept
        page.go_back()


def test_the_keyboard_alone_reads_a_value(page: Page, jobs: Queue) -> None:
    page.goto(put(jobs, "json"))
    tree = page.locator(".tree")
    tree.focus()
    page.keyboard.press("Tab")
    expect(page.locator(".tree summary").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".tree details").first).not_to_have_attribute("open", "")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="hex").focus()
    page.keyboard.press("Enter")
    expect(page.locator("pre.hex")).to_be_visible()
