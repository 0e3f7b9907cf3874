"""The lists of a queue's page in a browser: tabs, paging, choosing, and searches that go on by themselves."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from queues import Queue, Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, Site, Strict, open_live, sign_in, until

#: Hides the tab, or shows it again.
HIDDEN = """value => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
}"""
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
    open_live(page, "/queues/jobs/")
    page.evaluate("window.same = true")
    for state, words in (("delayed", "later-0"), ("leased", "held-0"), ("dead", "dead-0"), ("trash", "deleted")):
        page.click(f"#tab-{state}")
        expect(page.locator(f"#tab-{state}")).to_have_attribute("aria-current", "page")
        expect(page).to_have_url(re.compile(f"state={state}"))
        expect(page.locator("#items")).to_contain_text(words)
        if state != "trash":
            expect(page.locator(".actbar button[value=delete]")).to_be_disabled()
    assert page.evaluate("window.same")
    expect(page.locator("#tab-ready b")).to_have_text("69")
    jobs.push(b"one more", priority=1)
    expect(page.locator("#tab-ready b")).to_have_text("70")
    page.go_back()
    expect(page.locator("#tab-dead")).to_have_attribute("aria-current", "page")


def overhang(page: Page, selector: str) -> int:
    """Return by how many pixels the contents are wider than what is seen of them."""
    return int(page.locator(selector).first.evaluate("e => e.scrollWidth - e.clientWidth"))


def test_lists_fit_every_window(page: Page, jobs: Queue) -> None:
    """No list scrolls sideways, ticks are beside their rows, and long reasons leave room for the values."""
    reasons = {1280: 208, 1440: 320, 1920: 384}
    narrow = (320, 768)
    for state, widths in {
        "ready": (*narrow, 1440),
        "delayed": narrow,
        "leased": narrow,
        "dead": (*narrow, *reasons),
        "trash": narrow,
    }.items():
        page.goto(f"/queues/jobs/?state={state}&low=x")
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert overhang(page, "html") <= 0, (state, width)
            if state in ("ready", "dead") and width in (768, 1440):
                assert off_the_middle(page) <= 1.5, (state, width)
            if state == "dead" and width in reasons:
                assert overhang(page, "#items .table-card") == 0, width
                value = page.locator("#items tbody td.wide").first.bounding_box()
                assert value["width"] > 120, width
                reason = page.locator("#items tbody .reason bdi").first.bounding_box()
                assert reason["width"] == reasons[width], "a wider window shows more of why an item died"


def off_the_middle(page: Page) -> float:
    """Return by how many pixels the first tick box is off the middle of its row."""
    off: float = page.locator("#items tr[data-id]").first.evaluate(
        """row => {
            const middle = (e) => { const at = e.getBoundingClientRect(); return (at.top + at.bottom) / 2; };
            return Math.abs(middle(row) - middle(row.querySelector(".pick input")));
        }"""
    )
    return off


def test_every_band_of_the_mix_is_seen_on_a_phone(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto("/queues/jobs/")
    assert overhang(page, ".mixcard .scroll") == 0
    bars = page.locator(".mix.tall i").evaluate_all("all => all.map(e => e.getBoundingClientRect().x)")
    names = page.locator(".mix-axis li").evaluate_all("all => all.map(e => e.getBoundingClientRect().x)")
    assert max(abs(bar - name) for bar, name in zip(bars, names, strict=True)) < 4


def test_the_mark_is_beside_the_longest_name(page: Page, store: Store) -> None:
    page.goto(f"/queues/{store.create_queue('n' * 200).name}/")
    for width in (360, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        mark, name = page.locator(".qh .shape").first.bounding_box(), page.locator("h1").bounding_box()
        assert name["y"] <= mark["y"] <= name["y"] + name["height"], width


def test_forms_are_not_stretched_over_a_wide_screen(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": 2560, "height": 1440})
    for path in ("push", "push/many", "settings"):
        page.goto(f"/queues/jobs/{path}/")
        widths = page.locator("main > *").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
        assert max(widths) <= 1600, path


def test_pages_go_on_and_choices_are_counted(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/?state=ready")
    expect(rows_of(page)).to_have_count(50)
    delete = page.locator(".actbar button[value=delete]")
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


def test_a_continued_search_goes_on_once_its_tab_is_shown_again(page: Page, store: Store) -> None:
    large = store.create_queue("large")
    for _ in range(4):
        large.push_many([((b"other", b"wanted")[n % 2] + b"x" * 89_000, 1) for n in range(50)])
    open_live(page, "/queues/large/?q=wanted")
    onward = page.get_by_role("link", name="Continue")
    expect(onward).to_be_visible()
    assert 50 <= rows_of(page).count() < 100
    held: list[Route] = []
    page.route(lambda url: "after=" in url, lambda route: route.continue_() if held else held.append(route))
    onward.click()
    until(page, lambda: held)
    for hidden in (True, False):
        page.evaluate(HIDDEN, hidden)
    expect(page.locator("[data-scope]")).to_have_text("searched 200 items, all there are · 100 found")
    expect(rows_of(page)).to_have_count(100)
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()


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
    open_live(page, "/queues/jobs/?state=delayed")
    asked: list[str] = []
    # The list's age and the charts are asked for after a change of the queue, which a new verdict is too.
    after_change = re.compile("/age/|/history/data/")
    page.on("request", lambda request: after_change.search(request.url) or asked.append(request.url))
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
    page.keyboard.press("Tab")
    expect(page.locator(".row-acts button[value=promote]")).to_be_focused()
    chosen = boxes.first.get_attribute("value")
    with page.expect_response(lambda answer: "/act/?" in answer.url) as asked:
        page.keyboard.press("Enter")
    assert f"id={chosen}" in asked.value.url
    assert "act=promote" in asked.value.url


def test_axe_finds_nothing_in_any_state(page: Page, jobs: Queue) -> None:
    found = {}
    for scheme, query in (
        ("light", "state=ready&q=ready-1"),
        ("light", "state=delayed&low=x"),
        ("light", "state=leased"),
        ("light", "state=trash"),
        ("dark", "state=dead&select=page"),
    ):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"/queues/jobs/?{query}")
        if faults := findings(page):
            found[query] = faults
    assert found == {}


def row_of(page: Page, words: str) -> Any:
    return rows_of(page).filter(has_text=words)


def offset_of(page: Page, words: str) -> float:
    """Return how far below the top of its list a row is."""
    row, items = row_of(page, words).bounding_box(), page.locator("#items").bounding_box()
    return round(float(row["y"] - items["y"]), 2)


def test_rows_that_left_are_struck_out_where_they_are(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/?state=ready")
    page.locator("#items .pick input").nth(1).check()
    place = offset_of(page, "ready-05")
    jobs.pop_min()
    lease = jobs.lease(seconds=3600, worker="w")
    expect(row_of(page, "ready-00")).to_have_attribute("data-gone", "")
    expect(row_of(page, "ready-00")).to_contain_text("gone")
    expect(row_of(page, "ready-01")).to_contain_text("leased")
    expect(page.locator("#items tr[data-gone]")).to_have_count(2)
    expect(page.locator("[data-news]")).to_have_text("2 gone · show")
    assert offset_of(page, "ready-05") == place
    expect(page.locator("#items .pick input").nth(1)).to_be_checked()
    jobs.release(lease, count_attempt=False)
    expect(page.locator("#items tr[data-gone]")).to_have_count(1)


def test_arrivals_are_counted_and_shown_when_asked_for(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/?state=ready")
    box = page.locator("#items .pick input").nth(3)
    box.check()
    chosen = box.get_attribute("value")
    page.fill("#q", "half typ")
    jobs.push_many([(b"early-%d" % n, -5) for n in range(12)])
    jobs.push(b"behind all of the page", priority=900)
    news = page.locator("[data-news]")
    expect(news).to_have_text("12 new items · show")
    expect(row_of(page, "early-0")).to_have_count(0)
    news.click()
    expect(row_of(page, "early-0")).to_have_count(1)
    expect(rows_of(page)).to_have_count(50)
    expect(news).to_be_hidden()
    expect(page.locator(f'#items .pick input[value="{chosen}"]')).to_be_checked()
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    expect(page.locator("#q")).to_have_value("half typ")


def test_ticks_made_while_a_new_list_loads_stay(page: Page, jobs: Queue) -> None:
    held: list[Route] = []
    open_live(page, "/queues/jobs/?state=ready")
    boxes = page.locator("#items .pick input")
    for n in (1, 2):
        boxes.nth(n).check()
    jobs.push(b"early", -5)
    news = page.locator("[data-news]")
    expect(news).to_have_text("1 new item · show")
    page.route(re.compile("/queues/jobs/"), lambda route: route.continue_() if held else held.append(route))
    news.click()
    until(page, lambda: held)
    boxes.nth(1).uncheck()
    boxes.nth(5).check()
    held[0].continue_()
    expect(row_of(page, "early")).to_have_count(1)
    expect(page.locator("#items tr:has(:checked)")).to_contain_text(["ready-02", "ready-05"])


def test_a_search_counts_what_came_or_says_that_it_did_not(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/?state=ready&q=ready-1")
    jobs.push_many([(b"ready-1 again", 900), (b"another", -1)])
    news = page.locator("[data-news]")
    expect(news).to_have_text("1 new item · show")
    news.click()
    expect(row_of(page, "ready-1 again")).to_have_count(1)
    for _ in range(2):
        jobs.push_many([(b"later", n) for n in range(600)], delay=timedelta(hours=1))
    open_live(page, "/queues/jobs/?state=delayed&q=needle")
    jobs.push(b"needle", 1, delay=timedelta(hours=2))
    expect(news).to_have_text("the queue changed · search again")
    news.click()
    expect(row_of(page, "needle")).to_have_count(1)


def test_an_empty_list_tells_what_came(page: Page, store: Store) -> None:
    queue = store.create_queue("bare")
    open_live(page, "/queues/bare/?state=ready")
    empty = page.get_by_role("heading", name="Nothing is ready")
    expect(empty).to_be_visible()
    queue.push(b"first", priority=1)
    expect(page.locator("[data-news]")).to_have_text("1 new item · show")
    expect(empty).to_be_hidden()
    page.locator("[data-news]").press("Enter")
    expect(rows_of(page)).to_have_count(1)


def test_an_act_in_the_sheet_leaves_the_list_where_it_is(page: Page, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    open_live(page, "/queues/jobs/?state=ready&low=0")
    page.evaluate("window.same = true")
    for words in ("ready-20", "ready-22", "ready-30"):
        row_of(page, words).locator("input").check()
    page.locator(".actbar button[value=move]").click()
    sheet = page.locator("#sheet")
    expect(sheet.get_by_role("heading", name="Move 3 items")).to_be_visible()
    expect(page.locator("#act-to")).to_be_focused()
    row_of(page, "ready-23").locator("input").check()  # the list is there to be chosen from
    scrolled = page.evaluate("scrollY")
    assert scrolled > 0
    page.fill("#act-to", "review")
    sheet.locator("button[name=do]").click()
    expect(page.locator(".toast")).to_contain_text("Moved 3 items to review.")
    expect(sheet).to_be_hidden()
    expect(page.locator("#items tr[data-gone]")).to_have_count(3)
    assert page.evaluate("[window.same, scrollY]") == [True, scrolled]
    expect(page).to_have_url(re.compile("low=0"))
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Undone: 3 items are as they were")
    expect(page.locator("#items tr[data-gone]")).to_have_count(0)
    expect(page.locator("[data-chosen]")).to_have_text("4 selected")
    assert page.evaluate("[window.same, scrollY]") == [True, scrolled]
    assert store.queue("review").depth() == 0
    page.get_by_role("button", name="Close").locator("visible=true").click()
    expect(page.locator(".toast")).to_have_count(0)


def move_two(page: Page) -> None:
    """Move two items to review in the sheet."""
    for words in ("ready-20", "ready-22"):
        row_of(page, words).locator("input").check()
    page.locator(".actbar button[value=move]").click()
    page.fill("#act-to", "review")
    page.locator("#sheet button[name=do]").click()
    expect(page.locator(".toast")).to_contain_text("Moved 2 items to review.")


def test_a_sheet_that_does_not_come_leaves_the_page_as_it_is(page: Page, jobs: Queue, strict: Any) -> None:
    strict.allowed.append("Failed to load resource|ERR_FAILED")
    open_live(page, "/queues/jobs/?state=ready")
    page.evaluate("window.same = true")
    pause = page.get_by_role("link", name="Pause")
    for fail in (lambda route: route.abort(), lambda route: route.fulfill(status=502, body="Bad Gateway")):
        page.route("**/pause/", fail)
        pause.press("Enter")
        expect(page.locator(".toast.bad")).to_contain_text("The server did not answer, and nothing was changed.")
        page.locator(".toast.bad [data-dismiss]").click()
        assert page.evaluate("window.same")
        page.unroute_all()
    pause.press("Enter")
    expect(page.locator("#pause-reason")).to_be_focused()


def test_a_sheet_that_covers_the_page_tells_that_another_did_not_come(
    new_page: NewPage, jobs: Queue, strict: Any
) -> None:
    strict.allowed.append("Failed to load resource|ERR_FAILED")
    page = new_page(viewport={"width": 390, "height": 800})
    open_live(page, "/queues/jobs/?state=ready&q=ready")
    page.locator(".everything a").first.click()
    other = page.locator("#sheet nav a:not([aria-current])").first
    alert = page.locator("#sheet").get_by_role("alert")
    page.route("**/queues/jobs/**", lambda route: route.abort())
    for _ in range(2):
        other.click()
        expect(alert).to_have_text("The server did not answer, and nothing was changed. Try again.")
        expect(alert).to_be_in_viewport()
    page.unroute_all()
    other.click()
    expect(alert).to_have_count(0)


def test_the_focus_is_not_lost_with_the_choice_or_a_toast(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/?state=ready")
    select, delete = page.locator("#items [data-select-page]"), page.locator(".actbar button[value=delete]")
    row_of(page, "ready-20").locator("input").check()
    delete.press("Enter")
    page.locator("#sheet button[name=do]").press("Enter")
    expect(delete).to_be_disabled()
    expect(select).to_be_focused()
    page.locator(".toast").get_by_role("button", name="Undo").press("Enter")
    expect(page.locator(".toast")).to_contain_text("Put back in its old place.")
    expect(select).to_be_focused()
    expect(delete).to_be_enabled()
    page.locator(".toast [data-dismiss]").press("Enter")
    expect(delete).to_be_focused()


def test_an_undo_of_what_has_gone_on_asks_in_the_sheet(page: Page, jobs: Queue, store: Store) -> None:
    review = store.create_queue("review")
    open_live(page, "/queues/jobs/?state=ready&low=0")
    page.evaluate("window.same = true")
    move_two(page)
    review.pop_min()
    undo = page.locator(".toast").get_by_role("button", name="Undo")
    undo.click()
    sheet = page.locator("#sheet")
    expect(sheet).to_contain_text("1 of 2 was popped, moved or changed after this. Nothing was undone.")
    sheet.get_by_role("link", name="Leave it in the trash").click()
    expect(sheet).to_be_hidden()
    expect(undo).to_be_focused()
    undo.click()
    sheet.get_by_role("button", name="Undo the other 1").click()
    expect(page.locator(".toast")).to_contain_text("1 has gone on since and was left alone.")
    expect(sheet).to_be_hidden()
    expect(page.locator("#items tr[data-gone]")).to_have_count(1)
    expect(page).to_have_url(re.compile("low=0"))
    assert page.evaluate("window.same")
    assert review.depth() == 0


def test_an_undo_that_is_refused_says_why_beside_the_list(page: Page, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    open_live(page, "/queues/jobs/?state=ready&low=0")
    page.evaluate("window.same = true")
    move_two(page)
    actions = store.actions("ann")
    actions.undo(store.trash.entries(act="move").entries[0].id)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Already put back")
    expect(page).to_have_url(re.compile("low=0"))
    assert page.evaluate("window.same")


def test_an_undo_in_the_tab_of_the_trash_keeps_the_tab(page: Page, jobs: Queue, store: Store) -> None:
    store.actions("ann").delete_item("jobs", jobs.items().items[3].id)
    open_live(page, "/queues/jobs/?state=trash")
    page.evaluate("window.same = true")
    expect(rows_of(page)).to_have_count(2)
    page.locator("#items").get_by_role("button", name="Undo: deleted").first.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Put back in its old place.")
    expect(rows_of(page)).to_have_count(1)
    expect(page.locator("#tab-trash")).to_have_attribute("aria-current", "page")
    assert page.evaluate("window.same")
    assert jobs.depth() == 69


def test_what_was_popped_before_is_not_shown_again_by_another_act(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/pop/?end=min")
    page.locator("main button.danger, main button.primary").first.click()
    expect(page.locator("main .taken")).to_be_visible()
    page.evaluate("window.same = true")
    page.locator("#items .pick input").first.check()
    page.locator(".actbar button[value=delete]").click()
    page.locator("#sheet button[name=do]").click()
    expect(page.locator(".toast")).to_contain_text("Deleted the item.")
    expect(page.locator("#sheet")).to_be_hidden()
    assert page.evaluate("window.same")


def test_a_list_stays_whatever_way_its_address_is_written(page: Page, store: Store) -> None:
    store.create_queue("orders:eu").push_many([(b"%d" % n, n) for n in range(3)])
    open_live(page, "/queues/orders%3Aeu/?state=ready&low=1")
    page.evaluate("window.same = true")
    page.locator("#items .pick input").first.check()
    page.locator(".actbar button[value=delete]").click()
    page.locator("#sheet button[name=do]").click()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Put back in its old place.")
    assert page.evaluate("window.same")


def test_a_rename_in_the_sheet_offers_to_name_it_back(page: Page, jobs: Queue, strict: Strict) -> None:
    """The page that is left asks nothing more by the old name: such an answer would take the toast."""
    strict.allowed.append("404 .*/queues/(jobs|work)/(jobs|history/data)/")
    strict.allowed.append("404 .*/queues/work/age/")  # under way while it was named back
    open_live(page, "/queues/jobs/")
    page.locator("summary.button", has_text="More").click()
    page.get_by_role("link", name="Rename…").click()
    page.fill("#sheet [name=name]", "work")
    aged: list[Route] = []
    left: list[Route] = []
    page.route(re.compile("/queues/jobs/age/"), lambda route: aged.append(route))
    page.route(re.compile("/queues/work/$"), lambda route: left.append(route))
    page.locator("#sheet form button.primary").click(no_wait_after=True)
    until(page, lambda: left)
    left.pop(0).continue_()
    expect(page.locator("h1")).to_have_text("work")
    assert aged == []
    page.get_by_role("button", name="Name it back").click()
    expect(page.locator("h1")).to_have_text("jobs")


def test_an_act_on_rows_that_left_names_them(page: Page, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    open_live(page, "/queues/jobs/?state=ready")
    boxes = page.locator("#items .pick input")
    ids = [str(boxes.nth(n).get_attribute("value")) for n in range(5)]
    for n in range(5):
        boxes.nth(n).check()
    store.actions("ann").move_items("jobs", ids[1:3], "review")
    jobs.pop_min()
    expect(page.locator("#items tr[data-gone]")).to_have_count(3)
    page.locator(".actbar button[value=delete]").click()
    sheet = page.locator("#sheet")
    expect(sheet).to_contain_text("3 of 5 are gone: 2 were moved, of 1 no act on it alone is recorded.")
    for item_id in ids[:3]:
        expect(sheet.locator(".fates")).to_contain_text(item_id[-10:])
    expect(sheet.locator(".fates")).to_contain_text("ann moved it to review")
    sheet.locator("button[name=do]").click()
    expect(page.locator(".toast")).to_contain_text("Deleted 2 items.")


def test_what_is_refused_stays_in_the_sheet(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/?state=ready")
    row_of(page, "ready-02").locator("input").check()
    page.locator(".actbar button[value=move]").click()
    page.fill("#act-to", "nowhere")
    page.fill("#sheet [name=reason]", "so typed")
    page.locator("#sheet button[name=do]").click()
    expect(page.locator("#sheet [role=alert]")).to_contain_text("No queue has this name")
    expect(page.locator("#act-to")).to_be_focused()
    expect(page.locator("#sheet [name=reason]")).to_have_value("so typed")
    page.keyboard.press("Escape")
    expect(page.locator("#sheet")).to_be_hidden()
    expect(page.locator(".actbar button[value=move]")).to_be_focused()
    assert jobs.depth() == 69


@pytest.mark.parametrize("width", [390, 1440])
def test_the_push_drawer_by_keyboard(width: int, new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": width, "height": 800})
    open_live(page, "/queues/jobs/?state=ready")
    link = page.get_by_role("link", name="Push", exact=True)
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator("#push-value")).to_be_focused()
    page.keyboard.type("half a val p")
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#push-value")).to_have_value("half a val p")
    page.keyboard.press("End")
    page.keyboard.type("x")
    page.fill("#push-priority", "high")
    page.locator("#drawer button.primary").click()
    expect(page.locator("#drawer [role=alert]")).to_contain_text("Fix the errors below")
    page.fill("#push-priority", "-3")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("with priority -3.")
    expect(page.locator("#drawer")).to_be_hidden()
    expect(page.locator("[data-news]")).to_have_text("1 new item · show")
    page.keyboard.press("p")
    expect(page.locator("#push-value")).to_have_value("")
    assert jobs.peek_min().value == b"half a val px"


def test_acts_are_behind_the_chosen_row_for_the_keyboard(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/?state=ready")
    box = row_of(page, "ready-15").locator("input")
    box.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    move = page.locator(".row-acts button[value=move]")
    expect(move).to_be_focused()
    expect(move).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#sheet").get_by_role("heading", name="Move this item")).to_be_visible()
    page.keyboard.press("Escape")
    expect(move).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    link = row_of(page, "ready-16").locator("td a").first
    expect(link).to_be_focused()
    page.keyboard.press("Tab")
    expect(move).to_be_focused()
    expect(move).to_be_visible()


def test_without_scripts_all_of_it_is_pages(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/queues/jobs/?state=ready")
    row_of(page, "ready-03").locator("input").check()
    page.locator(".actbar button[value=delete]").click()
    page.locator("button[name=do]").click()
    expect(page.locator(".toast")).to_contain_text("Deleted the item.")
    page.goto("/queues/jobs/")
    page.get_by_role("link", name="Push", exact=True).click()
    page.fill("#push-value", "by hand")
    page.fill("#push-priority", "-4")
    page.locator("button.primary").first.click()
    expect(page.locator(".toast")).to_contain_text("with priority -4.")


def test_the_focus_returns_to_where_a_key_opened_the_drawer(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/?state=ready")
    box = row_of(page, "ready-03").locator("input")
    box.focus()
    page.keyboard.press("p")
    expect(page.locator("#drawer textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(box).to_be_focused()


def test_a_menu_is_shut_when_the_focus_leaves_it(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    menu = page.locator("details.drop").first
    menu.locator("summary").press("Enter")
    expect(menu).to_have_attribute("open", "")
    menu.locator("a").last.press("Tab")
    expect(menu).not_to_have_attribute("open", "")
    expect(page.locator(":focus")).to_have_text("Push")


def test_what_was_typed_is_sent_after_a_login_beside_it(
    new_page: NewPage, site: Site, jobs: Queue, strict: Strict
) -> None:
    """The session ends while a form is filled in."""
    strict.allowed += [r"status of 401", r"WebSocket .* 403"]
    page = new_page(storage_state=None)
    sign_in(page, "admin", site.password)
    open_live(page, "/queues/jobs/")
    page.locator("[data-drawer]").click()
    page.fill("#drawer [name=value]", "typed with care")
    page.fill("#drawer [name=priority]", "7")
    page.context.clear_cookies(name="pqadmin_session")
    page.locator("#drawer button.primary").click()
    expect(page.locator("#drawer [role=alert]")).to_contain_text("Nothing was changed: you are not logged in any more.")
    with page.context.expect_page() as opened:
        page.locator("#drawer [role=alert] a").click()
    opened.value.fill("input[name=username]", "admin")
    opened.value.fill("input[name=password]", site.password)
    opened.value.click("main button.primary")
    opened.value.wait_for_url(lambda url: "/accounts/login" not in url)
    page.locator("#drawer button.primary").click()
    expect(page.locator(".toast")).to_contain_text("Pushed 15 B with priority 7")
    assert b"typed with care" in [item.value for item in jobs.peek_many(20)]


def test_what_was_typed_into_a_page_is_sent_after_a_login_beside_it(
    new_page: NewPage, site: Site, jobs: Queue, strict: Strict
) -> None:
    """The session ends while the settings are changed."""
    strict.allowed += [r"status of 401"]
    page = new_page(storage_state=None)
    sign_in(page, "admin", site.password)
    page.goto("/queues/jobs/settings/")
    page.locator("#settings [name=note]").fill("typed with care")
    page.context.clear_cookies(name="pqadmin_session")
    page.locator("#settings button.primary").click()
    alert = page.locator("#settings [role=alert]")
    expect(alert).to_contain_text("Nothing was changed: you are not logged in any more.")
    expect(alert).to_be_in_viewport()
    with page.context.expect_page() as opened:
        alert.locator("a").click()
    opened.value.fill("input[name=username]", "admin")
    opened.value.fill("input[name=password]", site.password)
    opened.value.click("main button.primary")
    opened.value.wait_for_url(lambda url: "/accounts/login" not in url)
    page.locator("#settings button.primary").click()
    expect(page.locator(".toast")).to_contain_text("Saved: note")
    assert jobs.status().note == "typed with care"


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_axe_finds_nothing_in_sheet_drawer_and_aged_list(
    width: int, scheme: str, new_page: NewPage, jobs: Queue
) -> None:
    page = new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    open_live(page, "/queues/jobs/?state=ready")
    jobs.pop_min()
    jobs.push(b"new", priority=-5)
    expect(page.locator("[data-news]")).to_have_text("1 new item · 1 gone · show")
    row_of(page, "ready-03").locator("input").check()
    found = {"list": findings(page)}
    page.locator(".actbar button[value=delete]").click()
    expect(page.locator("#sheet")).to_be_visible()
    found["sheet"] = findings(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Push", exact=True).click()
    expect(page.locator("#push-value")).to_be_focused()
    found["drawer"] = findings(page)
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert (found, overflow) == ({"list": [], "sheet": [], "drawer": []}, 0)


def test_an_old_item_has_no_step_of_its_own_beside_why_nothing_is_done(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/queues/jobs/")
    following = page.locator("[data-reason=old] .next")
    page.locator("[data-reason=old]").evaluate("reason => { reason.hidden = false; }")
    for cause in ("no-consumer", "none-taken", "nothing-done"):
        assert following.evaluate("next => getComputedStyle(next).display") != "none", cause
        beside = page.locator(f"[data-reason={cause}]")
        beside.evaluate("reason => { reason.hidden = false; }")
        assert following.evaluate("next => getComputedStyle(next).display") == "none", cause
        beside.evaluate("reason => { reason.hidden = true; }")


def test_notices_and_hints_of_a_form_keep_their_distance(page: Page, jobs: Queue, store: Store) -> None:
    store.actions("bob").begin_bulk("delete", "jobs", rate=1.0)
    page.goto("/queues/jobs/purge/")
    notices = page.locator("form.body > .notice")
    expect(notices).to_have_count(2)
    first, second = (notices.nth(n).bounding_box() for n in (0, 1))
    assert second["y"] >= first["y"] + first["height"] + 8
    page.goto("/queues/jobs/?state=ready")
    page.locator(".everything a[href*='act=delete']").click()
    hint = page.locator("#sheet .help", has_text="instead of in chunks")
    expect(hint).to_be_visible()
    notice, button = (page.locator(f"#sheet {part}").first.bounding_box() for part in (".jobs-here", "[data-close]"))
    assert notice["x"] + notice["width"] <= button["x"], "the button to close it lies over the notice"
    assert hint.bounding_box()["x"] >= page.locator("#sheet").bounding_box()["x"] + 8


#: Applies a row as its frames bring it, but with a stall that has ended or not; returns whether the next step shows.
APPLY_STALL = """async ([row, until]) => {
    const { applyRow } = await import("/static/pqadmin/js/row.js");
    const stall = { code: "no-consumer", level: "critical", since: 0, value: null, limit: 60, until };
    applyRow(document.querySelector("section[data-queue]"), { ...row, reasons: [stall] }, 300_000);
    return document.querySelector("[data-reason=no-consumer] .next").checkVisibility();
}"""


def test_a_stall_that_has_ended_says_no_more_what_to_do(page: Page, jobs: Queue) -> None:
    frames: list[dict[str, Any]] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda text: frames.append(json.loads(text))))
    open_live(page, "/queues/jobs/")
    row = next(frame["rows"][0] for frame in frames if frame["t"] == "frame")
    assert [page.evaluate(APPLY_STALL, [row, until]) for until in (None, 240_000, None)] == [True, False, True]
