"""A site answers, but opens no live connection: its pages and screens say so until one opens."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE, Site, open_live, sign_in, wait_live
from tests.browser.wall.test_wall import make_board


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
        second.goto("/")
        fresh = second.locator("[data-fresh]").first
        expect(fresh).to_contain_text("not live")
        expect(fresh).to_have_attribute("title", "The server answers, but no live connection opens: too many pages are "
                                        "open, or a proxy does not pass websockets.")  # fmt: skip
        first.goto("about:blank")
        wait_live(second)
        first.goto(f"/wall/{board}/")
        why = first.locator("[data-part=veil-why]")
        expect(why).to_contain_text("no live connection opens: too many screens are on")
        site.kill()
        expect(why).to_have_text("The server does not answer. Trying again.")
    finally:
        context.close()
        site.stop()
