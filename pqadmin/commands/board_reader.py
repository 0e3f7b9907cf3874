"""The queues of a store as a command reads them, once or again and again, with their verdicts and rates.

The board and the model of health are those of the pages.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from pqadmin.live.board.rows import Row
from queues import Store

#: Seconds between two readings of a store that keeps changing, and at most: attached queues announce no change.
SHORTEST, LONGEST = 0.5, 1.0
#: A store of very many queues is read again only after this many times what the last reading took.
_SHARE = 3.0


class BoardReader:
    """Reads what changed of a store's queues, for as long as a command runs."""

    def __init__(
        self,
        store: Store,
        wanted: Callable[[str], bool] = lambda name: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # These import Django's models, which completion in shells does without.
        from pqadmin.live.board.board import Board
        from pqadmin.live.screens import Screens
        from pqadmin.live.sweep import WATCH_LIMIT, Sweep

        self._store = store
        self._wanted = wanted
        self._clock = clock
        self._board = Board()
        self._directory = Screens(self._board, clock)
        self._sweep = Sweep(self._board, clock)
        self._watch_limit = WATCH_LIMIT

    def read(self) -> tuple[Sequence[Row], datetime]:
        """Read what changed; return the rows of the wanted queues, by name, and the time by the store's clock."""
        self._directory.read_directory(self._store)
        board = self._board
        wanted = {queue_id for name, queue_id in board.directory.items() if self._wanted(name)}
        for chunk in self._sweep.everything():
            if ids := tuple(queue_id for queue_id in chunk if queue_id in wanted):
                self._sweep.read(self._store, ids)
        now = self._clock()
        rows = [row for queue_id in board.directory.values() if (row := board.row(queue_id, now)) is not None]
        return rows, self._store.now()

    def counted(self, within: float) -> tuple[Sequence[Row], datetime]:
        """Read until every attached queue is counted, or for so many seconds."""
        until = self._clock() + within
        while True:
            rows, now = self.read()
            if all(row.ready is not None or row.status.unreadable for row in rows) or self._clock() >= until:
                return rows, now
            time.sleep(0.05)  # another thread counts them

    def changes(self) -> Iterator[tuple[Sequence[Row], datetime]]:
        """Yield the rows now, and again whenever they may differ: at least once a second, at most twice."""
        while True:
            began = self._clock()
            yield self.read()
            took = self._clock() - began
            time.sleep(max(SHORTEST - took, _SHARE * took))
            if len(self._board.ids) <= self._watch_limit:
                self._store.wait_for_change(self._board.known(self._board.ids), timeout=LONGEST - SHORTEST)
