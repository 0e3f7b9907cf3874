"""The contexts that tests share: one that a test has changed is no other test's."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.contexts import Contexts

CHANGES: dict[str, Callable[[Page, str], object]] = {
    "clock": lambda page, _: page.clock.install(),
    "cookie": lambda page, address: page.context.add_cookies([{"name": "x", "value": "y", "url": address}]),
    "signed out": lambda page, _: page.context.clear_cookies(),
    "kept": lambda page, _: page.evaluate("localStorage.setItem('x', 'y')"),
}


def test_a_context_is_used_again_by_pages_that_look_otherwise(contexts: Contexts) -> None:
    one = contexts.open(viewport={"width": 360, "height": 800}, color_scheme="dark", reduced_motion="no-preference")
    context = one.context
    seen = "() => [innerWidth, ...['dark', 'reduce'].map((word, n) => matchMedia(`(${['prefers-color-scheme', \
            'prefers-reduced-motion'][n]}: ${word})`).matches)]"
    assert one.evaluate(seen) == [360, True, False]
    contexts.close(one, viewport={"width": 360, "height": 800}, color_scheme="dark", reduced_motion="no-preference")
    other = contexts.open()
    assert (other.context, one.is_closed()) == (context, True)
    assert other.evaluate(seen) == [1280, False, True]
    contexts.close(other)


@pytest.mark.parametrize("changed", CHANGES)
def test_a_context_that_is_changed_is_not_used_again(changed: str, contexts: Contexts) -> None:
    page = contexts.open()
    page.goto("/livez")
    CHANGES[changed](page, page.url)
    context = page.context
    contexts.close(page)
    other = contexts.open()
    assert other.context is not context
    contexts.close(other)


def test_a_page_that_loads_itself_anew_for_ever_keeps_no_test_waiting(contexts: Contexts) -> None:
    page = contexts.open()
    page.route(
        "**/livez", lambda route: route.fulfill(content_type="text/html", body="<script>location.reload()</script>")
    )
    page.goto("/livez", wait_until="commit")
    contexts.close(page)
    assert page.is_closed()
