"""One page of a queue's items: a list, or as much of a search as a short time allows."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pqadmin.dashboard.items.query import TRASH, Asked
from pqadmin.pages.queue_context import PREVIEW_BYTES
from queues import Found, Item, Queue, ReadTransaction
from queues.errors import BadCursor

#: Items on one page of a queue.
PAGE = 50
#: Items of one step of a search, each a read of its own; steps and seconds after which an answer goes out.
SCAN = 5_000
STEPS = 5
SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The items of a page, and how much was looked through for them."""

    items: tuple[Item, ...]
    #: Where the next page begins; None: there is none.
    cursor: str | None
    searched: int
    found: int
    #: The items are in the order of their age, not of their places.
    by_age: bool
    #: Keys said that other items need not be looked at.
    narrowed: bool
    #: The cursor was not one of this list; the page is the first.
    foreign_cursor: bool = False

    @property
    def ended(self) -> bool:
        """Say whether everything was looked at."""
        return self.cursor is None


EMPTY = Listed(items=(), cursor=None, searched=0, found=0, by_age=False, narrowed=False)


def list_items(
    queue: Queue,
    asked: Asked,
    *,
    shown: Callable[[bytes], bytes] | None = None,
    tr: ReadTransaction | None = None,
) -> Listed:
    """Return the page that an address asks for; `shown` gives what the reader sees of a value.

    There are as many steps as the time allows: each a read of its own, or all of them within `tr`.
    """
    if asked.state == TRASH:
        return EMPTY
    try:
        return _list(queue, asked, asked.after, shown, tr)
    except BadCursor:
        return replace(_list(queue, asked, None, shown, tr), foreign_cursor=True)


def _list(
    queue: Queue,
    asked: Asked,
    after: str | None,
    shown: Callable[[bytes], bytes] | None,
    tr: ReadTransaction | None,
) -> Listed:
    items: list[Item] = []
    until = time.monotonic() + SECONDS
    for _ in range(STEPS):
        found: Found = queue.search(
            asked.query,
            after=after,
            end=asked.end,
            limit=PAGE - len(items),
            scan=SCAN,
            preview=PREVIEW_BYTES,
            shown=shown,
            tr=tr,
        )
        items += found.items
        after = found.cursor
        if found.ended or len(items) == PAGE or time.monotonic() >= until:
            break
    query = asked.query
    by_age = found.order == "age"
    return Listed(
        items=tuple(items),
        cursor=found.cursor,
        searched=found.searched_so_far,
        found=found.found_so_far,
        by_age=by_age,
        narrowed=(query.since or query.until) is not None
        if by_age
        else query.state == "ready" and (query.low is not None or query.high is not None),
    )
