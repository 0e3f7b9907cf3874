"""A wall for months with no person near: deploys, outages, sleep, boards and queues that change or go while shown."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, WebSocketRoute, expect

from queues import Store, open_store
from tests.browser.conftest import LIMITS, PATIENCE, NewPage, Site, failing_store, sign_in, until
from tests.browser.test_live import AHEAD
from tests.browser.wall.test_wall import LIVE, let_in, make_board, new_id

VEIL, AGE, WHY = (f"[data-part={part}]" for part in ("veil", "veil-age", "veil-why"))
#: Where the script of the page itself comes from, which brings all the rest.
SCRIPT = re.compile(r"/wall\.[0-9a-f]+\.js")
#: A page that waits a moment before it makes itself anew need not wait here.
AT_ONCE = "Math.random = () => 0"


@pytest.fixture
def board(page: Page, store: Store) -> str:
    """The address of a board that shows three queues."""
    for n in range(3):
        store.create_queue(f"hall:{n}").push(b"v", priority=n)
    return make_board(page, f"Hall {time.time_ns()}", "hall:*")


@pytest.fixture
def hung(page: Page, new_page: NewPage, board: str, strict: Any) -> Iterator[Page]:
    """A screen that a link has let in, whose clock is in the test's hand and runs."""
    address = new_id(page, board)
    screen = new_page(storage_state=None)
    screen.add_init_script(AT_ONCE)
    screen.clock.install()
    let_in(screen, address)
    screen.evaluate("window.old = true")
    yield screen
    strict.allowed.append("WebSocket|Failed to load resource")


def made_anew(screen: Page) -> None:
    """Wait until the page has made itself anew and is live."""
    screen.wait_for_function("() => window.old === undefined")
    screen.wait_for_selector(LIVE)


def run_until(screen: Page, done: Callable[[], bool], seconds: int = 300) -> None:
    """Let the page's time go by in small steps: what it waits for beside its clock takes real time."""
    for _step in range(2 * seconds):
        if done():
            return
        screen.clock.run_for(500)
    assert done(), f"not within {seconds} s of the page's time"


def names(screen: Page) -> list[str]:
    """Return the queues that have a tile."""
    return screen.locator(".cell:not([hidden]) .tile-name").all_text_contents()


def test_queues_are_renamed_and_leave_while_they_are_shown(hung: Page, store: Store) -> None:
    store.rename_queue("hall:1", "hall:paid")
    expect(hung.locator(".tile-name")).to_have_text(["hall:0", "hall:2", "hall:paid"])
    store.rename_queue("hall:paid", "elsewhere:paid")
    store.delete_queue("hall:2")
    expect(hung.locator(".tile-name")).to_have_text(["hall:0"])
    store.delete_queue("hall:0")
    expect(hung.locator("[data-part=nothing]")).to_contain_text("No queue here")
    assert hung.evaluate("window.old") is True, "the same page"


def test_a_board_that_is_changed_is_shown_as_it_is_now(page: Page, hung: Page, board: str) -> None:
    page.goto(f"/boards/{board}/")
    page.check("input[name=theme][value=light]")
    page.check("input[name=language][value=zh-hans]")
    page.fill("#board-globs", "hall:1")
    page.click("text=Save")
    made_anew(hung)
    html = hung.locator("html")
    assert (html.get_attribute("data-theme"), html.get_attribute("lang")) == ("light", "zh-hans")
    assert names(hung) == ["hall:1"]
    expect(hung.locator("[data-part=fresh]")).to_have_text("实时")


def test_a_board_that_is_removed_goes_dark_with_a_word_and_asks_seldom(page: Page, hung: Page, board: str) -> None:
    """On the screen of a link, and on that of a person that is signed in."""
    own = page.context.new_page()
    own.clock.install()
    own.goto(f"/wall/{board}")
    own.wait_for_selector(LIVE)
    asked: dict[Page, list[str]] = {hung: [], own: []}
    for screen, by in asked.items():
        screen.on("request", lambda request, by=by: by.append(request.method))
        screen.on("websocket", lambda _socket, by=by: by.append("socket"))
    page.goto(f"/boards/{board}/remove/")
    page.click("main button:has-text('Remove')")
    for screen, word in ((hung, "may no longer show"), (own, "was removed, or shows no queue")):
        screen.wait_for_selector("body[data-fresh-state=closed]")
        expect(screen.locator(WHY)).to_contain_text(word)
        expect(screen.locator(".tiles")).to_be_hidden()
    for screen, by in asked.items():
        by.clear()
        for _step in range(60):  # an answer takes real time, and nothing is asked before it is there
            screen.clock.run_for(10_000)
        until(screen, lambda by=by: by, "it never asks")
        screen.wait_for_selector("body[data-fresh-state=closed]")
        assert len(by) <= 11, "once a minute, at the most"
        assert set(by) == {"HEAD"}, "and never a page that would not come back"


def test_a_screen_asks_again_when_an_answer_never_comes(page: Page, hung: Page, board: str) -> None:
    hung.evaluate(LIMITS)
    page.goto(f"/boards/{board}/remove/")
    page.click("main button:has-text('Remove')")
    hung.wait_for_selector("body[data-fresh-state=closed]")
    asked: list[Route] = []
    hung.route("**/wall/*", lambda route: asked.append(route))
    run_until(hung, lambda: len(asked) == 2)


def test_a_wall_that_its_scripts_did_not_reach_says_so_and_makes_itself_anew(
    new_page: NewPage, board: str, strict: Any
) -> None:
    screen = new_page()
    strict.allowed.append("WebSocket|Failed to load resource")
    away, answered = [True], 0

    def answer(route: Route) -> None:
        nonlocal answered
        asks = route.request.method == "HEAD"
        if away and (asks or SCRIPT.search(route.request.url)):
            route.abort()
        else:
            answered += asks
            route.continue_()

    screen.route("**/*", answer)
    screen.clock.install()
    screen.goto(f"/wall/{board}")
    expect(screen.locator(VEIL)).to_be_hidden()
    screen.clock.run_for(21_000)
    expect(screen.locator(VEIL)).to_be_visible()
    expect(screen.locator(AGE)).to_have_text("This picture is not live")
    expect(screen.locator(WHY)).to_contain_text("does not answer")
    away.clear()
    with screen.expect_navigation():
        run_until(screen, lambda: answered > 0)
    screen.wait_for_selector(LIVE)
    screen.evaluate("window.old = true")
    screen.clock.run_for(60_000)
    assert screen.evaluate("window.old") is True, "and then it is left alone"


def test_a_wall_without_its_scripts_is_marked_and_asks_ever_more_seldom(
    new_page: NewPage, board: str, strict: Any
) -> None:
    screen = new_page()
    strict.allowed.append("WebSocket|Failed to load resource")
    hangs, asked = [True], 0

    def answer(route: Route) -> None:
        nonlocal asked
        if SCRIPT.search(route.request.url):
            route.abort()
        elif route.request.method == "HEAD":
            asked += 1
            if not hangs:
                route.continue_()
        else:
            route.continue_()

    loads: list[str] = []
    screen.route("**/*", answer)
    screen.clock.install()
    screen.goto(f"/wall/{board}")
    run_until(screen, lambda: asked == 1)
    expect(screen.locator(AGE)).to_have_text("This picture is not live")
    screen.clock.run_for(8_000)
    assert asked == 1, "one at a time"
    run_until(screen, lambda: asked == 2)  # given up after a while
    expect(screen.locator(AGE)).to_have_text("This picture is not live")
    hangs.clear()
    with screen.expect_navigation():
        run_until(screen, lambda: asked == 3)
    screen.on("framenavigated", lambda frame: loads.append(frame.url))
    asked = 0
    screen.clock.run_for(21_000)
    expect(screen.locator(VEIL)).to_be_visible()
    assert (asked, loads) == (0, []), "what did not help is not tried again at once"
    with screen.expect_navigation():
        screen.clock.run_for(21_000)


def test_what_a_proxy_finds_missing_is_no_word_on_the_board(hung: Page, site: Site) -> None:
    """While the site is away its proxy may answer 404."""
    site.kill()
    hung.wait_for_selector("body[data-fresh-state=old]")
    asked: list[str] = []

    def head(route: Route) -> None:
        asked.append(route.request.method)
        route.fulfill(status=404, headers={"X-Robots-Tag": "noindex"})

    hung.route("**/wall/*", head)
    run_until(hung, lambda: bool(asked))  # it asks once in a while
    expect(hung.locator(WHY)).to_have_text("The server does not answer. Trying again.")
    assert hung.locator("body").get_attribute("data-fresh-state") == "old"
    site.start()
    hung.unroute("**/wall/*")
    hung.clock.run_for(15_000)
    hung.wait_for_selector(LIVE)


def test_a_server_that_starts_while_its_store_is_away_makes_no_old_number_young(
    new_page: NewPage, board: str, strict: Any
) -> None:
    """It knows since when it looks in vain, and nothing of what the screen has shown since before that."""
    strict.allowed.append("WebSocket|Failed to load resource")
    away: list[str] = []
    screen = new_page()
    failing_store(screen, away)
    screen.clock.install()
    screen.goto(f"/wall/{board}")
    screen.wait_for_selector(LIVE)
    away.append("away")
    expect(screen.locator(WHY)).to_have_text("away")
    screen.clock.fast_forward("10:00")
    screen.clock.run_for(15_000)
    away.append("still away")
    expect(screen.locator(WHY)).to_have_text("still away")
    expect(screen.locator(AGE)).to_have_text(re.compile(r"^Data is 1\d min old$"))


def test_a_server_that_was_gone_for_an_hour_and_a_screen_that_slept(hung: Page, site: Site, store: Store) -> None:
    first = hung.locator("[data-field=depth]").first
    site.kill()
    hung.wait_for_selector("body[data-fresh-state=old]")
    hung.clock.fast_forward("01:00:00")
    expect(hung.locator(AGE)).to_have_text(re.compile(r"^Data is 6\d min old$"))
    store.queue("hall:0").push(b"v", priority=1)
    site.start()
    hung.clock.run_for(15_000)
    hung.wait_for_selector(LIVE)
    expect(first).to_have_text("2")
    assert hung.evaluate("window.old") is True, "the same page"

    kept_until = cookie_until(hung)
    hung.clock.fast_forward("13:00:00")
    hung.clock.run_for(3_000)
    store.queue("hall:0").push(b"v", priority=1)
    expect(first).to_have_text("3")
    hung.wait_for_selector(LIVE)
    run_until(hung, lambda: cookie_until(hung) > kept_until)
    assert hung.evaluate("window.old") is True, "the same page"


def test_a_screen_that_slept_tells_the_time_and_the_ages_of_now_though_the_server_is_away(
    new_page: NewPage, board: str, strict: Any
) -> None:
    strict.allowed.append("WebSocket")
    screen, away = new_page(), []

    def through(route: WebSocketRoute) -> None:
        if away:
            route.close()
            return
        server = route.connect_to_server()
        server.on_message(lambda text: None if away else route.send(text))
        route.on_message(server.send)

    screen.route_web_socket(re.compile("/live/"), through)
    screen.goto(f"/wall/{board}")
    screen.wait_for_selector(LIVE)
    away.append(True)
    screen.evaluate(AHEAD, 8)
    expect(screen.locator(AGE)).to_have_text("Data is 8 h old")
    hour, minute, _ = map(int, screen.locator("[data-part=clock]").inner_text().split(":"))
    now = screen.evaluate("[new Date(Date.now())].map((at) => 60 * at.getHours() + at.getMinutes())[0]")
    assert (now - 60 * hour - minute) % 1440 in (0, 1)
    expect(screen.locator("[data-field=oldest]").first).to_contain_text("8 h")


def cookie_until(screen: Page) -> float:
    """Return until when the browser keeps the screen's cookie."""
    (kept,) = (each for each in screen.context.cookies() if each["name"] == "pqadmin_wall")
    return float(kept["expires"])


def test_a_deploy_of_another_release_reaches_a_screen_that_no_person_touches(
    chromium: Browser, tmp_path: Path, strict: Any
) -> None:
    """The real server, ended as a deploy ends it and started as another version of itself."""
    site = Site(tmp_path / "data")
    site.start()
    context, wall = chromium.new_context(base_url=site.address), chromium.new_context()
    for each in (context, wall):
        each.set_default_timeout(PATIENCE * 1000)
    try:
        with open_store(site.store_url) as store:
            store.create_queue("jobs").push(b"v", priority=1)
        admin = context.new_page()
        sign_in(admin, "admin", site.password)
        address = new_id(admin, make_board(admin, "Hall"))
        screen = wall.new_page()
        let_in(screen, address)
        screen.evaluate("window.old = true")
        shown = screen.locator("body").get_attribute("data-release")
        site.stop()
        (tmp_path / "sitecustomize.py").write_text("import pqadmin\npqadmin.__version__ = 'the next'\n", "utf-8")
        site.settings["PYTHONPATH"] = str(tmp_path)
        site.start()
        made_anew(screen)
        assert screen.locator("body").get_attribute("data-release") != shown
        assert screen.url.endswith("/wall/hall")
    finally:
        context.close()
        wall.close()
        site.stop()
