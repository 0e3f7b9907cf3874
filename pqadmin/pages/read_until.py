"""Lists of which one reading may show nothing though older records fit: more is read while an answer may take."""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from pqadmin.display.errors import said
from queues.errors import BadCursor

#: Seconds after which an answer goes out, with a way on, though nothing was found yet; each reading is bounded itself.
SECONDS = 0.25


class _Page(Protocol):
    @property
    def cursor(self) -> str | None: ...
    @property
    def looked(self) -> int: ...


P = TypeVar("P", bound=_Page)


def until_something(
    read: Callable[[str | None], P], after: str | None, *, empty: Callable[[P], bool]
) -> tuple[P, int, str]:
    """Read pages, one transaction each, until one is not empty.

    Return it, how many records were looked at, and why it shows the first ones in place of those after `after`.
    """
    until = time.monotonic() + SECONDS
    wrong = ""
    try:
        page = read(after)
    except BadCursor as error:
        page, wrong = read(None), said(error)
    looked = page.looked
    while page.cursor is not None and empty(page) and time.monotonic() < until:
        page = read(page.cursor)
        looked += page.looked
    return page, looked, wrong
