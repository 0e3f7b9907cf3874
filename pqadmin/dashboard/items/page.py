"""The queue page's data, read in one transaction so that all of it fits together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pqadmin.dashboard.items.query import Asked
from pqadmin.dashboard.items.query import asked as asked_for
from pqadmin.dashboard.items.search import Listed, list_items
from pqadmin.display.values import what_searchers_see
from pqadmin.live.board.rows import Row
from pqadmin.live.wire import END_ITEMS
from pqadmin.pages.queue_context import PREVIEW_BYTES, row_of
from pqadmin.store import get_store, store_now
from queues import Item, Page, Queue, QueueStatus, ReadTransaction


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


def see(name: str, fields: Mapping[str, str]) -> Seen:
    """Read a queue for its page, with the items that an address asks for; raise `QueueNotFound`.

    All of it is of one version, but for what a search finds: that goes by steps.
    """
    store, now = get_store(), store_now()

    def look(tr: ReadTransaction) -> tuple[Queue, QueueStatus, Page, Page, Asked, Listed | None]:
        queue = store.queue(name, tr=tr)
        asked = asked_for(fields, queue, now=now)
        return (
            queue,
            queue.status(tr=tr, preview=PREVIEW_BYTES),
            queue.items(end="min", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr),
            queue.items(end="max", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr),
            asked,
            None if asked.searching else list_items(queue, asked, tr=tr),
        )

    with store.suggesting():
        queue, status, low, high, asked, listed = store.read(look)
    now = store_now()
    return Seen(
        status=status,
        row=row_of(status, now),
        min=low.items,
        max=high.items,
        asked=asked,
        listed=list_items(queue, asked, shown=what_searchers_see(queue.config)) if listed is None else listed,
        now=now,
    )
