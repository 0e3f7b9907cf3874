"""An overview with a filter follows which queues match: new ones, changed ones, and those that match no more."""

import re

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from queues import Store
from tests.browser.conftest import LIMITS, open_live, ready_of, until, wait_value
from tests.browser.test_order import SOON, expect_order, order


def test_a_filter_that_nothing_matched_shows_what_comes_to_match(page: Page, store: Store) -> None:
    store.create_queue("other")
    open_live(page, "/?q=zz:*")
    expect(page.locator("[data-hides]")).to_have_text("There is 1 queue; the filter hides it.")
    store.create_queue("more")
    expect(page.locator("[data-hides]")).to_have_text("There are 2 queues; the filter hides all of them.")
    store.create_queue("zz:a").push(b"x", priority=1)
    wait_value(page, ready_of("zz:a"), 1)
    counts = page.locator("[data-shown-of]")
    expect(counts).to_have_text("1 shown of 1 that match; 3 queues in all")
    store.create_queue("zz:b")
    expect_order(page, "zz:a", "zz:b")
    expect(counts).to_have_text("2 shown of 2 that match; 4 queues in all")


@pytest.mark.parametrize("address", ["/?q=depth>1 zz", "/?q=depth>1 zz&group=group"])
def test_queues_come_and_go_by_their_depth(page: Page, store: Store, address: str) -> None:
    queues = [store.create_queue(f"zz:{name}") for name in "abc"]
    queues[0].push_many([(b"x", 1)] * 2)
    open_live(page, address)
    expect_order(page, "zz:a")
    queues[2].push_many([(b"x", 1)] * 5)
    expect_order(page, "zz:a", "zz:c")
    counts = page.locator("[data-shown-of]")
    expect(counts).to_have_text("2 shown of 2 that match; 3 queues in all")
    queues[0].pop_many(2)
    expect_order(page, "zz:c")
    expect(counts).to_have_text("1 shown of 1 that match; 3 queues in all")
    queues[2].pop_many(5)
    expect(page.get_by_text("No queue matches")).to_be_visible()


@pytest.mark.parametrize("term", ["level:warning", "reason:paused"])
def test_new_trouble_comes_into_a_page_that_asks_for_it(page: Page, store: Store, term: str) -> None:
    queues = [store.create_queue(f"q{n}") for n in range(3)]
    open_live(page, f"/?q={term}")
    queues[1].pause(reason="", by="ops-2")
    expect_order(page, "q1")
    queues[1].resume()
    expect(page.get_by_text("No queue matches")).to_be_visible()


def test_a_filter_by_age_shows_what_grew_old_by_itself(page: Page, store: Store) -> None:
    store.create_queue("q").push(b"x", priority=1)
    open_live(page, "/?q=age>4s")
    expect_order(page, "q")


def test_no_row_goes_from_under_the_pointer_and_the_pill_tells(page: Page, store: Store) -> None:
    queues = {name: store.create_queue(f"zz:{name}") for name in "abc"}
    for queue in queues.values():
        queue.push(b"x", priority=1)
    # By name: among problems a queue that was just popped from has another place for a minute.
    open_live(page, "/?q=depth>0&group=name")
    wait_value(page, ready_of("zz:c"), 1)
    page.locator(ready_of("zz:c")).hover()
    queues["a"].pop_min()
    pill, counts = page.locator("#reorder"), page.locator("[data-shown-of]")
    expect(counts).to_have_text("2 shown of 2 that match; 3 queues in all")
    expect(pill).to_have_text("1 queue matches no more · update")
    assert order(page) == ["zz:a", "zz:b", "zz:c"]
    queues["a"].push(b"x", priority=1)
    expect(counts).to_have_text("3 shown of 3 that match; 3 queues in all")
    expect(pill).to_be_hidden()
    queues["b"].pop_min()
    expect(pill).to_have_text("1 queue matches no more · update")
    page.keyboard.press("u")
    expect_order(page, "zz:a", "zz:c", within=SOON)
    page.locator(ready_of("zz:c")).hover()
    queues["a"].pop_min()
    expect(pill).to_have_text("1 queue matches no more · update")
    page.mouse.move(1, 1)
    expect_order(page, "zz:c", within=SOON)
    expect(pill).to_be_hidden()


def test_the_pill_brings_a_queue_into_a_grouped_table_that_has_the_focus(page: Page, store: Store) -> None:
    store.create_queue("zz:a")
    open_live(page, "/?q=zz&group=group")
    link = page.locator('tr[data-queue="zz:a"] a[data-part=link]')
    link.focus()
    store.create_queue("zz:b")
    expect(page.locator("#reorder")).to_have_text("other queues belong here now · update")
    expect(page.locator("[data-shown-of]")).to_have_text("1 shown of 2 that match; 2 queues in all")
    assert order(page) == ["zz:a"]
    page.keyboard.press("u")
    expect_order(page, "zz:a", "zz:b")
    expect(link).to_be_focused()


def test_the_page_asks_which_favorites_match(page: Page, store: Store) -> None:
    for name in ("a", "b"):
        store.create_queue(name)
    open_live(page, "/")
    page.locator('tr[data-queue="a"] .star').click()
    expect(page.locator('tr[data-queue="a"] .star')).to_have_attribute("aria-pressed", "true")
    open_live(page, "/?q=is:favorite depth>0")
    expect(page.get_by_text("No queue matches")).to_be_visible()
    store.queue("a").push(b"x", priority=1)
    expect_order(page, "a")


def test_no_row_of_the_table_before_comes_into_a_filtered_one(page: Page, store: Store) -> None:
    """Until the server has heard of the filter, frames come of what was watched before."""
    waiting: list[tuple[WebSocketRoute, str | bytes]] = []

    def through(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        server.on_message(route.send)

        def up(message: str | bytes) -> None:
            if '"filter"' in str(message):
                waiting.append((server, message))
            else:
                server.send(message)

        route.on_message(up)

    page.route_web_socket(re.compile("/live/"), through)
    other = store.create_queue("other")
    store.create_queue("zz:a")
    open_live(page, "/")
    expect_order(page, "other", "zz:a")
    page.locator("main input[name=q]").fill("zz")
    expect_order(page, "zz:a")
    until(page, lambda: waiting, "the filter is not watched")
    other.push(b"x", priority=1)
    wait_value(page, "[data-total=ready]", 1)
    assert order(page) == ["zz:a"]
    for server, message in waiting:
        server.send(message)
    store.create_queue("zz:b")
    expect_order(page, "zz:a", "zz:b")


def test_a_table_that_was_asked_for_before_the_filter_does_not_come(page: Page, store: Store) -> None:
    waiting: list[Route] = []
    store.create_queue("a:x")
    store.create_queue("zz:a")
    open_live(page, "/?group=group")
    page.route(re.compile(r"/\?group=group$"), lambda route: waiting.append(route))
    store.create_queue("b:x")
    until(page, lambda: waiting, "the table with its group is not asked for")
    page.locator("main input[name=q]").fill("zz")
    expect_order(page, "zz:a")
    page.evaluate("window.table = document.getElementById('queues')")
    with page.expect_event("requestfinished"):
        waiting[0].continue_()
    page.wait_for_timeout(500)
    assert page.evaluate("window.table.isConnected")
    assert order(page) == ["zz:a"]


def test_a_table_that_never_comes_is_asked_for_again(page: Page, store: Store) -> None:
    waiting: list[Route] = []
    store.create_queue("a:x")
    page.add_init_script(LIMITS)
    page.clock.install()
    open_live(page, "/?group=group")
    page.route(re.compile(r"/\?group=group$"), lambda route: route.continue_() if waiting else waiting.append(route))
    store.create_queue("b:x")
    until(page, lambda: waiting, "the table with its group is not asked for")
    page.clock.run_for(61_000)
    store.create_queue("c:x")
    expect_order(page, "a:x", "b:x", "c:x", within=20_000)
