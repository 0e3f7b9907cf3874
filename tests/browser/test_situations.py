"""Six situations: the first screen tells which queue is in trouble, why, what takes from it, since when, what next.

`PQ_PICTURES=FOLDER` keeps a picture of each first screen.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Site, open_live, sign_in
from tests.browser.situations import CALM, SITUATIONS, Shop, Situation

#: Of a screen and of a phone: width, height, and how many heights are looked at.
SIZES = {"screen": (1440, 900, 1), "phone": (390, 844, 2)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site of a shop in which six queues are in trouble."""
    site = Site(tmp_path_factory.mktemp("shop"))
    with Shop(site.store_url):
        site.start()
        yield site
        site.stop()


@pytest.fixture(scope="module")
def page(shop: Site, chromium: Browser) -> Iterator[Page]:
    """A page of the shop."""
    context = chromium.new_context(base_url=shop.address)
    made = context.new_page()
    sign_in(made, "admin", shop.password)
    yield made
    context.close()


def sizes(page: Page) -> Iterator[int]:
    """Give the window each size; yield the pixels from the top of the page that are looked at."""
    for width, height, heights in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        yield height * heights


def keep(page: Page, name: str, height: int) -> None:
    """Keep a picture where one is wanted."""
    if folder := os.environ.get("PQ_PICTURES"):
        size = page.viewport_size
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height}
        path = Path(folder) / f"{name.replace(':', '-')}-{size['width']}.png"
        page.screenshot(path=path, full_page=True, clip=clip)


def assert_seen(place: Locator, height: int) -> None:
    """See the whole of an element without scrolling further."""
    expect(place).to_be_visible()
    box = place.bounding_box()
    assert box["y"] + box["height"] <= height, f"{place}: {box}"


def test_the_overview_tells_which_queues_and_why(page: Page) -> None:
    open_live(page, "/")
    expect(page.locator("tr[data-queue]")).to_have_count(len(CALM) + len(SITUATIONS))
    for situation in SITUATIONS:
        expect(page.locator(f'tr[data-queue="{situation.queue}"]')).to_have_attribute("data-level", situation.level)
    for height in sizes(page):
        see_which_and_why(page, height)


def see_which_and_why(page: Page, height: int) -> None:
    """See the queues in trouble first, and the first reason of each."""
    keep(page, "overview", height)
    names = page.locator("tr[data-queue]").evaluate_all("rows => rows.map((row) => row.dataset.queue)")
    assert set(names[: len(SITUATIONS)]) == {situation.queue for situation in SITUATIONS}
    for place, name in enumerate(names[: len(SITUATIONS)] if height == 900 else names[:3]):
        row = page.locator(f'tr[data-queue="{name}"]')
        assert_seen(row.locator("a[data-part=link]"), height)
        verdict = row.locator("[data-field=verdict]")
        assert_seen(verdict, height)
        # The first reason is not cut before its number.
        told = verdict.inner_text().split(" · ")[1]
        number = re.match(r"\D*\d+(\+| min| s|/s)?|[^:,]*", told)
        shown = verdict.evaluate("element => element.clientWidth")
        needed = verdict.evaluate(
            """(element, text) => {
                const probe = element.cloneNode();
                probe.textContent = text;
                probe.style.position = "absolute";
                probe.style.maxWidth = "none";
                element.after(probe);
                const width = probe.scrollWidth;
                probe.remove();
                return width;
            }""",
            verdict.inner_text().partition(told)[0] + number[0],
        )
        assert needed <= shown or height != 900, (place, told)


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.queue for situation in SITUATIONS])
def test_the_page_of_a_queue_answers_five_questions(page: Page, situation: Situation) -> None:
    open_live(page, f"/queues/{situation.queue}/")
    for height in sizes(page):
        see_answers(page, height, situation)
    link = page.locator(".verdict li:not([hidden])").first.locator(".next").get_attribute("href")
    if link is not None and "#items" in link:
        page.goto(link)
        expect(page.locator("#items tbody tr").first).to_be_visible()


def see_answers(page: Page, height: int, situation: Situation) -> None:
    """See why, since when, what takes from the queue, and what to do next."""
    reason = page.locator(".verdict li:not([hidden])").first
    expect(reason).to_have_text(re.compile(situation.why))
    assert re.search(situation.since, reason.inner_text())
    worker = page.locator("#consumers").get_by_text(situation.who).locator("visible=true").first
    expect(worker).to_be_visible()
    keep(page, situation.queue, height)
    for place in (page.locator("h1"), page.locator("[data-field=level]").first, reason.locator("b"), worker):
        assert_seen(place, height)
    following = reason.locator(".next")
    assert situation.next in following.inner_text()
    assert_seen(following, height)
    for option in following.locator(".nowrap").all():
        assert option.evaluate("option => option.getClientRects().length") == 1, "a line breaks within it"
