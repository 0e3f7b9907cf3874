"""Lists that are read on until they show something, as long as an answer may take."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest

from pqadmin.display.errors import said
from queues import RecordPage
from queues.errors import BadCursor

#: Seconds after which an answer goes out, with a way on, though nothing was found yet; each reading is bounded itself.
SECONDS = 0.25


T = TypeVar("T")


def until_something(
    request: HttpRequest,
    read: Callable[[str | None], RecordPage[T]],
    *,
    shown: Callable[[T], bool] = lambda _record: True,
    kept: Mapping[str, str] | None = None,
) -> tuple[RecordPage[T], dict[str, Any]]:
    """Read pages from the one that the address names, one transaction each, until one has a record that is `shown`.

    Return it with what its template shows: how many records were looked at, why it shows the first ones in place of
    those that were asked for, and the addresses of the first page and the next one, which keep the filters `kept`.
    """
    after, until, wrong = request.GET.get("after", "")[:300] or None, time.monotonic() + SECONDS, ""
    try:
        page = read(after)
    except BadCursor as error:
        page, wrong = read(None), said(error)
    looked = page.looked
    while page.cursor is not None and time.monotonic() < until:
        if page.unreadable or any(map(shown, page.entries)):
            break
        page = read(page.cursor)
        looked += page.looked
    kept = kept or {}
    return page, {
        "looked": looked,
        "wrong": wrong,
        "in_middle": after is not None and not wrong,
        "first_url": "?" + urlencode(kept),
        "next_url": "" if page.cursor is None else "?" + urlencode({**kept, "after": page.cursor}),
    }
