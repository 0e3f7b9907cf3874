"""The bar of a site that names its environment: at every width all of it is seen, whatever the page says of itself."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE, Site, sign_in

#: Pixels by which the page, and each name of the environment, is wider than its room.
OVER = """() => [
    document.documentElement.scrollWidth - innerWidth,
    ...[...document.querySelectorAll(".env")].map((e) => e.scrollWidth - e.clientWidth),
]"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A running site that says that it is production, and is armed before anything can be changed."""
    settings = {"PQADMIN_ENVIRONMENT": "production", "PQADMIN_ARM_MINUTES": "60"}
    made = Site(tmp_path_factory.mktemp("named"), settings=settings)
    made.start()
    yield made
    made.stop()


def test_the_bar_fits_every_width(site: Site, chromium: Browser) -> None:
    page = chromium.new_context(base_url=site.address, java_script_enabled=False).new_page()
    page.set_default_timeout(PATIENCE * 1000)
    sign_in(page, "admin", site.password)
    see_bar(page)
    page.goto("/arm/")
    page.fill("[name=environment]", "production")
    page.get_by_role("button", name="Arm for").click()
    expect(page.locator(".arming[data-armed=yes]").first).to_be_attached()
    see_bar(page)


def see_bar(page: Page) -> None:
    """See all of the bar at every width."""
    page.goto("/")
    for word, ago in (("as of", "23:59:59 UTC"), ("reconnecting", "119 min")):
        page.locator("[data-fresh] [data-part=word]").evaluate("(e, word) => e.textContent = word", word)
        page.locator("[data-fresh] [data-part=ago]").evaluate("(e, ago) => e.textContent = ago", ago)
        for width in (360, 600, 721, 768, 900, 929, 1024, 1120, 1280, 1366, 1440):
            page.set_viewport_size({"width": width, "height": 700})
            assert max(page.evaluate(OVER)) <= 0, (width, word)
