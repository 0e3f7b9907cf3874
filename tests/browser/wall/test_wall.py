"""A wall in a real browser: let in by a link, readable at every size, left alone through restarts and for months."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, WebSocketRoute, expect

from queues import Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, Site, until
from tests.browser.test_live import AHEAD

#: Seconds: the shortest turn that a board may have.
FEWEST_SECONDS = 5
VECTORS = json.loads((Path(__file__).parents[2] / "wall" / "compact_vectors.json").read_text("utf-8"))
LIVE = "body[data-fresh-state=live]"
SIZES = [(1280, 720), (1920, 1080), (3840, 2160), (1080, 1920), (360, 740), (740, 360), (2560, 1080)]
HOSTILE = ("n" * 200, "قائمة:الانتظار", "注文:東京:返金")


#: Whether anything scrolls, all tiles are on the screen, how many there are, all numbers fit into theirs, and how large
#: the smallest number is, as a share of the screen's shorter side.
LOOK = """() => {
    document.body.dataset.shift = '2';
    const root = document.documentElement;
    const box = (e) => e.getBoundingClientRect();
    const inside = (r) => r.left >= -8 && r.top >= -8 && r.right <= innerWidth + 8 && r.bottom <= innerHeight + 8;
    const cells = [...document.querySelectorAll('.cell:not([hidden])')];
    const numbers = cells.map((cell) => cell.querySelector('.tile-depth b'));
    const sizes = numbers.map((b) => parseFloat(getComputedStyle(b).fontSize));
    return [
        root.scrollWidth > innerWidth || root.scrollHeight > innerHeight,
        cells.every((cell) => inside(box(cell))),
        cells.length,
        numbers.every((b) => box(b).right <= box(b.closest('.tile')).right),
        Math.min(...sizes) / Math.min(innerWidth, innerHeight),
    ];
}"""
#: What of the head is cut off, or off the screen, but the board's name.
CUT = """() => [...document.querySelectorAll('.count, .freshness, .clock')].filter((e) => {
    const [box, text] = [e.getBoundingClientRect(), document.createRange()];
    text.selectNodeContents(e);
    return text.getBoundingClientRect().width > box.width + 0.02 || box.right > innerWidth + 8;
}).map((e) => e.outerHTML)"""
#: Ninety days in steps of ten seconds. Every week the machine sleeps for two hours and later has its clock set back;
#: every day nothing is heard for a minute.
DAYS = """async (url) => {
    const { Age, ServerClock, PLACES, placeOf, renewal } = await import(url);
    const [DAY, WEEK] = [86400e3, 7 * 86400e3];
    const age = new Age(), server = new ServerClock(), renewed = renewal(0), places = new Set();
    const found = { renewals: 0, stale: 0, jumps: 0, wrong: 0 };
    age.staleAfter = 5000;
    let wall = Date.UTC(2026, 10, 22), asleep = 0, slept = 0;
    for (let steady = 0; steady < 90 * DAY; steady += 10e3) {
        wall += 10e3;
        if (steady % WEEK === 3600e3) {
            wall += 2 * 3600e3;
            slept += 2 * 3600e3;
            asleep = 3;
        }
        if (steady % WEEK === 7200e3) wall -= 1800e3;
        const jump = age.look(steady, wall);
        if (jump > 0) found.jumps += 1;
        server.slept(jump);
        if (asleep > 0) {
            asleep -= 1;
            if (age.at(steady) < 2 * 3600e3) found.wrong += 1;
        } else if (steady % DAY < 60e3 && steady >= DAY) {
            if (age.old(steady)) found.stale += 1;
        } else {
            age.heard(steady, 0);
            server.set(1e12 + slept + steady, steady);
            if (age.old(steady)) found.wrong += 1;
        }
        if (server.now(steady) !== 1e12 + slept + steady) found.wrong += 1;
        if (renewed.take(steady)) found.renewals += 1;
        places.add(placeOf(steady));
    }
    return { ...found, places: places.size, all: PLACES };
}"""


@pytest.fixture
def furnished(store: Store) -> Store:
    """Queues of every look, with names that are hard to show."""
    store.create_queue("orders:eu:refunds").push_many([(b"v", n % 9) for n in range(1000)])
    paused = store.create_queue("reports:monthly")
    paused.push(b"r", priority=1)
    paused.pause(reason="ledger closing " * 20, by="ops-2")
    store.create_queue("sms:outbound", kind="fifo")
    for name in HOSTILE:
        store.create_queue(name).push(b"v", priority=1)
    return store


def make_board(page: Page, name: str, globs: str = "*", **chosen: str) -> str:
    """Make a board on its page and return its address."""
    page.goto("/boards/new/")
    page.fill("#board-name", name)
    page.fill("#board-globs", globs)
    for field, value in chosen.items():
        page.check(f"input[name={field}][value='{value}']")
    page.click("text=Make the board")
    page.wait_for_url(re.compile(r"/boards/(?!new/)"))
    return page.url.rstrip("/").rpartition("/")[2]


def new_id(page: Page, slug: str) -> str:
    """Make a link on the board's page and return its address."""
    page.goto(f"/boards/{slug}/")
    page.fill("#link-label", "the hall")
    page.click("text=Make a link")
    address = page.locator("#minted").text_content()
    assert address
    return address


def let_in(hung: Page, address: str) -> None:
    """Open a link's address on a screen and press its button."""
    hung.goto(address)
    hung.click("button")
    hung.wait_for_selector(LIVE)


@pytest.fixture
def screen(page: Page, new_page: NewPage, furnished: Store, strict: Any) -> Iterator[tuple[Page, Page, str]]:
    """The admin's page, a screen that a link has let in, and the link's token."""
    address = new_id(page, make_board(page, f"Hall {time.time_ns()}"))
    hung = new_page(storage_state=None)
    let_in(hung, address)
    yield page, hung, address.partition("token=")[2]
    strict.allowed.append("WebSocket|Failed to load resource")


def test_a_screen_is_let_in_by_its_link_and_shut_out_when_that_is_revoked(
    screen: tuple[Page, Page, str], site: Site, new_page: NewPage, strict: Any
) -> None:
    admin, hung, token = screen
    assert "token" not in hung.url
    assert hung.evaluate("document.cookie") == ""
    assert hung.evaluate("document.referrer") == ""
    expect(hung.locator(".tile[data-mark=paused] .tile-why")).to_have_text(
        re.compile(r"^warning · paused for .*\d.*: ledger clos")
    )
    used = new_page(storage_state=None)
    answer = used.goto(f"{hung.url}?token={token}")
    assert answer.status == 403
    slug = hung.url.rpartition("/")[2]
    admin.goto(f"/boards/{slug}/")
    expect(admin.locator("[data-link-state=used]")).to_contain_text("127.0.0.1")
    admin.click("button:has-text('Revoke')")
    hung.wait_for_selector("body[data-fresh-state=closed]")
    expect(hung.locator("[data-part=veil-why]")).to_contain_text("may no longer show")
    for path in site.data.rglob("*"):
        if path.is_file() and "static" not in path.parts:
            with suppress(FileNotFoundError):  # the database's journal comes and goes
                assert token.encode() not in path.read_bytes(), "neither in the tables nor in the audit"
    assert token not in "".join(site.said), "nor in what the server says"


def test_nothing_scrolls_at_any_size_and_axe_finds_nothing(page: Page, furnished: Store) -> None:
    for theme in ("dark", "light"):
        slug = make_board(page, f"Sizes {theme} {time.time_ns()}", theme=theme)
        page.goto(f"/wall/{slug}")
        page.wait_for_selector(LIVE)
        for width, height in SIZES if theme == "dark" else SIZES[:1]:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(LOOK)
            assert over[:4] == [False, True, 6, True], (theme, width, height, over)
            assert over[4] > 0.05, "a number is at least a twentieth of the screen's shorter side"
        assert findings(page) == []
    assert page.locator("[style]").count() == 0


def test_what_does_not_fit_is_one_tile(page: Page, store: Store) -> None:
    with_many = [store.create_queue(f"tenant-{n:02}:jobs") for n in range(40)]
    assert len(with_many) == 40
    slug = make_board(page, f"Many {time.time_ns()}", "tenant-*")
    page.goto(f"/wall/{slug}")
    page.wait_for_selector(LIVE)
    expect(page.locator(".cell:not([hidden])")).to_have_count(12)
    expect(page.locator("[data-rest]")).to_contain_text("+29 more")
    expect(page.locator("[data-rest]")).to_contain_text("all ok")
    store.queue("tenant-33:jobs").pause(reason="why", by="ops")
    expect(page.locator(".cell").first).to_contain_text("tenant-33")
    for n in range(30):
        store.delete_queue(f"tenant-{n:02}:jobs")
    expect(page.locator(".cell:not([hidden])")).to_have_count(10)
    expect(page.locator("[data-rest]")).to_be_hidden()


def test_a_long_name_makes_room_for_how_many_are_in_trouble(page: Page, furnished: Store) -> None:
    page.goto(f"/wall/{make_board(page, ('Everything that is sold ' * 9 + str(time.time_ns()))[-80:])}")
    page.wait_for_selector(LIVE)
    for width, height in [*SIZES, (1280, 1024)]:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(CUT) == [], (width, height)


def test_without_scripts_it_is_a_still_picture(new_page: NewPage, page: Page, furnished: Store) -> None:
    slug = make_board(page, f"Still {time.time_ns()}")
    plain = new_page(java_script_enabled=False)
    plain.goto(f"/wall/{slug}")
    expect(plain.locator(".cell", has_text="refunds")).to_contain_text("1\u202f000")
    expect(plain.locator(".freshness")).to_contain_text("as of")
    assert plain.locator("noscript meta[http-equiv=refresh]").count() == 1


@pytest.mark.parametrize("scripts", [True, False])
def test_a_tile_tells_the_unit_of_each_number(scripts: bool, new_page: NewPage, page: Page, furnished: Store) -> None:
    slug = make_board(page, f"Units {time.time_ns()}")
    screen = new_page(java_script_enabled=scripts)
    screen.goto(f"/wall/{slug}")
    tile = screen.locator(".cell", has_text="refunds")
    for name in ("in", "out"):
        rate = tile.locator(".tile-fact").filter(has=screen.locator(f"[data-field={name}]"))
        expect(rate).to_have_text(re.compile(rf"^\s*{name}\s*[\d\u202f.<–]+/s\s*$"))
    expect(tile.locator("[data-field=oldest]")).to_have_text(re.compile(r"^\d[\d.]*\s(s|min)$"))


def _module(name: str) -> str:
    """Return the address of one module of the wall's scripts."""
    return f"/static/pqadmin/js/{name}.js"


def test_ninety_days_go_by_in_the_scripts(page: Page, furnished: Store) -> None:
    """Timers, ages, renewals and places of the picture, with both clocks in hand; depths written as the server does."""
    page.goto(f"/wall/{make_board(page, f'Days {time.time_ns()}')}")
    seen = page.evaluate(DAYS, _module("wall_clock"))
    assert seen["wrong"] == 0
    assert seen["jumps"] == 13, "one a week"
    assert seen["renewals"] == 179, "every twelve hours"
    assert seen["stale"] == 89 * 6, "a silent minute a day"
    assert seen["places"] == seen["all"]
    unread = (
        "async (url) => { const age = new (await import(url)).Age(); age.failing(1000, 300); return age.at(2000); }"
    )
    assert page.evaluate(unread, _module("wall_clock")) is None, "what was never read has no age"
    moved = page.evaluate(
        """all => [...Array(all).keys()].map((n) => { document.body.dataset.shift = String(n);
            const box = document.querySelector('.screen').getBoundingClientRect(); return [box.left, box.top]; })""",
        seen["all"],
    )
    assert len({tuple(place) for place in moved}) == seen["all"], "the picture is nowhere twice"
    assert all(abs(pixels) <= 8 for place in moved for pixels in place), "and never far off"
    compact = "async ([url, all]) => { const m = await import(url); return all.map(m.compact); }"
    written = page.evaluate(compact, [_module("wall_tile"), [number for number, _ in VECTORS]])
    assert written == [text for _, text in VECTORS]


def test_screens_side_by_side_turn_to_the_next_board_at_the_same_moment(
    page: Page, new_page: NewPage, store: Store, strict: Any
) -> None:
    """With the shortest turn that a board may have. The turn goes by the store's clock, not by that of a machine."""
    for name in ("orders:eu", "mail:in", "mail:out"):
        store.create_queue(name).push(b"v", priority=1)
    stamp = time.time_ns()
    make_board(page, f"Mail {stamp}", "mail:*", theme="light")
    orders = make_board(page, f"Orders {stamp}", "orders:*")
    page.goto(f"/boards/{orders}/")
    page.get_by_label(f"Mail {stamp}").check()
    page.fill("#board-seconds", str(FEWEST_SECONDS))
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Changed; its screens follow.").wait_for()
    screens = [new_page(storage_state=None), new_page(storage_state=None)]
    screens[1].add_init_script(f"({AHEAD})({3.6 / 3600})")
    for hung in screens:
        let_in(hung, new_id(page, orders))
        hung.evaluate(
            """(ahead) => { window.turns = [];
                const name = document.querySelector('[data-part=name]');
                const note = () => window.turns.push([performance.now() + ahead, name.textContent,
                    [...document.querySelectorAll('.cell:not([hidden]) .tile-name')].map((each) => each.textContent)]);
                note();
                new MutationObserver(note).observe(name, {childList: true, characterData: true, subtree: true}); }""",
            # Each reading is too small by the time that the question took.
            max(store.now().timestamp() * 1000 - hung.evaluate("performance.now()") for _ in range(5)),
        )
    turn = FEWEST_SECONDS * 1000
    parts = [[f"Orders {stamp}", ["orders:eu"]], [f"Mail {stamp}", ["mail:in", "mail:out"]]]
    for hung in screens:
        expect(hung.locator("[data-part=turn]")).to_contain_text("next board in 0:0")
        # The turn is kept, but for one that a busy machine is late for.
        hung.wait_for_function(
            """([parts, turn]) => window.turns.slice(1).filter(([at, ...shown]) => at % turn < turn / 2
                && JSON.stringify(shown) === JSON.stringify(parts[Math.floor(at / turn) % 2])).length >= 2""",
            arg=[parts, turn],
        )
        assert hung.locator("html").get_attribute("data-theme") == "dark", "as its own board, whatever board is on"
        assert all([name, tiles] in parts for _, name, tiles in hung.evaluate("window.turns"))


def test_no_request_but_the_first_tells_the_token(page: Page, new_page: NewPage, furnished: Store) -> None:
    address = new_id(page, make_board(page, f"Told {time.time_ns()}"))
    token = address.partition("token=")[2]
    requests: list[Request] = []
    sockets: list[str] = []
    hung = new_page(storage_state=None)
    hung.on("request", lambda request: requests.append(request))
    hung.on("websocket", lambda socket: sockets.append(socket.url))
    let_in(hung, address)
    hung.reload()
    hung.wait_for_selector(LIVE)
    assert len(requests) > 10
    assert len(sockets) == 2
    told = [(request.url, request.all_headers()) for request in requests]
    assert [token in str(each) for each in told] == [True] + [False] * (len(told) - 1)
    assert not [url for url in sockets if token in url]
    referers = [headers.get("referer", "") for _url, headers in told]
    assert not [each for each in referers if "/wall/" in each], "no request names the wall as its referer"


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_page_of_another_release_or_protocol_asks_until_it_is_handed_out(
    protocol: int, page: Page, furnished: Store, strict: Any
) -> None:
    """A deploy: the connection has ended for good, and the first question meets a server that restarts."""
    address = f"/wall/{make_board(page, f'Deploy {time.time_ns()}')}"
    asked: list[int] = []

    def head(route: Route) -> None:
        if route.request.method != "HEAD":
            route.continue_()
            return
        asked.append(200 if asked else 503)
        route.fulfill(status=asked[-1])

    hello = {"t": "hello", "protocol": protocol, "now": 0, "beat": 1, "stale_after": 5, "release": "another"}
    page.route(f"**{address}", head)

    def live(socket: WebSocketRoute) -> None:
        if len(asked) < 2:  # a page that came anew is left alone, else it comes anew for ever
            socket.send(json.dumps(hello))

    page.route_web_socket(re.compile(f"{address}/live/"), live)
    page.clock.install()
    page.add_init_script("Math.random = () => 0")
    page.goto(address)
    page.evaluate("window.old = true")
    until(page, lambda: asked)
    assert asked == [503]
    assert page.evaluate("window.old") is True
    with page.expect_navigation():
        page.clock.fast_forward(12_000)  # over before the answer takes its page away
    assert asked[:2] == [503, 200]
    strict.allowed.append("status of 503")
