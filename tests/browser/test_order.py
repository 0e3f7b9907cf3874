"""The overview keeps its order: at once where nothing is pointed at, else behind a pill."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from queues import Store
from tests.browser.conftest import create_queues, open_live, ready_of, until, wait_live, wait_value

#: The sum of what moved on the page without a person's doing.
_SHIFTS = """
    window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
    }).observe({type: "layout-shift", buffered: true});
"""
#: Milliseconds after the pointer left.
SOON = 2_000


_NAMES = "[...document.querySelectorAll('tr[data-queue]')].map((row) => row.dataset.queue)"


def order(page: Page) -> list[str]:
    """Return the names of the rows as shown."""
    return list(page.evaluate(_NAMES))


def expect_order(page: Page, *names: str, within: int | None = None) -> None:
    """See the rows in this order."""
    page.wait_for_function(f"(names) => names.join() === {_NAMES}.join()", arg=list(names), timeout=within)


def test_trouble_moves_to_the_top_by_itself_and_shifts_nothing(page: Page, store: Store) -> None:
    names = [f"q{n:02}" for n in range(40)]
    queues = [store.create_queue(name) for name in names]
    page.add_init_script(_SHIFTS)
    open_live(page, "/")
    wait_value(page, ready_of("q39"), 0)
    page.evaluate("scrollTo(0, 900)")
    before = page.evaluate("scrollY")
    page.evaluate("window.shifted = 0")
    queues[31].pause(reason="", by="ops-2")
    expect_order(page, "q31", *names[:31], *names[32:])
    # A row above that takes one line more is made up for: what is in sight stays where it is.
    assert 0 < before <= page.evaluate("scrollY") <= before + 40
    assert page.evaluate("window.shifted") <= 0.02


def test_the_heading_of_a_filtered_group_adds_up_what_is_shown(page: Page, store: Store) -> None:
    shown, other = store.create_queue("a:x"), store.create_queue("a:y")
    shown.push_many([(b"x", 1)] * 3)
    other.push_many([(b"x", 1)] * 40)
    open_live(page, "/?group=group&q=a:x")
    heading = page.locator("[data-group-ready]")
    expect(heading).to_have_attribute("data-value", "3")
    other.push(b"x", 1)
    shown.push(b"x", 1)
    wait_value(page, ready_of("a:x"), 4)
    expect(heading).to_have_attribute("data-value", "4")
    shown.push(b"x", 1, delay=600)
    expect(page.locator("[data-sum=delayed]")).to_have_text("1")
    expect(page.locator("[data-sum=oldest]")).not_to_have_text("–")
    shown.pause(reason="", by="ops-2")
    expect(page.locator("[data-group-worst]")).to_have_text("warning: a:x")
    expect(page.locator("[data-sum=oldest]")).to_have_text("–")  # as in the tile: nothing of it is claimable
    expect(page.locator("[data-sum=levels]")).to_have_text("1\u00a0warning")


def test_the_number_of_queues_is_told_in_words_that_fit(page: Page, store: Store) -> None:
    store.create_queue("a")
    open_live(page, "/")
    queues = page.locator("[data-total=queues]")
    expect(queues).to_have_text("in 1 queue")
    store.create_queue("b")
    expect(queues).to_have_text("in 2 queues")


def test_a_pill_tells_of_what_moved_while_the_pointer_is_in_the_table(page: Page, store: Store) -> None:
    names = ["a", "b", "c", "d"]
    queues = {name: store.create_queue(name) for name in names}
    open_live(page, "/")
    wait_value(page, ready_of("d"), 0)
    pill = page.locator("#reorder")
    expect(pill).to_be_hidden()
    page.locator(ready_of("b")).hover()
    queues["d"].pause(reason="", by="ops-2")
    expect(pill).to_have_text("1 queue changed places · update")
    queues["c"].pause(reason="", by="ops-2")
    expect(pill).to_have_text("2 queues changed places · update")
    assert order(page) == names
    page.mouse.move(1, 1)
    expect_order(page, "c", "d", "a", "b", within=SOON)
    expect(pill).to_be_hidden()


def test_the_pill_is_pressed_by_keyboard_and_the_focus_stays(page: Page, store: Store) -> None:
    names = ["a", "b", "c"]
    queues = {name: store.create_queue(name) for name in names}
    open_live(page, "/")
    link = page.locator('tr[data-queue="a"] a[data-part=link]')
    link.focus()
    queues["c"].pause(reason="", by="ops-2")
    pill = page.locator("#reorder")
    expect(pill).to_have_text("1 queue changed places · update")
    expect(link).to_be_focused()
    page.keyboard.press("u")
    expect_order(page, "c", "a", "b", within=SOON)
    expect(link).to_be_focused()

    queues["b"].pause(reason="", by="ops-2")
    expect(pill).to_have_text("1 queue changed places · update")
    assert order(page) == ["c", "a", "b"]
    for _ in range(30):
        if pill.evaluate("pill => pill === document.activeElement"):
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect_order(page, "b", "c", "a", within=SOON)
    expect(pill).to_have_text("in order")
    expect(pill).to_be_focused()
    page.keyboard.press("Tab")
    expect(pill).to_be_hidden()


def test_trouble_behind_the_window_comes_into_the_table(page: Page, store: Store) -> None:
    queues = create_queues(store, [f"q{n:03}" for n in range(130)])
    open_live(page, "/")
    wait_value(page, ready_of("q000"), 0)
    page.mouse.move(1, 1)
    warnings = page.locator("[data-total=level][data-of=warning]")
    queues[120].pause(reason="", by="ops-2")
    # What is on no screen is read in turns.
    expect(warnings).to_have_text("1", timeout=25_000)
    rows = page.locator("tr[data-queue]")
    expect(rows.first).to_have_attribute("data-queue", "q120", timeout=15_000)
    expect(rows).to_have_count(100)
    link = page.locator('tr[data-queue="q001"] a[data-part=link]')
    link.focus()
    queues[122].pause(reason="", by="ops-2")
    expect(warnings).to_have_text("2", timeout=25_000)
    pill = page.locator("#reorder")
    expect(pill).to_have_text("1 worse queue is further down · update")
    assert "q122" not in order(page)
    page.keyboard.press("u")
    expect(rows.nth(1)).to_have_attribute("data-queue", "q122")
    expect(link).to_be_focused()
    queues[122].push(b"x", priority=1)
    wait_value(page, ready_of("q122"), 1)
    expect(pill).to_be_hidden()


@pytest.mark.parametrize("address", ["/?q=q", "/?group=group", "/?sort=-ready"])
def test_what_belongs_into_a_part_or_another_order_comes_into_it(page: Page, store: Store, address: str) -> None:
    queues = create_queues(store, [f"g{n // 2:03}:q{n:03}" for n in range(130)])

    def promote(n: int) -> None:
        queues[n].push_many([(b"x", 1)] * (500 + n))
        queues[n].pause(reason="", by="ops-2")

    page.clock.install()
    open_live(page, address)
    wait_value(page, ready_of("g000:q000"), 0)
    page.mouse.move(1, 1)
    promote(120)
    rows = page.locator("tr[data-queue]")

    def is_first() -> bool:
        page.clock.run_for(1_000)  # the page asks which queues belong here every ten seconds
        return rows.first.get_attribute("data-queue") == "g060:q120"

    until(page, is_first)
    expect(rows).to_have_count(100)
    page.locator(ready_of("g000:q000")).hover()
    promote(124)
    pill, told = page.locator("#reorder"), re.compile(r"^\d queues? further down belongs? here.* · update$")

    def is_told() -> bool:
        page.clock.run_for(1_000)
        return told.match(pill.inner_text()) is not None

    until(page, is_told)
    assert "g062:q124" not in order(page)
    page.keyboard.press("u")
    expect(page.locator('tr[data-queue="g062:q124"]')).to_be_visible()
    page.mouse.move(1, 1)
    expect(pill).to_be_hidden()
    assert {"g060:q120", "g062:q124"} <= set(order(page)[:4])


def test_an_outage_of_more_queues_than_the_window_holds_fills_it_once(page: Page, store: Store) -> None:
    queues = create_queues(store, [f"q{n:03}" for n in range(250)])
    open_live(page, "/")
    wait_value(page, ready_of("q000"), 0)
    page.mouse.move(1, 1)
    for queue in queues[100:]:
        queue.pause(reason="", by="ops-2")
    expect(page.locator("[data-total=level][data-of=warning]")).to_have_text("150", timeout=40_000)
    rows, troubled = page.locator("tr[data-queue]"), page.locator("tr[data-queue][data-level=warning]")
    expect(troubled).to_have_count(100, timeout=25_000)
    expect(rows).to_have_count(100)
    expect(page.locator("#reorder")).to_be_hidden()
    # What is behind the window, in trouble or not, comes by scrolling.
    link = page.locator("#queues .pager a[rel=next]")
    link.scroll_into_view_if_needed()
    expect(rows).to_have_count(200)
    expect(troubled).to_have_count(150)
    link.scroll_into_view_if_needed()
    expect(rows).to_have_count(250)
    assert len(set(order(page))) == 250


def test_what_moved_is_announced_and_its_pill_is_a_button(page: Page, store: Store) -> None:
    store.create_queue("a")
    last = store.create_queue("b")
    page.clock.install()
    open_live(page, "/")
    wait_value(page, ready_of("b"), 0)
    page.locator(ready_of("a")).hover()
    last.pause(reason="", by="ops-2")
    expect(page.get_by_role("button", name=re.compile("changed places"))).to_be_visible()
    for depth in range(1, 8):  # the warning was announced first, and the next word comes after 20 s of the page's time
        last.push(b"x", priority=1)
        wait_value(page, ready_of("b"), depth)
        page.clock.run_for(3_000)
    expect(page.locator("#live-region")).to_contain_text("1 queue changed places")


def test_a_sorted_column_stays_sorted(page: Page, store: Store) -> None:
    queues = {name: store.create_queue(name) for name in ("a", "b", "c", "d")}
    for depth, queue in enumerate(queues.values()):
        queue.push_many([(b"x", 1)] * depth)
    open_live(page, "/?group=name&sort=-ready")
    wait_value(page, ready_of("d"), 3)
    expect_order(page, "d", "c", "b", "a")
    queues["a"].push_many([(b"x", 1)] * 500)
    expect_order(page, "a", "d", "c", "b", within=5_000)
    store.create_queue("new").push_many([(b"x", 1)] * 30)
    expect_order(page, "a", "new", "d", "c", "b", within=8_000)
    page.reload()
    expect_order(page, "a", "new", "d", "c", "b")


def test_names_are_in_the_servers_order(page: Page, store: Store) -> None:
    """Among them a letter beyond 16 bits, which JavaScript sorts before one that is smaller."""
    names = ["B", "a", "a:b", "ab", "é", "ｚ", "𐐨"]
    for name in names:
        store.create_queue(name)
    for address, wanted in (("/?group=name", names), ("/?group=name&sort=-name", names[::-1])):
        open_live(page, address)
        wait_value(page, ready_of("B"), 0)
        first = order(page)
        assert first == wanted
        page.locator("#queues tr[data-queue]").first.evaluate("row => row.parentElement.append(row)")
        assert order(page) != wanted
        expect_order(page, *wanted, within=SOON)


def test_rows_beside_the_deleted_one_do_not_shift(page: Page, store: Store) -> None:
    for n in range(12):
        store.create_queue(f"q{n:02}")
    page.add_init_script(_SHIFTS)
    page.clock.install()
    open_live(page, "/")
    store.delete_queue("q03")
    row = page.locator('tr[data-queue="q03"]')
    expect(row).to_have_attribute("data-level", "gone")
    page.evaluate("window.shifted = 0")
    row.evaluate("row => { row.dataset.gone -= 31000 }")
    page.clock.run_for(5_000)
    expect(row).to_have_count(0)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert page.evaluate("window.shifted") <= 0.02


def test_groups_collapse_by_keyboard_show_their_worst_and_stay_so(page: Page, store: Store) -> None:
    queues = {name: store.create_queue(name) for name in ("a:1", "b:1", "b:2")}
    open_live(page, "/?group=group")
    fold = page.locator("#fold-b\\:")
    fold.focus()
    page.keyboard.press("Enter")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(fold).to_be_focused()
    expect_order(page, "a:1")
    worst = page.locator('tr[data-group="b:"] [data-group-worst]')
    queues["b:2"].pause(reason="", by="ops-2")
    expect(worst).to_have_text("warning: b:2")
    page.locator("h1").evaluate("() => document.activeElement.blur()")
    heads = page.locator("tr[data-group]")
    expect(heads.first).to_have_attribute("data-group", "b:")
    store.create_queue("b:3")
    store.create_queue("c:1")
    expect_order(page, "a:1", "c:1")
    page.reload()
    expect_order(page, "a:1", "c:1")
    expect(worst).to_have_text("warning: b:2")
    fold.click()
    expect_order(page, "b:2", "b:1", "b:3", "a:1", "c:1")


def test_a_queue_is_paused_and_resumed_from_its_row_by_keyboard(page: Page, store: Store) -> None:
    store.create_queue("jobs")
    open_live(page, "/?q=jobs")
    page.get_by_role("link", name="Pause…: jobs").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[name=reason]")).to_be_focused()
    page.keyboard.type("ledger closing")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/\?q=jobs$"))
    expect(page.locator('tr[data-queue="jobs"] [data-field=verdict]')).to_contain_text("ledger closing")
    page.get_by_role("link", name="Resume…: jobs").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("ledger closing")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Resumed: items can be taken again.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/\?q=jobs$"))


def test_a_group_is_paused_by_keyboard(page: Page, store: Store) -> None:
    for name in ("a:1", "a:2", "b:1"):
        store.create_queue(name)
    open_live(page, "/?group=group")
    page.locator('tr[data-group="a:"] [data-pause-group]').focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 queues of the group:")).to_be_visible()
    page.keyboard.type("provider is down")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Paused 2 queues: pushes go on.")).to_be_visible()
    expect(page.locator('tr[data-group="a:"] [data-group-worst]')).to_have_text("warning: a:1")
    page.get_by_role("button", name="Resume").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Resumed 2 queues.")).to_be_visible()


def test_compact_rows_are_low_and_remembered(page: Page, store: Store) -> None:
    store.create_queue("mail:out").pause(reason="a long reason, " * 9, by="ops-2")
    jobs = store.create_queue("mail:in")
    jobs.push_many([(b"x", n) for n in range(9)])
    jobs.push_many([(b"x", n, timedelta(hours=1)) for n in range(1_000)])
    held = jobs.lease(seconds=600, worker="w")
    assert held
    page.goto("/?group=group&sort=-ready")
    high = page.locator("tr[data-queue]").evaluate_all("rows => rows.map((row) => row.offsetHeight)")
    page.get_by_role("button", name="Compact").click()
    expect(page).to_have_url(re.compile(r"group=group&sort=-ready$"))
    wait_live(page)
    heights = page.locator("tr[data-queue]").evaluate_all("rows => rows.map((row) => row.offsetHeight)")
    assert heights == [36, 36]
    assert min(high) > 36
    row = page.locator('tr[data-queue="mail:in"]')
    expect(row.locator("small.also:visible")).to_have_text("1 leased", use_inner_text=True)
    jobs.ack(held)
    expect(row.locator("small.also:visible")).to_have_text("1 000 delayed", use_inner_text=True)
    assert row.evaluate("row => row.offsetHeight") == 36
    other = page.context.new_page()
    other.goto("/")
    expect(other.locator("table.q.compact")).to_have_count(1)
    page.get_by_role("button", name="Compact").click()
    expect(page.locator("table.q.compact")).to_have_count(0)


def test_a_page_drawn_before_its_queues_were_deleted_shows_those_that_are_there(page: Page, store: Store) -> None:
    names = [f"q{n:03}" for n in range(130)]
    create_queues(store, names)
    held: list[Route] = []
    page.route("**/main.*.js", lambda route: held.append(route))
    until(page, lambda: page.goto("/", wait_until="commit") and page.locator("tr[data-queue=q099]").count())
    until(page, lambda: held)
    for name in names:
        store.delete_queue(name)
    create_queues(store, ["here"])
    held[-1].continue_()
    # A row that is marked as gone stays for 30 seconds.
    expect(page.locator("tr[data-queue=here]")).to_be_visible(timeout=20_000)
    expect(page.locator("tr[data-queue]")).to_have_count(1)
