"""The sweep: queues that are on nobody's screen are read in chunks, only those that changed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pqadmin.live.board import Board
from queues.errors import QueueError
from queues.status import Snapshot
from queues.store import MAX_SNAPSHOT, Store

#: Seconds from the end of one round over all queues to the beginning of the next.
ROUND_PAUSE = 1.0


class Sweep:
    """Goes round all queues, chunk by chunk. Used under the monitor's reading lock."""

    def __init__(self, board: Board, clock: Callable[[], float], preview: int) -> None:
        self._board = board
        self._clock = clock
        self._preview = preview
        self._todo: list[tuple[int, ...]] = []
        self._last: dict[tuple[int, ...], Snapshot] = {}
        self._round_ended = float("-inf")

    @property
    def busy(self) -> bool:
        """Say whether a round is under way."""
        return bool(self._todo)

    def step(self, store: Store, on_screens: Collection[int]) -> bool:
        """Read the next chunk of what is on no screen, if one is due; say whether the store was read."""
        now = self._clock()
        if not self._todo:
            if now - self._round_ended < ROUND_PAUSE:
                return False
            self._begin(self._board.ids.difference(on_screens))
            if not self._todo:
                self._round_ended = now
                return False
        read = self._chunk(store, self._todo.pop(0))
        if not self._todo:
            self._round_ended = self._clock()
        return read

    def everything(self, store: Store) -> None:
        """Read every chunk of every queue now."""
        self._begin(self._board.ids)
        while self._todo:
            self._chunk(store, self._todo.pop(0))

    def _begin(self, ids: Collection[int]) -> None:
        ordered = sorted(ids)
        self._todo = [tuple(ordered[start : start + MAX_SNAPSHOT]) for start in range(0, len(ordered), MAX_SNAPSHOT)]
        self._last = {chunk: self._last[chunk] for chunk in self._todo if chunk in self._last}

    def _chunk(self, store: Store, chunk: tuple[int, ...]) -> bool:
        last = self._last.get(chunk)
        if last is not None and not store.wait_for_change(last, timeout=0):
            self._board.hold(chunk, self._clock())
            return False
        try:
            snapshot = store.snapshot(chunk, previous=self._board.previous(), preview=self._preview)
        except QueueError:  # the directory changed meanwhile: the next round has it
            return False
        self._last[chunk] = snapshot
        self._board.apply(snapshot, self._clock())
        return True
