"""Which pictures there are, and how they are taken: the real server on the demo's store, a real Chromium."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from queues import open_store
from tests.browser.conftest import Site, sign_in, wait_live
from tests.browser.pictures import demo

PATIENCE_MS = 120_000
#: How often a page is opened anew, until its rows are in the order of what is known by now.
_LOOKS = 5
PASSWORD = "a shop full of queues"
#: What the server is told: its badge, and when a queue counts as a problem: long enough that no pause of the demo's
#: flow on a busy machine is one, short enough that no person waits for minutes.
SETTINGS = {
    "PQADMIN_ENVIRONMENT": "production",
    "PQADMIN_STALLED_SECONDS": "30",
    "PQADMIN_GROWING_SECONDS": "30",
    "PQADMIN_OLDEST_SECONDS": "7200",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture: its file's name without the ending, and how to come to what it shows."""

    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    size: tuple[int, int] = (1440, 900)
    #: How many of a document's pixels are one of the page's.
    scale: float = 2.0
    then: Callable[[Page], object] = lambda page: None


def _settled(page: Page) -> None:
    """Wait until both problems of the demo have been noticed and lead the list, and rates are those of ten seconds."""
    first, second = (f'tr[data-queue="{name}"][data-level={level}]' for name, level in demo.PROBLEMS)
    for _look in range(_LOOKS):
        wait_live(page)
        for row in (first, second):
            page.wait_for_selector(row)
        page.wait_for_function(
            f"() => Number(document.querySelector('[data-total=rate-in]').dataset.value) > {demo.RATE_IN}"
        )
        if page.locator(f"{first}:first-child + {second}").count():
            return
        seen = page.locator("tr[data-queue]").evaluate_all("rows => rows.map(r => [r.dataset.queue, r.dataset.state])")
        page.reload()  # rows never move by themselves
    raise AssertionError(f"{demo.PROBLEMS} do not lead the list after {_LOOKS} looks, but: {seen}")


def _palette(page: Page) -> None:
    _settled(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("orders eu")
    page.wait_for_selector("#palette-found[data-asked='orders eu'] a")


def _charts(page: Page) -> None:
    wait_live(page)
    page.wait_for_selector(".chart canvas")


def _wall(page: Page) -> None:
    page.wait_for_selector("body[data-fresh-state=live]")
    page.wait_for_selector('.tile[data-level="critical"]')


def shots(site: Site) -> list[Shot]:
    """Return the pictures of this site in the order of taking: problems are noticed half a minute late."""
    with open_store(site.store_url) as store:
        item = store.queue("orders:eu:refunds").peek_min()
    assert item is not None
    return [
        Shot(name="item-light", path=f"/queues/orders:eu:refunds/items/{item.id}/", size=(1440, 760)),
        Shot(name="history-light", path=f"/queues/{demo.SHOWN}/history/?span=6h", then=_charts),
        Shot(name="overview-light", path="/", then=_settled),
        Shot(name="overview-dark", path="/", scheme="dark", then=_settled),
        Shot(name="palette-dark", path="/", scheme="dark", size=(1440, 620), then=_palette),
        Shot(name="queue-light", path=f"/queues/{demo.SHOWN}/", then=wait_live),
        Shot(name="wall-dark", path="/wall/shop", scheme="dark", size=(1920, 1080), scale=1.0, then=_wall),
    ]


@contextmanager
def demo_site(folder: Path) -> Iterator[Site]:
    """Run the server on the demo's store, with traffic."""
    site = Site(folder, settings=SETTINGS)
    demo.make(site.store_url)
    try:
        site.start()
        site.manage("create_user", "ada", "--role", "admin", "--password-stdin", stdin=PASSWORD + "\n")
        with demo.flowing(site.store_url):
            yield site
    finally:
        site.stop()


class Photographer:
    """A person signed in to a demo site, with a board for the wall."""

    def __init__(self, site: Site, browser: Browser) -> None:
        self._site, self._browser = site, browser
        entrance = browser.new_context(base_url=site.address)
        page = entrance.new_page()
        sign_in(page, "ada", PASSWORD)
        page.goto("/boards/new/")
        page.fill("#board-name", "Shop")
        page.fill("#board-globs", "orders:*\nmail:*\nwebhooks:*\nfraud:*\nimages:*\nsms:*")
        page.click("text=Make the board")
        page.wait_for_url("**/boards/shop/")
        self._cookies = entrance.storage_state()
        entrance.close()
        self.shots = {shot.name: shot for shot in shots(site)}

    def take(self, name: str) -> bytes:
        """Take one picture, as PNG."""
        shot = self.shots[name]
        context = self._browser.new_context(
            base_url=self._site.address,
            storage_state=self._cookies,
            viewport={"width": shot.size[0], "height": shot.size[1]},
            device_scale_factor=shot.scale,
            color_scheme=shot.scheme,
            reduced_motion="reduce",
            timezone_id="UTC",
            locale="en",
        )
        context.set_default_timeout(PATIENCE_MS)
        try:
            page = context.new_page()
            page.goto(shot.path)
            shot.then(page)
            page.evaluate("document.fonts.ready")
            return page.screenshot(animations="disabled", caret="hide")
        finally:
            context.close()
