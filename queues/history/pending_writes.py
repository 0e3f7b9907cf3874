"""Blocks of histories that wait to be written, and when they are."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from queues.history.line import Line
from queues.history.open_block import OpenBlock
from queues.history.points import Point, Resolution
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.model.tuples import Range

#: Seconds for which points wait to be written.
FLUSH = 10.0


class PendingWrites:
    """Ranges to clear, then blocks to set, in the next transaction that writes."""

    def __init__(
        self, keyspace: Keyspace, count: Callable[[], float], stored: Callable[[bytes], Sequence[Point]]
    ) -> None:
        self._keyspace = keyspace
        self._count = count
        #: Reads the points of a block that was written.
        self._stored = stored
        self.forget()

    def forget(self) -> None:
        """Forget what was written, or is not to be written."""
        self._clears: list[Range] = []
        #: By queue, and by key.
        self._blocks: dict[int, dict[bytes, OpenBlock]] = {}
        self._due: float | None = None

    @property
    def left(self) -> float | None:
        """Seconds until the next write; None when nothing waits."""
        return None if self._due is None else self._due - self._count()

    def wait(self) -> None:
        """Note that something waits to be written."""
        if self._due is None:
            self._due = self._count() + FLUSH

    def hurry(self) -> None:
        """Let the next round write."""
        self._due = self._count()

    def drop(self, queue_id: int) -> None:
        """Forget what is to be written of a queue that is gone."""
        self._blocks.pop(queue_id, None)

    def packed(self) -> dict[int, dict[bytes, bytes]]:
        """Return the blocks as they are stored, by queue and by key."""
        return {
            queue_id: {key: block.block() for key, block in blocks.items()} for queue_id, blocks in self._blocks.items()
        }

    def clear(self, tr: Transaction) -> None:
        """Clear what is out of date, in a transaction that may be repeated."""
        for begin, end in self._clears:
            tr.clear_range(begin, end)

    def add(self, queue_id: int, line: Line, resolution: Resolution, point: Point) -> None:
        """Add a point to a line, preceded by one that ends a time without changes."""
        name, history, now = resolution.name, self._keyspace.history, point.at
        block, gap = line.blocks[name], line.has_gap(resolution)
        known = line.unknown_after.pop(name, None)
        first, end = history.below(queue_id, name)
        if block.at is not None and block.at > now:  # the clock stepped back
            key = history.key(queue_id, name, resolution.start(now))
            there = self._blocks.get(queue_id, {}).get(key)
            if resolution.start(block.at) == resolution.start(now):
                there = block
            points = self._stored(key) if there is None else there.points
            self._clear(queue_id, key, end)
            block = block.with_points([past for past in points if past.at < now])
        moments = [now]
        if block.at is not None and now - block.at > resolution.step + resolution.step // 2 + 1:
            same = now - resolution.step if known is None else min(known, now - 1)
            moments = [same, now] if same > block.at else [now]
        for at in moments:
            start = resolution.start(at)
            if block.at is not None and resolution.start(block.at) != start:
                block = block.next_block()
                self._clear(queue_id, first, history.key(queue_id, name, resolution.start(now - resolution.kept)))
            if at == now:
                block.add(replace(point, gap=gap))
            else:
                same_as = block.newest if known is None or line.last is None else line.last
                block.add(replace(same_as, at=at))
            self._blocks.setdefault(queue_id, {})[history.key(queue_id, name, start)] = block
        line.blocks[name] = block
        self.wait()
        if gap:
            self.hurry()  # pages learn of it at once

    def _clear(self, queue_id: int, begin: bytes, end: bytes) -> None:
        blocks = self._blocks.get(queue_id, {})
        for key in [key for key in blocks if begin <= key < end]:
            del blocks[key]
        self._clears.append((begin, end))
