"""The queues of a store as a command reads them, once or again and again, with their verdicts and rates.

The board and the model of health are those of the pages; of a remote store the site tells them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from pqadmin.live.board.rows import Row, load_of
from queues import Store
from queues.admin import Site

#: Seconds between two readings of a store that keeps changing, and at most: attached queues announce no change.
SHORTEST, LONGEST = 0.5, 1.0
#: A store of very many queues is read again only after this many times what the last reading took.
_SHARE = 3.0

Reading = tuple[Sequence[Row], datetime]


class BoardReader:
    """Reads what changed of a store's queues, for as long as a command runs."""

    def __init__(self, store: Store, prefix: str = "") -> None:
        self._board: _Board = _OwnBoard(store, prefix) if store.site is None else _SiteBoard(store.site, prefix)

    def read(self) -> Reading:
        """Read what changed; return the rows of the wanted queues, by name, and the time by the store's clock."""
        return self._board.read()

    def counted(self, within: float) -> Reading:
        """Read until every attached queue is counted, or for so many seconds."""
        until = time.monotonic() + within
        while True:
            rows, now = self.read()
            if all(row.ready is not None or row.status.unreadable for row in rows) or time.monotonic() >= until:
                return rows, now
            time.sleep(self._board.rest)  # another thread counts them

    def changes(self) -> Iterator[Reading]:
        """Yield the rows now, and again whenever they may differ: at least once a second, at most twice."""
        with self._board.following() as wait:
            while True:
                began = time.monotonic()
                yield self.read()
                took = time.monotonic() - began
                time.sleep(max(SHORTEST - took, _SHARE * took))
                wait(LONGEST - SHORTEST)


class _Board(Protocol):
    #: Seconds between two readings while attached queues are being counted.
    rest: float

    def read(self) -> Reading: ...

    def following(self) -> AbstractContextManager[Callable[[float], object]]: ...


class _OwnBoard:
    """The board of a store that this process opened."""

    rest = 0.05

    def __init__(self, store: Store, prefix: str) -> None:
        # These import Django's models, which completion in shells does without.
        from pqadmin.live.board.board import Board
        from pqadmin.live.off_screen_reads import WATCH_LIMIT, OffScreenReads
        from pqadmin.live.screens import Screens

        self._store = store
        self._prefix = prefix
        self._board = Board()
        self._directory = Screens(self._board, time.monotonic)
        self._sweep = OffScreenReads(self._board, time.monotonic)
        self._watch_limit = WATCH_LIMIT

    def read(self) -> Reading:
        self._directory.read_directory(self._store)
        board = self._board
        wanted = {queue_id for name, queue_id in board.directory.items() if name.startswith(self._prefix)}
        for chunk in self._sweep.everything():
            if ids := tuple(queue_id for queue_id in chunk if queue_id in wanted):
                self._sweep.read(self._store, ids)
        now = time.monotonic()
        rows = [row for queue_id in board.directory.values() if (row := board.row(queue_id, now)) is not None]
        return rows, self._store.now()

    def following(self) -> AbstractContextManager[Callable[[float], object]]:
        return nullcontext(self._wait)

    def _wait(self, seconds: float) -> None:
        if len(self._board.ids) <= self._watch_limit:
            self._store.wait_for_change(self._board.known(self._board.ids), timeout=seconds)


class _SiteBoard:
    """The board that the site of a remote store tells; a row stays the same one until it differs."""

    rest = 0.25

    def __init__(self, site: Site, prefix: str) -> None:
        self._site = site
        self._prefix = prefix
        self._rows: dict[int, Row] = {}
        self.following = site.following

    def read(self) -> Reading:
        queues, at = self._site.queues(self._prefix)
        rows = [Row(one.status, at, one.verdict, one.rate_in, one.rate_out) for one in queues]
        self._rows = {row.status.id: self._same(self._loaded(row)) for row in rows}
        return list(self._rows.values()), at

    def _loaded(self, row: Row) -> Row:
        old = self._rows.get(row.status.id)
        return replace(row, load=load_of(row.ready, 0 if old is None else old.load))

    def _same(self, row: Row) -> Row:
        """Return the row of before, if the queue was not changed since."""
        old = self._rows.get(row.status.id)
        if old is None or old.status.change != row.status.change:
            return row
        return old if replace(row, status=old.status, as_of=old.as_of) == old else row
