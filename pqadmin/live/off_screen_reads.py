"""Reads of changed queues that are on no screen: in chunks."""

from collections.abc import Callable, Collection
from datetime import datetime

from pqadmin.live.board.board import Board
from pqadmin.live.board.consistent_cuts import PREVIEW_BYTES
from queues import Snapshot, Store
from queues.admin import MAX_SNAPSHOT

#: Seconds from the end of one round over all queues to the beginning of the next.
ROUND_PAUSE = 1.0
#: Up to so many queues a watch says when a round is worth it; beyond, rounds follow each other.
WATCH_LIMIT = 2_000


class OffScreenReads:
    """Goes round all queues, chunk by chunk. Used under the monitor's reading lock."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._todo: list[tuple[int, ...]] = []
        self._covered: frozenset[int] = frozenset()
        self._dirty = False
        #: Attached queues that were not counted yet when they were read: read again until they are.
        self._uncounted: list[int] = []
        self._ended = float("-inf")
        #: What tells, when it changes, that another round is due; None while rounds follow each other anyway.
        self.watched: Snapshot | None = None

    @property
    def busy(self) -> bool:
        """Return whether a round is under way."""
        return bool(self._todo)

    def changed(self) -> None:
        """Note that a queue of the last round may have changed."""
        self._dirty = True

    def forget(self) -> None:
        """Begin a round with the next step: until then nothing tells of changes."""
        self._dirty, self._todo, self._ended, self.watched = True, [], float("-inf"), None

    def step(self, store: Store, on_screens: Collection[int]) -> None:
        """Read the next chunk of what is on no screen, if one is due."""
        if not self._todo and not self._begin(self._board.ids.difference(on_screens), store.now()):
            return
        self.read(store, self._todo.pop(0))
        if not self._todo:
            self._finish()

    def everything(self) -> list[tuple[int, ...]]:
        """Return every queue in chunks, those that were never read first."""
        unread = self._board.unread()
        return [*chunks(unread), *chunks(self._board.ids - unread)]

    def read(self, store: Store, chunk: tuple[int, ...]) -> None:
        """Read what changed of these queues."""
        snapshot = store.snapshot(chunk, previous=self._board.previous(chunk), preview=PREVIEW_BYTES, tolerant=True)
        self._board.apply(snapshot, self._clock())

    def _begin(self, rest: frozenset[int], at: datetime) -> bool:
        now = self._clock()
        endless = len(rest) > WATCH_LIMIT
        if now - self._ended < ROUND_PAUSE:
            return False
        if not (self._dirty or endless or rest != self._covered):
            self._board.hold(rest, now, at)
            self._ended = now
            self._todo = chunks(self._uncounted)
            return bool(self._todo)
        self._dirty, self._covered, self._todo = False, rest, chunks(rest)
        if not rest:
            self.watched = None
        return bool(rest)

    def _finish(self) -> None:
        self._ended = self._clock()
        self._uncounted = self._board.uncounted(self._covered)
        self.watched = None if len(self._covered) > WATCH_LIMIT else self._board.known(self._covered)


def chunks(ids: Collection[int]) -> list[tuple[int, ...]]:
    """Divide queues into chunks of one snapshot each."""
    ordered = sorted(ids)
    return [tuple(ordered[start : start + MAX_SNAPSHOT]) for start in range(0, len(ordered), MAX_SNAPSHOT)]
