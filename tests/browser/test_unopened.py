"""A site answers, but opens no live connection: its pages and screens say so until one opens."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.browser.conftest import LIMITS, PATIENCE, Site, Strict, open_live, sign_in, until
from tests.browser.wall.test_wall import make_board

#: Handshakes fail, are never answered, or open a connection without a word, as `window.network` says; with "gone" no
#: request is answered either.
STUB = """
    window.network = %s;
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 0;
        constructor() {
            if (network === "refuses") setTimeout(() => this.onclose?.({ code: 1006 }));
            if (network === "is silent") setTimeout(() => this.onopen?.(this.readyState = 1));
        }
        close() {}
        send() {}
    };
    const answered = window.fetch;
    const hangs = (signal) =>
        new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    window.fetch = (address, options) =>
        network === "gone" ? hangs(options?.signal) : answered(address, options);
"""
#: A connection that ended for good and was opened anew, with a server that says nothing.
REOPENED = """async (url) => {
    const { Connection } = await import(url);
    window.opened = 0;
    window.WebSocket = class {
        static OPEN = 1;
        constructor() { opened += 1; }
        close() {}
    };
    const connection = new Connection("ws://127.0.0.1/", "", { state() {} });
    connection.open();
    connection.end("gone");
    connection.open();
    setInterval(() => connection.check(), 1000);
}"""
#: Milliseconds of a page's time after which it is looked at, where a server is to answer meanwhile.
STEP = 500
UNOPENED = "The server answers, but no live connection opens"


def say(page: Page, selector: str, words: str, step: int = 1_000) -> None:
    """Let the page's clock go on, some ms at a time, until an element says this."""
    place = page.locator(selector).first

    def said() -> bool:
        page.clock.run_for(step)
        return words in place.inner_text() + (place.get_attribute("title") or "")

    until(page, said, words)


@pytest.mark.parametrize("network", ["refuses", "hangs", "is silent"])
def test_a_page_whose_handshakes_hang_follows_whether_the_server_answers(page: Page, network: str) -> None:
    page.clock.install()
    page.add_init_script(LIMITS + STUB % repr(network))
    page.goto("/")
    say(page, "[data-fresh]", UNOPENED)
    page.evaluate("network = 'gone'")
    say(page, "[data-fresh]", "reconnecting")


@pytest.mark.parametrize(
    ("place", "words"),
    [("[data-fresh]", "The connection is gone"), ("[data-part=veil-why]", "The server ")],
)
def test_trouble_with_the_store_is_not_told_once_the_connection_is_gone(
    page: Page, strict: Strict, place: str, words: str
) -> None:
    strict.allowed.append("WebSocket")
    address = "/" if place == "[data-fresh]" else f"/wall/{make_board(page, 'Hall')}/"
    routes: list[WebSocketRoute] = []

    def through(route: WebSocketRoute) -> None:
        routes.append(route)
        if len(routes) > 1:
            route.close()
            return

        def down(text: str | bytes) -> None:
            seen = json.loads(text)
            if seen["t"] != "hello":
                seen = {"t": "store", "message": "away", "seq": seen["seq"], "now": seen["now"], "since": seen["now"]}
            route.send(json.dumps(seen))

        route.connect_to_server().on_message(down)

    page.route_web_socket(re.compile("/live/"), through)
    page.clock.install()
    page.goto(address)
    say(page, place, "away")
    routes[0].close()
    say(page, place, words)


def test_a_connection_that_is_opened_anew_is_given_up_when_it_is_silent(page: Page) -> None:
    page.goto("/boards/")
    page.clock.install()
    page.evaluate(REOPENED, "/static/pqadmin/js/socket.js")
    page.clock.run_for(14_000)
    assert page.evaluate("opened") == 3


def test_one_page_too_many_says_why_it_is_not_live(chromium: Browser, tmp_path: Path) -> None:
    site = Site(tmp_path, settings={"PQADMIN_SOCKETS_PER_PERSON": "1"})
    site.start()
    context = chromium.new_context(base_url=site.address)
    context.set_default_timeout(PATIENCE * 1000)
    try:
        first, second = context.new_page(), context.new_page()
        sign_in(first, "admin", site.password)
        board = make_board(second, "Hall")
        open_live(first, "/")
        for each in (first, second):
            each.add_init_script(LIMITS)
            each.clock.install()
        second.goto("/")
        say(second, "[data-fresh]", "not live", STEP)
        why = "too many pages are open, or a proxy does not pass websockets, or changes their host or scheme"
        expect(second.locator("[data-fresh]").first).to_have_attribute("title", f"{UNOPENED}: {why}.")
        first.goto("about:blank")
        until(second, lambda: second.clock.run_for(STEP) or second.locator("[data-fresh][data-state=live]").count())
        first.goto(f"/wall/{board}/")
        say(first, "[data-part=veil-why]", f"{UNOPENED}: too many screens are on", STEP)
        site.kill()
        say(first, "[data-part=veil-why]", "The server does not answer. Trying again.", STEP)
    finally:
        context.close()
        site.stop()
