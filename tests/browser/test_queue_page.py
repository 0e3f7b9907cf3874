"""The lists of a queue's page in a browser: tabs, paging, choosing, and searches that go on by themselves."""

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from queues import Queue, Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, wait_live

EVIL = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def jobs(store: Store) -> Queue:
    """Items of every state, some of them hostile, and something in the trash."""
    jobs = store.create_queue("jobs")
    jobs.configure(max_attempts=1, note="Ask the owners first.", runbook="https://wiki.example/jobs")
    jobs.push_many([(f"dead-{n} {EVIL * 20}".encode(), -9) for n in range(3)])
    for lease in jobs.lease_many(3, worker=EVIL * 5):
        jobs.release(lease, reason=EVIL * 9)
    jobs.push_many([(b"held-%d" % n, -8) for n in range(3)])
    jobs.lease_many(3, seconds=3600, worker=EVIL * 5)
    jobs.push_many([(b"later-%d" % n, n, timedelta(minutes=9 + n)) for n in range(4)])
    jobs.push_many([(b"ready-%02d" % n, n) for n in range(70)])
    store.actions("eve").delete_item("jobs", jobs.items(end="max").items[0].id)
    return jobs


@pytest.fixture
def large(store: Store) -> Queue:
    """Values so large that no single answer looks through them all; every 30th is wanted."""
    large = store.create_queue("large")
    for part in range(3):
        rows = [b"%s-%03d " % (b"other" if n % 30 else b"wanted", part * 50 + n) for n in range(50)]
        large.push_many([(row + b"x" * 89_000, part * 50 + n) for n, row in enumerate(rows)])
    return large


def rows_of(page: Page) -> Any:
    return page.locator("#items tbody tr")


def test_tabs_switch_in_place_and_the_address_follows(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/")
    wait_live(page)
    page.evaluate("window.same = true")
    for state, words in (("delayed", "later-0"), ("leased", "held-0"), ("dead", "dead-0"), ("trash", "deleted")):
        page.click(f"#tab-{state}")
        expect(page.locator(f"#tab-{state}")).to_have_attribute("aria-current", "page")
        expect(page).to_have_url(re.compile(f"state={state}"))
        expect(page.locator("#items")).to_contain_text(words)
        if state != "trash":
            expect(page.locator("#items button[value=delete]")).to_be_disabled()
    assert page.evaluate("window.same")
    expect(page.locator("#tab-ready b")).to_have_text("69")
    jobs.push(b"one more", priority=1)
    expect(page.locator("#tab-ready b")).to_have_text("70")
    page.go_back()
    expect(page.locator("#tab-dead")).to_have_attribute("aria-current", "page")


def overhang(page: Page, selector: str) -> int:
    """Return by how many pixels the contents are wider than what is seen of them."""
    return int(page.locator(selector).first.evaluate("e => e.scrollWidth - e.clientWidth"))


def test_dead_items_with_long_reasons_leave_room_for_their_values(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": 1440, "height": 900})
    page.goto("/queues/jobs/?state=dead")
    assert overhang(page, "#items .table-card") == 0
    value = page.locator("#items tbody td.wide").first.bounding_box()
    assert value["width"] > 120


def test_every_band_of_the_mix_is_seen_on_a_phone(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto("/queues/jobs/")
    assert overhang(page, ".mixcard .scroll") == 0
    bars = page.locator(".mix.tall i").evaluate_all("all => all.map(e => e.getBoundingClientRect().x)")
    names = page.locator(".mix-axis li").evaluate_all("all => all.map(e => e.getBoundingClientRect().x)")
    assert max(abs(bar - name) for bar, name in zip(bars, names, strict=True)) < 4


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_mark_is_beside_the_longest_name(width: int, new_page: NewPage, store: Store) -> None:
    page = new_page(viewport={"width": width, "height": 800})
    page.goto(f"/queues/{store.create_queue('n' * 200).name}/")
    mark, name = page.locator(".qh .shape").first.bounding_box(), page.locator("h1").bounding_box()
    assert name["y"] <= mark["y"] <= name["y"] + name["height"]


@pytest.mark.parametrize("path", ["push", "push/many", "settings"])
def test_forms_are_not_stretched_over_a_wide_screen(path: str, new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": 2560, "height": 1440})
    page.goto(f"/queues/jobs/{path}/")
    widths = page.locator("main > *").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    assert max(widths) <= 1600


def test_pages_go_on_and_choices_are_counted(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/")
    expect(rows_of(page)).to_have_count(50)
    delete = page.locator("#items button[name=act][value=delete]")
    expect(delete).to_be_disabled()
    boxes = page.locator("#items .pick input")
    boxes.nth(2).click()
    boxes.nth(5).click(modifiers=["Shift"])
    expect(page.locator("[data-chosen]")).to_have_text("4 selected")
    page.get_by_role("link", name="Select page").click()
    expect(page.locator("[data-chosen]")).to_have_text("50 selected")
    page.get_by_role("link", name="Select none").click()
    expect(delete).to_be_disabled()
    page.get_by_role("link", name="Next items").click()
    expect(rows_of(page)).to_have_count(19)
    expect(page).to_have_url(re.compile("after="))
    page.reload()
    expect(rows_of(page)).to_have_count(19)


def test_a_search_goes_on_by_itself_to_its_end(page: Page, large: Queue) -> None:
    page.goto("/queues/large/")
    page.fill("#q", "WANTED")
    page.keyboard.press("Enter")
    expect(page.locator("[data-scope]")).to_have_text("searched 150 items, all there are · 6 found")
    expect(rows_of(page)).to_have_count(6)
    expect(page.locator("#scope progress")).to_have_count(0)
    expect(page.get_by_role("link", name="Back to the first")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    assert "q=WANTED" in page.url


def test_a_search_is_canceled_and_continued(page: Page, large: Queue) -> None:
    held: list[Any] = []
    page.route(
        lambda url: "after=" in url,
        lambda route: held.append(route) if len(held) < 1 else route.continue_(),
    )
    page.goto("/queues/large/?q=wanted")
    cancel = page.get_by_role("button", name="Cancel")
    cancel.click()
    expect(page.locator("[data-scope]")).to_contain_text("canceled")
    expect(page.locator("[data-scope]")).to_contain_text(re.compile("searched [0-9]+ of 150"))
    onward = page.get_by_role("link", name="Continue")
    expect(onward).to_be_focused()
    assert len(held) == 1, "nothing is asked for after the cancel"
    found = rows_of(page).count()
    assert 0 < found < 6
    page.keyboard.press("Enter")
    expect(page.locator("[data-scope]")).to_have_text("searched 150 items, all there are · 6 found")
    expect(rows_of(page)).to_have_count(6)


def test_a_search_that_the_server_does_not_answer_says_so(page: Page, large: Queue, strict: Any) -> None:
    strict.allowed.append("Failed to load resource|ERR_FAILED")
    page.route(lambda url: "after=" in url, lambda route: route.abort())
    page.goto("/queues/large/?q=nowhere")
    expect(page.locator("[data-scope]")).to_contain_text("the server did not answer")
    page.unroute_all()
    page.get_by_role("link", name="Continue").click()
    expect(page.locator("#items")).to_contain_text("Nothing found")


def test_countdowns_tick_without_any_request(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(reduced_motion="no-preference")
    page.goto("/queues/jobs/?state=delayed")
    wait_live(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    cell = page.locator("#items tbody tr").first.locator("time[data-countdown]")
    for _ in range(2):
        before = cell.text_content()
        expect(cell).not_to_have_text(before or "")
    assert re.fullmatch(r"in [5-9]:\d\d", cell.text_content() or "")
    assert asked == []


def test_the_lists_are_used_by_keyboard_alone(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/")
    page.locator("#tab-ready").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#tab-delayed")).to_have_attribute("aria-current", "page")
    expect(page.locator("#tab-delayed")).to_be_focused()
    boxes = page.locator("#items .pick input")
    for _ in range(40):
        page.keyboard.press("Tab")
        if boxes.first.evaluate("box => box === document.activeElement"):
            break
    page.keyboard.press("Space")
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    promote = page.locator("#items button[value=promote]")
    for _ in range(40):
        page.keyboard.press("Tab")
        if promote.evaluate("button => button === document.activeElement"):
            break
    expect(promote).to_be_focused()
    chosen = boxes.first.get_attribute("value")
    with page.expect_request(lambda request: "/act/?" in request.url) as asked:
        page.keyboard.press("Enter")
    assert f"id={chosen}" in asked.value.url
    assert "act=promote" in asked.value.url


@pytest.mark.parametrize(
    ("scheme", "queries"),
    [
        ("light", ["state=ready&q=ready-1", "state=delayed&low=x", "state=leased", "state=trash"]),
        ("dark", ["state=dead&select=page"]),
    ],
)
def test_axe_finds_nothing_in_any_state(scheme: str, queries: list[str], new_page: NewPage, jobs: Queue) -> None:
    page = new_page(color_scheme=scheme)
    found = {}
    for query in queries:
        page.goto(f"/queues/jobs/?{query}")
        if faults := findings(page):
            found[query] = faults
    assert found == {}


@pytest.mark.parametrize("width", [320, 768])
def test_no_list_scrolls_sideways(width: int, new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": width, "height": 800})
    for state in ("ready", "delayed", "leased", "dead", "trash"):
        page.goto(f"/queues/jobs/?state={state}&low=x")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, state
