"""Every page: no accessibility findings, no faults; all acts work without scripts. By keyboard: see test_keyboard."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as TooLate

from queues import Store
from tests.browser.axe import findings, findings_by_day_and_night
from tests.browser.conftest import NewPage, Site, Strict, open_live, reload_until_shown, wait_live


@pytest.fixture
def furnished(store: Store) -> Store:
    """A store with something of everything."""
    jobs = store.create_queue("orders:eu:refunds")
    jobs.push_many([(b'{"order": %d}' % n, n % 12) for n in range(300)])
    jobs.push(b"\xff\x00binary", priority=10**30)
    store.create_queue("sms:outbound", kind="fifo").enqueue_many([b"one", b"two"])
    store.create_queue("words", priority_type="str").push("ünï".encode(), priority="zeta")
    store.create_queue("empty")
    paused = store.create_queue("reports:monthly")
    paused.push(b"r", priority=1)
    paused.pause(reason="ledger closing", by="ops-2")
    store.actions("admin").pop("orders:eu:refunds", reason="a test")
    return store


PAGES = [
    "/",
    "/?q=nothing-matches",
    "/?group=group",
    "/?group=name&sort=-ready",
    "/queues/new/",
    "/queues/orders:eu:refunds/",
    "/queues/orders:eu:refunds/push/",
    "/queues/orders:eu:refunds/pop/?end=max",
    "/queues/orders:eu:refunds/pause/",
    "/queues/orders:eu:refunds/rename/",
    "/queues/orders:eu:refunds/delete/",
    "/queues/sms:outbound/",
    "/queues/reports:monthly/",
    "/queues/orders:eu:refunds/push/many/",
    "/queues/orders:eu:refunds/settings/",
    "/queues/orders:eu:refunds/history/?span=1h",
    "/queues/empty/",
    "/charts/?span=1h",
    "/search/?q=order",
    "/targets/",
    "/audit/",
    "/trash/",
    "/styleguide/",
    "/accounts/password/",
    "/tokens/",
    "/tokens/new/",
    "/queues/orders:eu:refunds/purge/",
    "/queues/orders:eu:refunds/export/",
    "/queues/orders:eu:refunds/bulk/?state=ready&act=move",
    "/targets/new/",
    "/attach/",
    "/jobs/",
    "/boards/",
    "/boards/new/",
    "/people/",
    "/people/new/",
    "/people/1/",
    "/accounts/me/",
    "/keys/",
]


#: Widths of windows, from a small phone's to a large screen's.
WIDTHS = (320, 390, 768, 1280, 2560)
#: Whether the page scrolls sideways, once charts have followed the size of the window: they do so by script.
SIDEWAYS = """async () => {
    if (document.querySelector("canvas"))
        for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
    return document.documentElement.scrollWidth > document.documentElement.clientWidth;
}"""
#: What of a row of the overview covers what: its lines, numbers, ends, ages and the mix.
OVERLAPS = """() => [...document.querySelectorAll("tr[data-queue]")].flatMap((row) => {
  const parts = [...row.querySelectorAll(".spark, .mix, .end b, .end time, .ready > span, .name a, .num")];
  const places = parts.flatMap((part) => {
    const range = document.createRange();
    range.selectNodeContents(part);
    const text = part.matches(".ready > span, .num, time"); // a name is cut by its box
    return [...(text ? range : part).getClientRects()].map((place) => [part, place]);
  });
  return places.flatMap(([part, a], n) => places.slice(n + 1).filter(([other, b]) => other !== part &&
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([other]) => [row.dataset.queue, part.outerHTML, other.outerHTML].map((each) => each.slice(0, 60))));
})"""


def overflows(page: Page, widths: Sequence[int]) -> list[int]:
    """Return at which widths of the window the page scrolls sideways."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        if page.evaluate(SIDEWAYS):
            found.append(width)
    return found


def test_axe_finds_nothing_and_no_page_scrolls_sideways(new_page: NewPage, furnished: Store) -> None:
    """Each page is loaded once: by day and by night, and at every width."""
    page = new_page()
    found: dict[str, object] = {}
    for path in PAGES:
        page.set_viewport_size({"width": 1280, "height": 720})
        answer = page.goto(path)
        assert answer.status == 200, path
        if page.locator("body[data-live-topic]").count():
            wait_live(page)
        faults = {"axe": findings_by_day_and_night(page), "scrolls sideways at": overflows(page, WIDTHS)}
        if any(faults.values()):
            found[path] = faults
    assert found == {}


def test_axe_finds_nothing_on_an_item_page_without_a_queue_and_at_login(
    new_page: NewPage, furnished: Store, strict: Strict
) -> None:
    strict.allowed.append("status of 404")
    page = new_page()
    page.goto("/queues/no-such-queue/")
    assert findings(page) == []
    item = furnished.queue("orders:eu:refunds").peek_min()
    page.goto(f"/queues/orders:eu:refunds/items/{item.id}/")
    assert findings(page) == []
    stranger = new_page(storage_state=None)
    stranger.goto("/accounts/login/")
    assert findings(stranger) == []


#: What is pressed, chosen or typed into, in sight, that is less high than a finger needs. Values are for reading.
SMALL = """() => [...document.querySelectorAll(
    "button, .button, select, summary, nav a, .pick label, input:not([type=hidden], [type=radio], [type=checkbox])"
)].filter((e) => e.checkVisibility() && !e.closest(".tree, .bytes, .crumbs") && e.offsetWidth > 1)
  .map((e) => [e.outerHTML.slice(0, 90), Math.round(e.getBoundingClientRect().height)])
  .filter(([, high]) => high < 44)"""


def test_a_finger_meets_every_control_of_a_phone(new_page: NewPage, furnished: Store) -> None:
    page = new_page(viewport={"width": 360, "height": 740}, has_touch=True)
    for path in PAGES:
        page.goto(path)
        with suppress(TooLate):  # on a busy machine a page is laid out for a finger a moment after it is loaded
            page.wait_for_function(f"() => !({SMALL})().length", timeout=10_000)
        assert page.evaluate(SMALL) == [], path


@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_is_drawn_or_offered_of_a_queue_that_cannot_be_read(
    scripts: bool, new_page: NewPage, store: Store
) -> None:
    good, bad = store.create_queue("good"), store.create_queue("bad")
    good.push(b"x", priority=1)
    key = store.context.keyspace.configs.key(bad.id)
    config = store.transact(lambda tr: tr.get(key).wait())
    assert config is not None
    store.transact(lambda tr: tr.set(key, b"\x07nonsense"))
    page = new_page(java_script_enabled=scripts)
    page.goto("/")
    if not scripts:
        reload_until_shown(page, page.locator("tr[data-queue=good]"))
    for part in (".mix", "[data-part=push]"):
        expect(page.locator(f"tr[data-queue=good] {part}")).to_be_visible()
        expect(page.locator(f"tr[data-queue=bad] {part}")).not_to_be_visible()
    store.transact(lambda tr: tr.set(key, config))  # a queue that cannot be read cannot be deleted either


def test_the_end_of_a_pause_is_asked_for_when_it_is_a_moment(page: Page, store: Store) -> None:
    store.create_queue("jobs")
    page.goto("/queues/jobs/pause/")
    expect(page.get_by_label("Moment")).not_to_be_visible()
    page.get_by_label("Resumes").select_option("at")
    expect(page.get_by_label("Moment")).to_be_visible()
    expect(page.get_by_label("Time zone").last).to_be_visible()


def test_the_question_is_on_the_screen_with_its_answer(new_page: NewPage, store: Store) -> None:
    store.create_queue("jobs").push(json.dumps({f"key {n}": n for n in range(60)}).encode(), priority=1)
    page = new_page(viewport={"width": 1440, "height": 900})
    for end in ("max", "min"):
        page.goto(f"/queues/jobs/pop/?end={end}")
        expect(page.locator("#pop-reason")).to_be_focused()
        expect(page.locator("#pop-title")).to_be_in_viewport(ratio=1)
        expect(page.locator("form button.primary")).to_be_in_viewport(ratio=1)


def test_no_page_scrolls_sideways_in_chinese(new_page: NewPage, furnished: Store) -> None:
    page = new_page(viewport={"width": 320, "height": 800}, locale="zh-CN")
    for path in PAGES:
        page.goto(path)
        assert overflows(page, [320]) == [], path


def test_the_help_of_the_filter_opens_whole(new_page: NewPage, furnished: Store) -> None:
    page = new_page()
    page.goto("/")
    summary, told = page.locator(".filter-help summary"), page.locator("#filter-help")
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 1_000})
        summary.click()
        expect(told).to_be_in_viewport(ratio=1)
        summary.click()
        expect(told).to_be_hidden()


OUTAGE = """
from django.test import RequestFactory
from pqadmin.pages.error_pages import outage
from queues.errors import StoreUnavailable
print(outage(RequestFactory().get("/"), StoreUnavailable("at lunch")).content.decode())
"""


def test_the_page_of_an_outage_goes_on_by_itself(page: Page, site: Site, store: Store, strict: Strict) -> None:
    strict.allowed.append("status of 503")
    store.create_queue("jobs")
    text = site.manage("shell", "-v", "0", "-c", OUTAGE)
    page.clock.install()
    page.route("**/queues/jobs/", lambda route: route.fulfill(status=503, body=text, content_type="text/html"))
    page.goto("/queues/jobs/")
    page.evaluate("window.same = true")
    with page.expect_response("**/queues/jobs/"):
        page.clock.run_for(5_000)
    expect(page.locator("main")).to_contain_text("at lunch")
    assert page.evaluate("window.same"), "nothing is loaded anew while a person reads"
    assert findings(page) == []
    page.unroute("**/queues/jobs/")
    page.clock.run_for(5_000)
    expect(page.locator("dl.sum")).to_be_visible()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_numbers_of_the_first_queue_are_on_the_first_screen_of_a_phone(
    locale: str, new_page: NewPage, furnished: Store
) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, locale=locale, has_touch=True)
    open_live(page, "/")
    row = page.locator("tr[data-queue]").first
    assert row.bounding_box()["y"] <= 400
    expect(row.locator("[data-field=ready]").first).to_be_in_viewport(ratio=1)
    page.goto(f"/queues/{row.get_attribute('data-queue')}/")
    expect(page.locator("dl.sum [data-field=ready]").first).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(("width", "touch"), [(390, True), (1280, False)])
def test_choices_are_beside_their_words(width: int, touch: bool, new_page: NewPage) -> None:
    page = new_page(viewport={"width": width, "height": 800}, has_touch=touch)
    page.goto("/boards/new/")
    off = page.locator(".choice").evaluate_all(
        """choices => choices.map((choice) => {
            const [words, texts] = [document.createRange(), document.createTreeWalker(choice, NodeFilter.SHOW_TEXT)];
            while (texts.nextNode().data.trim() === "");
            words.selectNode(texts.currentNode);
            const [line, box] = [words.getClientRects()[0], choice.querySelector("input").getBoundingClientRect()];
            return Math.abs(line.top + line.bottom - box.top - box.bottom) / 2;
        })"""
    )
    assert off
    assert max(off) <= 1.5


def test_what_changes_is_there_at_once_for_those_that_want_less_motion(page: Page) -> None:
    """Else sizes that a window or a finger changes come a frame later, one element inside another."""
    page.goto("/boards/new/")
    size = page.locator(".choice").first.evaluate(
        "choice => { document.body.style.fontSize = '30px'; return getComputedStyle(choice).fontSize; }"
    )
    assert size == "30px"


def test_a_long_name_leaves_room_for_the_values_of_a_search(page: Page, store: Store) -> None:
    store.create_queue("orders:" + "verylong" * 20).push(b"the needle", priority=1)
    page.goto("/search/?q=needle")
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator("mark")).to_be_in_viewport(ratio=1)
        card = page.locator(".table-card")
        assert card.evaluate("card => card.scrollWidth - card.clientWidth") == 0, width


def test_a_long_name_leaves_room_for_the_sums_of_its_group(page: Page, store: Store) -> None:
    store.create_queue("orders:" + "verylong" * 20).pause(reason="a test", by="ops-2")
    page.goto("/?group=group")
    for width in (390, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        head = page.locator(".grouphead th")
        expect(head.locator("[data-sum=levels]")).to_be_in_viewport(ratio=1)
        assert head.evaluate("head => head.scrollWidth - head.clientWidth") == 0, width


def test_long_patterns_leave_room_for_their_targets(page: Page, store: Store) -> None:
    actions = store.actions("admin")
    for pattern in ("x" * 150 + "*", "orders:*"):
        actions.set_targets(pattern, depth=500, oldest=600)
    page.goto("/targets/")
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        card = page.locator(".table-card").first
        assert card.evaluate("card => card.scrollWidth - card.clientWidth") == 0, width
    for pattern in ("x" * 150 + "*", "orders:*"):
        actions.remove_targets(pattern)


def test_nothing_in_a_row_lies_over_another(page: Page) -> None:
    page.goto("/styleguide/")
    page.evaluate("document.fonts.ready")
    for width in (360, 768, 960, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(OVERLAPS) == [], width


#: Whether no priority of a row's ends is cut.
WHOLE_ENDS = "() => [...document.querySelectorAll('.end b')].every((b) => b.scrollWidth <= b.clientWidth)"


def test_short_priorities_are_whole_and_the_tools_in_a_line(page: Page, store: Store) -> None:
    store.create_queue("orders:apac:payments").push_many([(b'{"customer":{"id":4711}}', n) for n in (10, 99)])
    open_live(page, "/")
    for compact in (1, 0):
        for width in (1200, 1280, 1366, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            # Rows fit themselves a frame after the width has changed.
            page.wait_for_function(WHOLE_ENDS)
            if width >= 1280:
                assert page.locator(".tools").evaluate("(tools) => tools.clientHeight") < 50, width
        page.get_by_role("button", name="Compact").click()
        expect(page.locator("table.q.compact")).to_have_count(compact)
        wait_live(page)


@pytest.mark.parametrize("name", ["jobs", "orders:apac:fulfilment"])
def test_on_a_wide_screen_a_reason_takes_the_room_that_the_ends_leave(
    name: str, new_page: NewPage, store: Store
) -> None:
    queue = store.create_queue(name)
    queue.push_many([(b"C710680", 1795967201617), (b"C710681", 1795977909908)])
    queue.pause(reason="the bank is closed until Monday morning", by="ops-2")
    page = new_page(viewport={"width": 1920, "height": 800})
    open_live(page, "/")
    reason = page.locator("[data-field=verdict]")
    expect(reason).to_contain_text("until Monday morning")
    assert reason.evaluate("reason => reason.scrollHeight - reason.clientHeight") <= 2
    cut = page.locator(".end :is(b, q)").evaluate_all("all => all.filter((e) => e.scrollWidth > e.clientWidth).length")
    assert cut == 0


def test_compact_rows_name_the_queue_and_its_level_at_every_width(page: Page, store: Store) -> None:
    store.create_queue("orders:apac:payments").pause(reason="a long reason, " * 9, by="ops-2")
    open_live(page, "/")
    page.get_by_role("button", name="Compact").click()
    expect(page.locator("table.q.compact")).to_have_count(1)
    wait_live(page)
    row = page.locator("tr[data-queue]")
    for width in (1024, 1280, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert row.evaluate("row => row.offsetHeight") == 36, width
        link = row.locator("a[data-part=link]")
        assert link.evaluate(
            "link => link.getBoundingClientRect().right <= link.closest('th').getBoundingClientRect().right"
        ), width
        # A range tells where a word ends, whatever its element shows.
        word = row.locator("[data-field=verdict]").evaluate(
            """small => {
                const range = document.createRange();
                range.setStart(small.firstChild, 0);
                range.setEnd(small.firstChild, "warning".length);
                return small.closest("th").getBoundingClientRect().right - range.getBoundingClientRect().right;
            }"""
        )
        assert word >= 0 or width < 1280, width
    page.get_by_role("button", name="Compact").click()
    wait_live(page)


def test_all_acts_work_without_javascript(new_page: NewPage, store: Store, site: Site) -> None:
    page = new_page(java_script_enabled=False)

    def send(button: str) -> None:
        with page.expect_navigation():
            page.locator(button).first.click()

    page.goto("/queues/new/")
    page.fill("main input[name=name]", "plain")
    send("main form button[type=submit], main form button.primary")
    queue = store.queue("plain")

    page.goto("/queues/plain/push/")
    page.fill("main input[name=priority]", "5")
    page.fill("main textarea[name=value]", "hello")
    send("main form button.primary")
    assert queue.depth() == 1
    page.goto("/queues/plain/")
    expect(page.locator("[data-live-list=min] [data-part=value]")).to_have_text("hello")

    page.goto("/queues/plain/pause/")
    page.fill("main [name=reason]", "a test")
    send("main form button.primary, main form button.danger")
    assert queue.status().pause is not None
    page.goto("/queues/plain/")
    send("form[action$='/resume/'] button")
    assert queue.status().pause is None

    page.goto("/queues/plain/pop/?end=min")
    send("main form[method=post] button.primary, main form[method=post] button.danger")
    assert queue.depth() == 0
    send("form[action$='/put-back/'] button")
    assert queue.depth() == 1

    page.goto("/queues/plain/rename/")
    page.fill("main input[name=name], main input[name=new]", "simple")
    send("main form button.primary")
    page.goto("/queues/simple/delete/")
    page.fill("main input[name=confirm]", "simple")
    send("main form button.danger, main form button.primary")
    assert "simple" not in store.directory()
    page.goto("/trash/")
    send("form[action*='/restore/'] button")
    assert "simple" in store.directory()

    page.goto("/?q=simple")
    expect(page.locator("tr[data-queue=simple]")).to_have_count(1)


def test_hostile_names_and_values_stay_text(page: Page, store: Store) -> None:
    queue = store.create_queue("evil", priority_type="str")
    queue.push(b"<img src=x onerror=alert(1)>", priority='"><script>alert(1)</script>')
    open_live(page, "/")
    queue.push("\u202egnp.exe<svg onload=alert(1)>".encode(), priority="<b>x</b>")
    expect(page.locator("tr[data-queue=evil] [data-field=ready]")).to_have_text("2")
    open_live(page, "/queues/evil/")
    assert page.locator("main img, main script:not([src]), main svg[onload]").count() == 0
    expect(page.locator("[data-live-list=min]")).to_contain_text(re.compile("onerror=alert|onload=alert"))


def test_rows_do_not_move_while_numbers_change(page: Page, store: Store) -> None:
    queues = [store.create_queue(f"q{n}") for n in range(5)]
    open_live(page, "/")
    order = page.eval_on_selector_all("tr[data-queue]", "rows => rows.map(row => row.dataset.queue)")
    places = page.eval_on_selector_all("tr[data-queue]", "rows => rows.map(row => row.getBoundingClientRect().top)")
    for n, queue in enumerate(reversed(queues)):
        queue.push_many([(b"a much longer value than there was before " * 5, n)] * (n + 1) * 50)
    expect(page.locator("[data-total=ready]")).to_have_text("750")
    assert page.eval_on_selector_all("tr[data-queue]", "rows => rows.map(row => row.dataset.queue)") == order
    now = page.eval_on_selector_all("tr[data-queue]", "rows => rows.map(row => row.getBoundingClientRect().top)")
    assert now == pytest.approx(places, abs=1)


def test_copy_takes_the_value_as_it_is(new_page: NewPage, store: Store) -> None:
    value = '{"name": "ünï\u202e", "n": 1}\n'
    item = store.create_queue("jobs").push(value.encode(), priority=1)
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.clock.install()
    page.goto(f"/queues/jobs/items/{item.id}/")
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 5)  # it says so for two seconds
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == value
