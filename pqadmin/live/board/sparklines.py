"""Sparklines: the depth of a queue over the last hour, as the path of a line. From the store's own histories.

Read for the queues of one window at once, at most once a minute each; what was read is kept for a bounded number.
"""

import threading
from collections.abc import Mapping, Sequence

from queues import Store
from queues.admin import UNREADABLE_RECORD, HistoryStretch

#: Seconds that a line tells of, and columns of the drawing.
SPAN, COLUMNS = 3_600, 30
#: Height of the drawing, and the least number of items that are as high: a few do not look like a crowd.
HEIGHT = FLOOR = 10
#: Lines that are remembered, and seconds for which one is.
_MOST, _FRESH = 10_000, 60.0


class Sparks:
    """The lines of queues. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, tuple[float, str]] = {}

    def of(self, store: Store, depths: Mapping[int, int | None], now: float) -> dict[int, str]:
        """Return the lines of queues by their depths, at `now` (seconds since the epoch).

        A queue without a history is left out. Lines of a time that is still to come, before the clock was set back, are
        read anew.
        """
        with self._lock:
            known = {queue_id: self._known.get(queue_id, (-_FRESH, "")) for queue_id in depths}
        found = {queue_id: path for queue_id, (at, path) in known.items() if 0 <= now - at < _FRESH}
        missing = [queue_id for queue_id in depths if queue_id not in found]
        if missing:
            stretches = _read(store, missing, now)
            made = {queue_id: path(stretches.get(queue_id), depths[queue_id], now) for queue_id in missing}
            with self._lock:
                for queue_id, line in made.items():
                    self._known.pop(queue_id, None)  # the newest are last
                    self._known[queue_id] = (now, line)
                for oldest in list(self._known)[: max(0, len(self._known) - _MOST)]:
                    del self._known[oldest]
            found |= made
        return {queue_id: line for queue_id, line in found.items() if line}


def _read(store: Store, queue_ids: Sequence[int], now: float) -> Mapping[int, HistoryStretch]:
    """Read histories; a damaged one costs the lines of its window, not the page."""
    try:
        return store.history.of_many(queue_ids, "m", since=int(now) - SPAN, until=int(now))
    except UNREADABLE_RECORD:
        return {}


def path(stretch: HistoryStretch | None, depth: int | None, now: float) -> str:
    """Return the path of one line, `depth` being the newest. Empty when nothing is known, with gaps where it is not."""
    if stretch is None or (stretch.before is None and not stretch.points):
        return ""
    columns = _columns(stretch, depth, now)
    if sum(ready is not None for ready in columns) < 2:  # a dot says nothing
        return ""
    most = max(FLOOR, *(ready for ready in columns if ready is not None))
    parts: list[str] = []
    level: int | None = None
    run = 0
    for number, ready in enumerate(columns):
        at = None if ready is None else -(-ready * HEIGHT // most)
        if at == level:
            run += at is not None
            continue
        if run:
            parts.append(f"h{run}")
        run = 0
        if at is not None:
            parts.append(f"M{number} {HEIGHT - at}" if level is None else f"v{level - at}")
            run = 1
        level = at
    return "".join([*parts, f"h{run}"] if run else parts)


def _columns(stretch: HistoryStretch, depth: int | None, now: float) -> Sequence[int | None]:
    """Return the depth at the end of each column. Between two points the depth is that of the first."""
    columns: list[int | None] = []
    last = None if stretch.before is None else stretch.before.ready
    points = iter(stretch.points)
    point = next(points, None)
    for number in range(1, COLUMNS + 1):
        until = now - SPAN + number * SPAN / COLUMNS
        while point is not None and point.at <= until:
            last, point = point.ready, next(points, None)
        columns.append(None if point is not None and point.gap else last)
    if depth is not None:
        columns[-1] = depth
    return columns


SPARKS = Sparks()
