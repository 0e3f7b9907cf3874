"""The palette and the keys, driven by the keyboard alone."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from queues import Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, until
from tests.browser.operator import Operator


def focused(page: Page) -> str:
    """Return the address of the link that has the focus."""
    return str(page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.tagName"))


def background(page: Page, number: int) -> str:
    """Return the color behind an entry of the palette."""
    return str(page.locator("#palette-found a").nth(number).evaluate("e => getComputedStyle(e).backgroundColor"))


def test_the_palette_leads_to_a_queue_and_back_without_a_mouse(page: Page, store: Store) -> None:
    for name in ("palette:one", "palette:two"):
        store.create_queue(name, exist_ok=True)
    page.goto("/")
    page.keyboard.press("Control+k")
    field = page.get_by_label("Go to").and_(page.locator("input"))
    expect(field).to_be_focused()
    expect(page.locator("#palette-found a").nth(1)).to_be_visible()
    assert background(page, 0) != background(page, 1), "what Enter takes is not marked"
    page.keyboard.type("palette:t")
    expect(page.locator("#palette-found a").first).to_contain_text("palette:two")
    assert not findings(page)
    expect(field).to_have_attribute("aria-activedescendant", "palette-first")
    page.keyboard.press("ArrowDown")
    assert focused(page) == "/queues/palette:two/"
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/palette:two/")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("pop max")
    expect(page.locator("#palette-found a").first).to_contain_text("palette:two")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).not_to_be_visible()
    link = page.locator("header.bar a").first
    link.focus()
    page.keyboard.press("Meta+k")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(link).to_be_focused()


def test_single_keys_move_through_rows_and_pages_unless_turned_off(page: Page, store: Store) -> None:
    for name in ("keys:one", "keys:two"):
        store.create_queue(name, exist_ok=True)
    page.clock.install()
    page.goto("/?q=keys:&group=name")
    page.keyboard.press("j")
    assert focused(page) == "/queues/keys:one/"
    page.keyboard.press("j")
    assert focused(page) == "/queues/keys:two/"
    page.keyboard.press("k")
    assert focused(page) == "/queues/keys:one/"
    page.keyboard.press("/")
    page.keyboard.type("jjj")
    expect(page.get_by_label("Filter queues")).to_have_value("jjj")
    page.locator("h1").first.evaluate("document.activeElement.blur()")
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 5)  # a pair of keys has a second and a half
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url("**/audit/")
    page.clock.resume()
    page.keyboard.press("?")
    sheet = page.locator("#keys")
    expect(sheet).to_be_visible()
    assert not findings(page)
    sheet.get_by_label("Keys without Ctrl or ⌘ do something").uncheck()
    sheet.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(sheet).not_to_be_visible()


@pytest.mark.parametrize("path", ["/trash/", "/audit/"])
def test_the_key_of_filters_leads_to_the_first_field(path: str, page: Page) -> None:
    page.goto(path)
    page.keyboard.press("/")
    page.keyboard.type("jobs")
    expect(page.locator("main form[role=search] input[name=queue]")).to_have_value("jobs")


@pytest.mark.parametrize("way", ["key", "click"])
def test_what_is_typed_after_push_was_asked_for_is_the_value(way: str, page: Page, store: Store) -> None:
    store.create_queue("keys:push", exist_ok=True)
    page.goto("/queues/keys:push/")
    if way == "key":
        page.keyboard.press("p")
    else:
        page.get_by_role("link", name="Push", exact=True).click()
    page.keyboard.type("gj/x")
    value = page.locator("#push-value")
    expect(value).to_have_value("gj/x")
    expect(value).to_be_in_viewport()


def test_enter_waits_for_the_answer_to_what_was_typed(page: Page, store: Store) -> None:
    for name in ("palette:one", "palette:two"):
        store.create_queue(name, exist_ok=True)
    page.goto("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("palette:o")
    expect(page.locator("#palette-found")).to_have_attribute("data-asked", "palette:o")
    held: list[Route] = []
    page.route("**/palette/?*", lambda route: held.append(route))
    page.get_by_label("Go to").and_(page.locator("input")).fill("palette:t")
    page.keyboard.press("Enter")
    until(page, lambda: held)
    assert page.url.endswith("/"), "it went to what was found for the text before"
    held.pop().continue_()
    page.wait_for_url("**/queues/palette:two/")


def test_a_key_of_an_input_method_goes_nowhere(page: Page, store: Store) -> None:
    store.create_queue("palette:one", exist_ok=True)
    page.goto("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("palette:o")
    expect(page.locator("#palette-found a").first).to_contain_text("palette:one")
    field = page.get_by_label("Go to").and_(page.locator("input"))
    went = field.evaluate(
        """field => !field.dispatchEvent(
            new KeyboardEvent("keydown", {key: "Enter", isComposing: true, bubbles: true, cancelable: true}))"""
    )
    assert not went
    expect(field).to_be_focused()


def test_ticked_rows_are_moved_by_keys_alone(new_page: NewPage, store: Store) -> None:
    jobs, review = store.create_queue("jobs"), store.create_queue("review")
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    page = new_page()
    operator = Operator(page).open("jobs")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-found a").first).to_contain_text("Push")
    expect(page.locator("#palette-found a[data-press]")).to_have_count(0)
    page.keyboard.press("Escape")
    page.locator("#items tbody tr a").first.focus()
    for key in "xjx":
        page.keyboard.press(key)
    page.keyboard.press("Control+k")
    first = page.locator("#palette-found a").first
    expect(first).to_have_text(re.compile("Move….*2 selected items.*act", re.DOTALL))
    held = [item.id for item in jobs.items(limit=2).items]
    there = rf"/queues/jobs/act/\?state=ready&shown_at=\d+&id={held[0]}&id={held[1]}&act=move"
    expect(first).to_have_attribute("href", re.compile(f"{there}$"))  # what another tab would open
    assert not findings(page)
    page.keyboard.type("move")
    page.keyboard.press("Enter")  # before the answer came or after it
    expect(page.locator("#palette")).not_to_be_visible()
    expect(page.locator("#act-to")).to_be_focused()
    assert jobs.depth() == 4, "it was done without being confirmed"
    page.keyboard.type("review")
    operator.confirm().expect_toast("Moved 2 items to review.")
    assert review.depth() == 2


def test_an_open_item_is_deleted_by_keys_alone_and_only_once_confirmed(new_page: NewPage, store: Store) -> None:
    item = store.create_queue("jobs").push(b"x", priority=1)
    page = new_page()
    operator = Operator(page).open_item(item.id, "jobs")
    page.keyboard.press("Control+k")
    page.keyboard.type("delete")
    expect(page.locator("#palette-found a").first).to_have_text(re.compile("Delete….*this item.*act", re.DOTALL))
    page.keyboard.press("Enter")
    page.wait_for_url("**/act/?act=delete&id=*")
    operator.expect_words("Delete this item?")
    assert store.queue("jobs").depth() == 1
    operator.confirm().expect_toast("Deleted the item.")
    operator.undo().open()
    page.keyboard.press("Control+k")
    page.keyboard.type(f"{item.id} repri")
    expect(page.locator("#palette-found a").first).to_have_text(
        re.compile("Re-prioritize….*this item in jobs", re.DOTALL)
    )
    page.keyboard.press("Enter")
    page.wait_for_url("**/act/?act=reprioritize&id=*")
    operator.expect_words("Re-prioritize this item")
