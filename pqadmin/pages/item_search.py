"""Searches for items in one or several queues, in bounded steps, each a read of its own."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pqadmin.display.values import what_searchers_see
from pqadmin.store import get_store
from queues import Item, Query, Queue, ReadTransaction
from queues.admin import End, Found
from queues.errors import BadCursor, QueueNotFound, QueueUnreadable

#: Bytes of a value that a search found, in which the hit is shown.
FOUND_BYTES = 8_000
#: Items of one step; steps and seconds after which the answer of one queue goes out.
SCAN, STEPS, SECONDS = 5_000, 5, 0.25


def search_queue(
    queue: Queue,
    query: Query,
    *,
    after: str | None,
    limit: int,
    end: End,
    preview: int,
    shown: Callable[[bytes], bytes] | None = None,
    tr: ReadTransaction | None = None,
) -> tuple[list[Item], Found]:
    """Return items that fit, and the last step. All steps are within `tr` if there is one. Raises `BadCursor`.

    `shown` gives what the reader sees of a value.
    """
    items: list[Item] = []
    until = time.monotonic() + SECONDS
    search = partial(queue.search, query, end=end, scan=SCAN, preview=preview, shown=shown, tr=tr)
    for _ in range(STEPS):
        found = search(after=after, limit=limit - len(items))
        items += found.items
        after = found.cursor
        if found.ended or len(items) >= limit or time.monotonic() >= until:
            break
    return items, found


@dataclass(slots=True, kw_only=True)
class Search:
    """One step of a search in several queues: what it found, and where the next one goes on."""

    query: Query
    #: The queues, in the order of their names.
    names: Sequence[str]
    states: Sequence[str]
    #: Whether the finished item of the query's id is looked for too.
    finished: bool = False
    #: Whether a state of a queue is worth a look.
    holds: Callable[[str, str], bool] = lambda name, state: True
    preview: int = FOUND_BYTES
    #: A damaged cursor begins its state anew; otherwise it raises `BadCursor`.
    lenient: bool = False
    hits: list[tuple[Queue, Item]] = field(default_factory=list)
    searched: int = 0
    #: Queues that were looked through to their end, from the first on.
    done: int = 0
    #: Queues of which anything was looked through.
    begun: int = 0
    unread: list[str] = field(default_factory=list)
    #: Queues that this process has not read yet, since it started.
    not_yet: int = 0
    #: The queue, state and cursor of the next step; None: everything was looked through.
    onward: tuple[str, str, str] | None = None

    def run(self, at: str, state: str, after: str, *, limit: int, seconds: float) -> None:
        """Look from a place on, until there are enough hits or the time is over."""
        until, store = time.monotonic() + seconds, get_store()
        self.done = self.begun = sum(name < at for name in self.names)
        for name in self.names[self.done :]:
            try:
                for each in self._to_look(name, state if name == at else ""):
                    queue = store.queue(name)
                    cursor: str | None = after if (name, each) == (at, state) else ""
                    while cursor is not None and (each == "ready" or not queue.attached):
                        if len(self.hits) >= limit or time.monotonic() >= until:
                            self.onward = (name, each, cursor)
                            return
                        self.begun = self.done + 1
                        cursor = self._step(queue, each, cursor, limit)
                if self.finished and not any(hit.name == name for hit, _ in self.hits):
                    queue = store.queue(name)
                    if (item := queue.find_finished(self.query.item_id)) is not None:
                        self.hits.append((queue, item))
            except QueueUnreadable:
                self.unread.append(name)
            except QueueNotFound:  # deleted meanwhile
                pass
            self.done += 1
            self.begun = self.done

    def _to_look(self, name: str, begin: str) -> Iterator[str]:
        """Yield the states of a queue that hold items."""
        for state in self.states[self.states.index(begin) if begin in self.states else 0 :]:
            if state == begin or self.holds(name, state):
                yield state

    def _step(self, queue: Queue, state: str, cursor: str, limit: int) -> str | None:
        query, shown = replace(self.query, state=state), what_searchers_see(queue.config)
        room = limit - len(self.hits)
        look = partial(queue.search, query, limit=room, scan=SCAN, preview=self.preview, shown=shown)
        try:
            found = look(after=cursor or None)
        except BadCursor:
            if not self.lenient:
                raise
            found = look()
        self.hits += ((queue, item) for item in found.items)
        self.searched += found.searched
        return found.cursor
