"""The browser's contexts, which all tests share: a page in one that is there is open in half the time.

Styles and scripts are fetched once and not by every test, and the pages of a site have one process
(`--process-per-site`), which a page that stays open keeps. A context that a test leaves otherwise than it found it is
closed: with other cookies, with something kept in the browser, with a clock of the test's.
"""

import json
from collections.abc import Mapping
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

#: What is set for a page and not for its context, so that more tests share one.
OF_A_PAGE = ("viewport", "color_scheme", "reduced_motion")
#: What makes a context one for a single test.
OF_ONE_TEST = {"storage_state", "permissions"}
#: Contexts that are kept.
_MOST = 4


class Contexts:
    """Contexts in which the admin of a site is signed in."""

    def __init__(self, browser: Browser, address: str, signed_in: Any, patience: float) -> None:
        self._browser, self._address, self._signed_in, self._patience = browser, address, signed_in, patience
        self._free: list[tuple[str, BrowserContext]] = []
        self._stays: dict[BrowserContext, Page] = {}

    def open(self, **options: Any) -> Page:
        """Open a page in a context with these options, as it is after a start of the browser."""
        of_context = {name: value for name, value in options.items() if name not in OF_A_PAGE}
        page = self._take(of_context).new_page()
        if "viewport" in options:
            page.set_viewport_size(options["viewport"])
        if options.keys() & {"color_scheme", "reduced_motion"}:
            page.emulate_media(
                color_scheme=options.get("color_scheme"), reduced_motion=options.get("reduced_motion", "reduce")
            )
        return page

    def close(self, page: Page, **options: Any) -> None:
        """Close a page, and all that its test opened beside it."""
        context = page.context
        stays = self._stays.get(context)
        for each in context.pages:  # before anything is asked: one that reloads itself again and again never answers
            if each is not stays:
                each.close()
        if stays is None or not self._is_as_it_was(context, stays):
            self._stays.pop(context, None)
            context.close()
            return
        self._free.append((_name(options), context))
        if len(self._free) > _MOST:
            _, oldest = self._free.pop(0)
            del self._stays[oldest]
            oldest.close()

    def _take(self, options: Mapping[str, Any]) -> BrowserContext:
        wanted = _name(options)
        for n, (name, context) in enumerate(self._free):
            if name == wanted:
                del self._free[n]
                return context
        settings = {"base_url": self._address, "storage_state": self._signed_in, "reduced_motion": "reduce"}
        context = self._browser.new_context(**(settings | options))
        context.set_default_timeout(self._patience * 1000)
        if not OF_ONE_TEST & options.keys():
            self._stays[context] = context.new_page()
            self._stays[context].goto("/livez")
        return context

    def _is_as_it_was(self, context: BrowserContext, stays: Page) -> bool:
        if not stays.evaluate("/native code/.test(Function.prototype.toString.call(Date))"):
            return False
        there = context.storage_state()
        return not there["origins"] and _cookies(there) == _cookies(self._signed_in)


def _name(options: Mapping[str, Any]) -> str:
    """Return what contexts with these options have in common."""
    return json.dumps({name: value for name, value in options.items() if name not in OF_A_PAGE}, sort_keys=True)


def _cookies(state: Any) -> set[tuple[str, str]]:
    return {(cookie["name"], cookie["value"]) for cookie in state["cookies"]}
