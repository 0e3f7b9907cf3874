"""The queue page's data, read in one transaction so that all of it fits together; a search goes by steps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pqadmin.dashboard.items.query import FINISHED, TRASH, Asked
from pqadmin.dashboard.items.query import asked as asked_for
from pqadmin.display.values import what_searchers_see
from pqadmin.live.board.rows import Row
from pqadmin.live.frame_json import END_ITEMS
from pqadmin.pages.item_search import FOUND_BYTES, search_queue
from pqadmin.pages.queue_context import PREVIEW_BYTES, row_of
from pqadmin.store import get_store, store_now
from queues import Attempt, Item, Page, Query, Queue, QueueStatus, ReadTransaction
from queues.admin import STATES, HealthCode
from queues.errors import BadCursor

#: Items on one page of a queue.
PAGE = 50
#: The state with the items in trouble, by the first reason of a verdict; by any other one the ready ones are. What
#: came back may wait for its next attempt.
_IN_TROUBLE = {
    HealthCode.NONE_TAKEN: "leased",
    HealthCode.NOTHING_DONE: "delayed",
    HealthCode.RETRIES: "delayed",
    HealthCode.DEAD: "dead",
}


#: Reasons that say that attempts fail.
FAILING = frozenset({HealthCode.NOTHING_DONE, HealthCode.RETRIES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The items of a page, and how much was looked through for them."""

    items: tuple[Item, ...] = ()
    #: Where the next page begins; None: there is none.
    cursor: str | None = None
    searched: int = 0
    found: int = 0
    #: The items are in the order of their age, not of their places.
    by_age: bool = False
    #: Keys said that other items need not be looked at.
    narrowed: bool = False
    #: The cursor was not one of this list; the page is the first.
    foreign_cursor: bool = False

    @property
    def ended(self) -> bool:
        """Say whether everything was looked at."""
        return self.cursor is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One queue at one moment, and the items of it that were asked for."""

    status: QueueStatus
    row: Row
    min: Sequence[Item]
    max: Sequence[Item]
    asked: Asked
    listed: Listed
    now: datetime
    #: Of the items that were read, the one with the newest failed attempt, and that attempt; where attempts fail.
    failed: tuple[Item, Attempt] | None = None


def see(name: str, fields: Mapping[str, str]) -> Seen:
    """Read a queue for its page, with the items that an address asks for; raise `QueueNotFound`.

    All of it is of one version, but for what a search finds: that goes by steps.
    """
    store, now = get_store(), store_now()

    def look(tr: ReadTransaction) -> tuple[Queue, QueueStatus, Row, Page, Page, Sequence[Item], Asked, Listed | None]:
        queue = store.queue(name, tr=tr)
        status = queue.status(tr=tr, preview=PREVIEW_BYTES)
        row = row_of(status, now)
        asked = asked_for(fields, queue, now=now, first=_first_state(row))
        return (
            queue,
            status,
            row,
            queue.items(end="min", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr),
            queue.items(end="max", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr),
            _came_back_last(queue, row, tr) if FAILING.intersection(row.verdict.codes) else (),
            asked,
            None if asked.searching else list_items(queue, asked, tr=tr),
        )

    with store.suggesting():
        queue, status, row, low, high, late, asked, listed = store.read(look)
    now = store_now()
    if listed is None:
        listed = list_items(queue, asked, shown=what_searchers_see(queue.config))
    here = listed.items if asked.state in STATES else ()
    failing = FAILING.intersection(row.verdict.codes)
    return Seen(
        status=status,
        row=row,
        min=low.items,
        max=high.items,
        asked=asked,
        listed=listed,
        now=now,
        failed=_newest_failure((*late, *low.items, *high.items, *here)) if failing else None,
    )


def _came_back_last(queue: Queue, row: Row, tr: ReadTransaction) -> Sequence[Item]:
    """Return the delayed item that is due last and the newest dead one: by a steady backoff, those that failed last."""
    totals = row.status.totals
    states = [state for state, n in (("delayed", totals.delayed), ("dead", totals.dead)) if n]
    found = [queue.search(Query(state=state), end="max", limit=1, scan=1, preview=0, tr=tr) for state in states]
    return [item for step in found for item in step.items]


def _newest_failure(items: Iterable[Item]) -> tuple[Item, Attempt] | None:
    """Return the item with the newest attempt that told an error, and that attempt."""
    failed = [(item, attempt) for item in items for attempt in item.attempt_log[-1:] if attempt.error]
    return max(failed, key=lambda one: one[1].ended_at, default=None)


def _first_state(row: Row) -> str:
    """Return the state that a page shows where its address names none: that in trouble, or one that has items."""
    if row.status.attached:
        return "ready"
    wanted = [_IN_TROUBLE.get(code, "ready") for code in row.verdict.codes[:1]]
    return next((state for state in (*wanted, *STATES) if getattr(row.status.totals, state)), "ready")


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
        return Listed()
    if asked.state == FINISHED:
        return _finished(queue, asked, tr)
    query, foreign_cursor = asked.query, False
    preview = FOUND_BYTES if query.text else PREVIEW_BYTES
    search = partial(search_queue, queue, query, limit=PAGE, end=asked.end, preview=preview, shown=shown, tr=tr)
    try:
        items, found = search(after=asked.after)
    except BadCursor:
        (items, found), foreign_cursor = search(after=None), True
    by_age = found.order == "age"
    by_time = (query.since or query.until) is not None
    by_priority = query.state == "ready" and (query.low is not None or query.high is not None)
    return Listed(
        items=tuple(items),
        cursor=found.cursor,
        searched=found.searched_so_far,
        found=found.found_so_far,
        by_age=by_age,
        narrowed=by_time if by_age else by_priority,
        foreign_cursor=foreign_cursor,
    )


def _finished(queue: Queue, asked: Asked, tr: ReadTransaction | None) -> Listed:
    """Return a page of finished items, the newest first."""
    foreign_cursor = False
    try:
        page = queue.finished(limit=PAGE, after=asked.after, tr=tr)
    except BadCursor:
        page, foreign_cursor = queue.finished(limit=PAGE, tr=tr), True
    return Listed(items=page.items, cursor=page.cursor, foreign_cursor=foreign_cursor)
