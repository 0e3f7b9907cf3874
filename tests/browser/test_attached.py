"""Attached queues in a browser: other programs' writes show by themselves, counts age, and forms work at any width."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from queues import Queue, Store
from tests.browser.conftest import NewPage, open_live, wait_value
from tests.others import PREFIX, Others


@pytest.fixture
def others(store: Store) -> Others:
    """A program that pushed three items."""
    program = Others(store)
    program.push((5, b"five"), (1, b"one"), (9, b"nine"))
    return program


@pytest.fixture
def legacy(store: Store, others: Others) -> Iterator[Queue]:
    """Its items as a queue."""
    queue = store.attach("legacy", prefix=PREFIX)
    yield queue
    for name in [queue.name for queue in store.queues() if queue.attached]:
        store.detach(name)
    while others.depth():
        others.take()


def test_what_other_programs_do_shows_by_itself_with_the_age_of_the_count(
    page: Page, legacy: Queue, others: Others
) -> None:
    open_live(page, "/")
    row = page.locator('tr[data-queue="legacy"]')
    expect(row).to_have_attribute("data-mark", "attached")
    wait_value(page, 'tr[data-queue="legacy"] [data-field=ready]', 3)
    expect(row.locator("[data-field=ready]")).to_have_text("≈\u202f3")
    expect(row.locator("[data-field=counted]")).to_have_text(re.compile(r"^counted \d+(\.\d)? s ago$"))
    said = "The items are written by other programs; prefix ('legacy', 'jobs')"
    expect(row.locator("[data-field=verdict]")).to_have_attribute("title", said)

    others.push((-7, b"first <b>of all</b>"))
    expect(row.locator("[data-field=min] [data-part=value]")).to_have_text("first <b>of all</b>")
    expect(row.locator("[data-field=min] [data-part=priority]")).to_have_text("-7")
    wait_value(page, 'tr[data-queue="legacy"] [data-field=ready]', 4)
    expect(page.locator("[data-total=attached]")).to_have_text(re.compile("^1 attached, counted .* ago$"))
    expect(row.locator("[data-field=rate-in]")).to_have_text("–")


def test_a_queue_that_is_attached_while_the_page_is_open_is_marked(page: Page, store: Store, others: Others) -> None:
    store.create_queue("ours")
    open_live(page, "/")
    store.attach("legacy", prefix=PREFIX)
    try:
        row = page.locator('tr[data-queue="legacy"]')
        expect(row.locator("[data-field=verdict]")).to_have_text("unknown · attached, traffic not seen")
        expect(row.locator("[data-field=counted]")).to_be_visible()
        wait_value(page, 'tr[data-queue="legacy"] [data-field=ready]', 3)
    finally:
        store.detach("legacy")
    expect(row).to_have_attribute("data-level", "gone")


def test_the_queue_page_follows_both_ends(page: Page, legacy: Queue, others: Others) -> None:
    open_live(page, "/queues/legacy/")
    expect(page).to_have_title(re.compile("^unknown \\(≈\u202f3\\) · legacy"))
    others.push((2, b"second"))
    items = page.locator("[data-live-list=min] > [data-item]")
    expect(items.nth(1).locator("[data-part=value]")).to_have_text("second")
    items.nth(1).locator("a").click()
    expect(page.locator("h1")).to_contain_text("Item of priority 2")


WIDTHS = (360, 768, 1440)


@pytest.mark.parametrize(("width", "scripts"), [(360, True), (1440, True), (768, False)])
def test_attach_use_and_detach_by_keyboard_at_any_width(
    new_page: NewPage, store: Store, others: Others, width: int, scripts: bool
) -> None:
    page = new_page(viewport={"width": width, "height": 800}, java_script_enabled=scripts)
    page.goto("/attach/")
    expect(page.locator("#attach-name")).to_be_focused()
    page.keyboard.type("legacy")
    page.keyboard.press("Tab")
    page.keyboard.type('("legacy", "jobs")')
    page.keyboard.press("Enter")
    expect(page.locator("#preview")).to_contain_text("First item")
    page.locator("#preview button").press("Enter")
    expect(page.locator("h1")).to_have_text("legacy")
    assert store.queue("legacy").attached
    for each in WIDTHS:
        page.set_viewport_size({"width": each, "height": 800})
        cut = page.locator(".sum dt").evaluate_all("all => all.filter((dt) => dt.scrollWidth > dt.clientWidth).length")
        assert cut == 0, f"the name of a number runs into the next one at {each}"

    page.goto("/queues/legacy/detach/")
    for each in WIDTHS:
        page.set_viewport_size({"width": each, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), each
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.locator("#detach-reason")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".toasts")).to_contain_text("Its items stay where they are")
    assert store.queues() == []
    while others.depth():
        others.take()
