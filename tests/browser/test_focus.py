"""Live updates leave alone what has the reader's attention: the focus, what is typed, what is selected.

`attend` remembers the element that has the focus, `attends` tells whether that very element still has it.
"""

import json
import re
import time
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from queues import Queue, Store
from tests.browser.conftest import PATIENCE, NewPage, Strict, open_live, ready_of, until, wait_live, wait_value

#: Seconds between two announcements to screen readers, at least.
QUIET = 20
#: Notes in window.said when any live region of the page changes what it says, by the page's own clock.
LISTEN = """() => {
    window.said = [];
    const heard = new Map();
    const look = () => {
        for (const region of document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]')) {
            const copy = region.cloneNode(true);
            for (const silent of copy.querySelectorAll('[aria-hidden=true], [hidden]')) silent.remove();
            const text = region.hidden ? '' : copy.textContent.trim();
            if (heard.has(region) && heard.get(region) !== text && text) window.said.push([performance.now(), text]);
            heard.set(region, text);
        }
    };
    look();
    const all = {subtree: true, childList: true, characterData: true, attributes: true};
    new MutationObserver(look).observe(document, all);
}"""


def attend(page: Page) -> None:
    page.evaluate("window.attended = document.activeElement")


def attends(page: Page) -> bool:
    return bool(page.evaluate("document.activeElement === window.attended && window.attended.isConnected"))


@pytest.fixture
def overview(page: Page, store: Store) -> Page:
    """The overview with three queues, live."""
    for name in ("eu:alpha", "eu:beta", "us:gamma"):
        store.create_queue(name).push(b"x", priority=1)
    open_live(page, "/")
    return page


@pytest.mark.parametrize(
    "place",
    [
        'tr[data-queue="eu:beta"] a[data-part=link]',
        'tr[data-queue="eu:beta"] .star',
        'tr[data-queue="eu:beta"] a[data-part=push]',
        "#queues thead a >> nth=1",
        ".tools input[type=search]",
        ".tools nav a >> nth=1",
    ],
)
def test_frames_leave_the_focus_on_the_overview(place: str, overview: Page, store: Store) -> None:
    overview.locator(place).focus()
    attend(overview)
    for name in ("eu:alpha", "eu:beta"):
        store.queue(name).push_many([(b"more", n) for n in range(9)])
    store.create_queue("eu:new").push(b"y", priority=2)
    store.queue("us:gamma").pause(reason="why", by="ops")
    trash = store.delete_queue("us:gamma")
    wait_value(overview, ready_of("eu:beta"), 10)
    wait_value(overview, ready_of("eu:new"), 1)
    expect(overview.locator('tr[data-queue="us:gamma"]')).to_have_attribute("data-level", "gone")
    assert attends(overview)
    store.restore(trash)
    store.delete_queue("eu:beta")
    expect(overview.locator('tr[data-queue="us:gamma"]')).to_have_attribute("data-mark", "paused")
    expect(overview.locator('tr[data-queue="eu:beta"]')).to_have_attribute("data-level", "gone")
    assert attends(overview)


def test_what_is_typed_into_the_filter_stays_with_its_selection(overview: Page, store: Store) -> None:
    field = overview.get_by_label("Filter queues")
    field.press_sequentially("eu:")
    expect(overview).to_have_url(re.compile(r"q=eu(:|%3A)"))  # else the answer to what was typed is still to come
    expect(overview.locator('tr[data-queue="us:gamma"]')).to_have_count(0)
    field.evaluate("field => field.setSelectionRange(1, 3)")
    store.queue("eu:alpha").push_many([(b"x", 1)] * 4)
    store.delete_queue("eu:beta")
    wait_value(overview, ready_of("eu:alpha"), 5)
    expect(overview.locator('tr[data-queue="eu:beta"]')).to_have_attribute("data-level", "gone")
    expect(field).to_be_focused()
    assert field.evaluate("field => [field.value, field.selectionStart, field.selectionEnd]") == ["eu:", 1, 3]


def test_a_grouped_table_waits_for_the_focus_to_leave(overview: Page, store: Store) -> None:
    held: list[Any] = []
    overview.goto("/?group=group")
    wait_live(overview)
    holding = [True]
    overview.route("**/?group=group", lambda route: held.append(route) if holding else route.continue_())
    with overview.expect_request("**/?group=group"):  # the table is asked for: nothing has the focus in it
        store.create_queue("zz:new").push(b"x", priority=1)
    until(overview, lambda: held, "the request for the table was seen, but not held")
    overview.locator('tr[data-queue="eu:beta"] a[data-part=link]').focus()
    attend(overview)
    holding.clear()
    with overview.expect_response("**/?group=group"):
        held.pop().continue_()
    store.queue("eu:beta").push(b"x", priority=1)
    wait_value(overview, ready_of("eu:beta"), 2)
    assert attends(overview), "it came in while the answer was under way"
    overview.get_by_label("Filter queues").focus()
    wait_value(overview, ready_of("zz:new"), 1)


def test_the_link_to_more_queues_hands_the_focus_on_to_them(page: Page, store: Store) -> None:
    def many(tr: Any) -> None:
        for n in range(130):
            store.create_queue(f"q{n:03}", tr=tr)

    store.transact(many)
    open_live(page, "/?group=name")
    link = page.locator("#queues .pager a[rel=next]")
    expect(link).to_have_count(1)
    link.focus()
    expect(page.locator("tr[data-queue=q120]")).to_have_count(1)
    assert page.evaluate("document.activeElement.closest('tr')?.dataset.queue") == "q100"


def test_selected_text_is_not_replaced_until_it_is_let_go(overview: Page, store: Store) -> None:
    depth, rate = ready_of("eu:beta"), ready_of("eu:alpha")
    overview.locator(depth).evaluate("cell => getSelection().selectAllChildren(cell)")
    for name in ("eu:alpha", "eu:beta"):
        store.queue(name).push_many([(b"x", 1)] * 4)
    wait_value(overview, depth, 5)
    expect(overview.locator(rate)).to_have_text("5")
    assert overview.evaluate("getSelection().toString().trim()") == "1"
    overview.evaluate("getSelection().removeAllRanges()")
    expect(overview.locator(depth)).to_have_text("5")


def test_a_selection_in_a_hidden_tab_holds_no_number_for_good(page: Page, store: Store, strict: Strict) -> None:
    strict.allowed.append("WebSocket connection")  # it seems to have been silent for a minute
    page.clock.install()
    jobs = store.create_queue("jobs")
    open_live(page, "/")
    page.locator(ready_of("jobs")).evaluate("cell => getSelection().selectAllChildren(cell)")
    page.wait_for_function("() => getSelection().toString().trim() === '0'")
    jobs.push(b"x", priority=1)
    wait_value(page, ready_of("jobs"), 1)
    expect(page.locator(ready_of("jobs"))).to_have_text("0")
    page.clock.run_for(61_000)
    expect(page.locator(ready_of("jobs"))).to_have_text("1")


def test_an_end_that_is_reordered_and_taken_keeps_the_focus(page: Page, store: Store) -> None:
    jobs, ann = store.create_queue("jobs"), store.actions("ann")
    items = [jobs.push(b"v%d" % n, priority=n * 10) for n in range(4)]
    open_live(page, "/queues/jobs/")
    links = page.locator("[data-live-list=min] a")
    page.locator(f'[data-live-list=min] [data-item="{items[2].id}"] a').focus()
    attend(page)
    ann.reprioritize("jobs", [items[2].id], priority=-5)
    expect(links.first).to_contain_text("v2")
    assert attends(page), "moved to the front"
    ann.reprioritize("jobs", [items[2].id], priority=99)
    expect(links.nth(3)).to_contain_text("v2")
    assert attends(page), "and to the back"
    jobs.push(b"before", priority=-1)
    expect(links.first).to_contain_text("before")
    assert attends(page)
    jobs.pop_max()
    jobs.push(b"last", priority=200)
    expect(links.filter(has_text="last")).to_have_count(1)
    assert attends(page), "what is taken stays as long as it has the focus"
    expect(page.locator("[data-live-list=min] [data-gone]")).to_contain_text("no longer here")
    page.keyboard.press("Shift+Tab")
    expect(links.filter(has_text="v2")).to_have_count(0)
    jobs.push(b"v2 again", priority=-50)
    expect(links.first).to_contain_text("v2 again")


def test_an_act_that_no_longer_fits_stays_under_the_finger(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    pause, resume = page.get_by_role("link", name="Pause…"), page.get_by_role("button", name="Resume")
    pause.focus()
    attend(page)
    jobs.pause(reason="", by="ops-2")
    expect(resume).to_be_visible()
    assert attends(page), "and not on Resume: Enter would undo what a person just did"
    expect(pause).to_be_visible()
    page.keyboard.press("Tab")
    expect(pause).to_be_hidden()
    resume.focus()
    attend(page)
    jobs.resume()
    expect(pause).to_be_visible()
    jobs.pause(reason="", by="ops-2")
    expect(pause).to_be_hidden()
    assert attends(page)
    page.keyboard.press("Tab")
    expect(resume).to_be_visible()


def test_resume_takes_no_press_that_was_meant_for_pause(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    pause, resume = page.get_by_role("link", name="Pause…"), page.get_by_role("button", name="Resume")
    note_pressed(page, pause)
    jobs.pause(reason="incident", by="ops-2")
    expect(resume).to_be_visible()
    assert "Resume" not in page.evaluate("window.pressed")
    resume.click()
    expect(page.locator(".toast")).to_contain_text("Resumed")
    expect(pause).to_be_visible()


def test_what_a_job_offers_next_takes_no_press_that_was_meant_for_cancel(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", n) for n in range(1_000)])
    job = store.actions("ann").begin_bulk("delete", "jobs", rate=50.0)
    page.goto(f"/jobs/{job.id}/")
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    note_pressed(page, page.get_by_role("button", name="Cancel"))
    store.actions("ann").cancel_bulk(job.id)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    assert page.evaluate("window.pressed.filter(words => words && words !== 'Cancel')") == []
    undo.click()
    expect(page.locator("h1")).to_have_text(re.compile("^Undo in"))


def note_pressed(page: Page, target: Locator) -> None:
    """Note in window.pressed, at each change of the page, which button a press at this one's place would meet."""
    target.evaluate("""target => {
        const {x, y, width, height} = target.getBoundingClientRect();
        window.pressed = [];
        const look = () => {
            const met = document.elementFromPoint(x + width / 2, y + height / 2)?.closest('button');
            window.pressed.push(met?.textContent.trim() ?? '');
        };
        new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true});
    }""")


def test_choices_and_typed_text_of_a_queue_page_stay(page: Page, jobs: Queue) -> None:
    jobs.push_many([(b"v%d" % n, n) for n in range(9)])
    open_live(page, "/queues/jobs/")
    box = page.locator("#items input[type=checkbox]").nth(1)
    box.check()
    page.locator("#q").fill("half typ")
    page.get_by_role("link", name="Push", exact=True).click()
    value = page.locator("#push textarea[name=value]")
    value.fill('{"a": 1}')
    value.evaluate("field => field.setSelectionRange(2, 5)")
    attend(page)
    jobs.pop_min()
    jobs.push_many([(b"new", -n) for n in range(20)])
    expect(page.locator("section[data-queue=jobs] [data-field=ready]").first).to_have_text("28")
    assert attends(page)
    assert value.evaluate("field => [field.value, field.selectionStart, field.selectionEnd]") == ['{"a": 1}', 2, 5]
    expect(box).to_be_checked()
    expect(page.locator("#q")).to_have_value("half typ")
    box.focus()
    attend(page)
    jobs.pop_max()
    expect(page.locator("section[data-queue=jobs] [data-field=ready]").first).to_have_text("27")
    assert attends(page)


def test_the_item_page_keeps_the_focus(new_page: NewPage, store: Store) -> None:
    page = new_page(reduced_motion="no-preference")  # where countdowns change every second
    jobs = store.create_queue("jobs")
    item = jobs.push(b'{"a": [1, 2]}', priority=5, delay=timedelta(hours=8))
    page.goto(f"/queues/jobs/items/{item.id}/")
    controls = page.locator("main a:visible, main button:visible, main summary:visible")
    assert controls.count() > 2
    countdown = page.locator("time[data-countdown]").first
    for n in range(controls.count()):
        controls.nth(n).focus()
        attend(page)
        expect(countdown).not_to_have_text(countdown.inner_text())
        assert attends(page), n
        if n == 3:
            break


def test_jobs_that_begin_and_end_leave_the_focus_on_the_same_job(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", n) for n in range(1_000)])
    ann = store.actions("ann")
    one = ann.begin_bulk("delete", "jobs", rate=1.0)
    page.goto("/jobs/")
    link = page.locator(f'#jobs a[href="/jobs/{one.id}/"]')
    link.focus()
    store.create_queue("other").push_many([(b"x", n) for n in range(1_000)])
    two = ann.begin_bulk("delete", "other", rate=1.0)
    expect(page.locator(f'#jobs .jobs a[href="/jobs/{two.id}/"]')).to_have_count(1)
    expect(link).to_be_focused()
    ann.cancel_bulk(one.id)
    expect(page.locator(f'#jobs table a[href="/jobs/{one.id}/"]')).to_be_focused()
    page.goto(f"/jobs/{two.id}/")
    page.get_by_role("button", name="Cancel").focus()
    ann.cancel_bulk(two.id)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    assert page.evaluate("document.activeElement.id") == "main", "never on another act"


def busy_frames(page: Page) -> None:
    """Let the overview show problems that come and go ten times a second, and the connection with them."""

    def through(route: Any) -> None:
        server = route.connect_to_server()
        route.on_message(server.send)
        n = 0

        def down(message: str) -> None:
            nonlocal n
            seen = json.loads(message)
            if seen["t"] == "frame":
                n += 1
                seen["total"]["levels"] = {**seen["total"]["levels"], "warning": n}
            route.send(json.dumps(seen))

        server.on_message(down)

    page.route_web_socket(re.compile("/live/"), through)


def assert_seldom(said: list[tuple[float, str]]) -> None:
    # What is said is noted a moment after it is: a second of twenty is none that any person would miss.
    assert all(later - earlier >= (QUIET - 1) * 1000 for (earlier, _), (later, _) in pairwise(said)), said


def test_screen_readers_are_told_politely_and_seldom(page: Page, jobs: Queue) -> None:
    """A minute of the page's clock, in which every frame has other problems; the busy numbers are in no live region."""
    page.clock.install()
    busy_frames(page)
    open_live(page, "/")
    page.evaluate(LISTEN)
    for depth in range(1, 21):
        jobs.push(b"x", priority=depth)
        wait_value(page, ready_of("jobs"), depth)
        page.clock.run_for(3_000)
    said = page.evaluate("window.said")
    assert len(said) >= 2, said
    assert_seldom(said)
    assert "warning" in said[-1][1].replace("\u00a0", " ")
    assert page.locator("[aria-live=assertive]").count() == 0
    busy = (
        "[data-field], [data-total], [data-sum], [data-group-ready], [data-live], time[data-age], time[data-countdown]"
    )
    for path in ("/", "/queues/jobs/", "/jobs/"):
        page.goto(path)
        inside = page.locator(":is([aria-live], [role=status], [role=alert], [role=log])").locator(busy)
        assert inside.count() == 0, path


def test_a_connection_that_comes_and_goes_is_told_seldom(page: Page, store: Store) -> None:
    store.create_queue("jobs")
    sockets: list[Any] = []
    reachable = True

    def through(route: Any) -> None:
        if reachable:
            route.connect_to_server()
            sockets.append(route)
        else:
            route.close(code=1011)

    page.clock.install()
    page.route_web_socket(re.compile("/live/"), through)
    open_live(page, "/")
    page.evaluate(LISTEN)
    fresh = page.locator("[data-fresh]")
    reachable = False
    sockets[-1].close(code=1011)
    expect(fresh).to_have_attribute("data-state", "reconnecting")
    page.clock.run_for(QUIET * 1000)
    assert page.evaluate("window.said"), "that the connection is gone is told, at the latest when the quiet is over"
    reachable = True
    for time_gone in range(5):
        if time_gone:
            sockets[-1].close(code=1011)
            expect(fresh).to_have_attribute("data-state", "reconnecting")
        began = time.monotonic()
        while fresh.get_attribute("data-state") != "live":
            page.clock.run_for(500)
            assert time.monotonic() - began < PATIENCE
    page.clock.run_for(QUIET * 1000)
    assert_seldom(page.evaluate("window.said"))
