"""The feed of the event streams: what changed in the queues, written down once for all streams of the process.

It looks at the board after each turn of the live monitor, in the monitor's thread, and reads nothing itself but the
items that died. Its log is numbered; a stream goes on from its number. One that comes from another process, or from
before the log's beginning, is given the state of all queues instead.
"""

import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from pqadmin.display.error_text import redacted
from pqadmin.display.redaction import rules_of
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape, status_shape, time_shape
from pqadmin.live.board.board import Board
from queues import Item, QueueStatus, Store
from queues.admin import LogLimit
from queues.errors import QueueError, StoreError

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Events that the log holds.
MOST = 10_000
#: Seconds between two events of one queue: what changes faster is told by its newest state.
EVERY = 0.5
#: An item that died may be committed so much later than its time says: reading begins again that much earlier.
LATE = timedelta(seconds=10)
#: Queues that are looked at in one turn of the monitor: frames of pages wait meanwhile.
_QUEUES_AT_ONCE = 1_000
#: Dead items of one queue that are told in one turn, those that are kept to tell which were told, and those of a page.
_DEAD_AT_ONCE, _DEAD_KEPT, _PAGE = 2_000, 1_000, 100


class Event(NamedTuple):
    """One event: its number, kind, queue and JSON."""

    number: int
    kind: str
    queue: str
    text: str


@dataclass(slots=True)
class _Queue:
    """What was told of a queue."""

    status: QueueStatus
    text: str
    level: str
    codes: tuple[str, ...]
    told: float
    #: Dead items are told from this time of death on, each once: those that were told are kept, by id.
    died: datetime
    dead: dict[str, datetime] = field(default_factory=dict)


class Feed:
    """The log of events. Thread-safe."""

    def __init__(self, board: Board, *, most: int = MOST) -> None:
        self._board = board
        self._lock = threading.Lock()
        self._log: deque[Event] = deque(maxlen=most)
        self._queues: dict[int, _Queue] = {}
        self._pending: dict[int, None] = {}
        self._number = 0
        #: What wakes each stream.
        self._streams: dict[object, Callable[[], None]] = {}
        #: Another one for each process: numbers of another one mean nothing here.
        self.era = secrets.token_hex(6)
        #: The time of the store up to which dead items were told; None before the first look.
        self.looked_at: datetime | None = None
        #: How often a whole board was looked at.
        self.looks = 0

    @property
    def wanted(self) -> bool:
        """Whether a stream is open."""
        return bool(self._streams)

    def join(self, stream: object, wake: Callable[[], None]) -> None:
        """Have `wake` called after each look that found something, in the monitor's thread."""
        with self._lock:
            self._streams[stream] = wake

    def leave(self, stream: object) -> None:
        """Forget a stream. After the last one, the board keeps no longer what changed."""
        with self._lock:
            self._streams.pop(stream, None)
            if not self._streams:
                self._board.forget_touched()

    def look(self, store: Store, now: float, *, whole: bool = True) -> bool:
        """Write down what changed on the board, and return whether more is to be written at once.

        `now` is in seconds of the monitor's clock. Only a board on which every queue was read counts as looked at.
        """
        with self._lock:  # as `leave` does, so that none of this comes after it
            if not self._streams or self._board.empty:
                return False
            touched = self._board.take_touched()
        first, at, before = self.looked_at is None, store.now(), self._number
        self._pending.update(dict.fromkeys([*self._board.ids, *self._queues] if touched is None else touched))
        due = [queue_id for queue_id in self._pending if self._is_due(queue_id, now)]
        for queue_id in due[:_QUEUES_AT_ONCE]:
            try:
                if self._look_at(store, queue_id, now, at, silent=first):
                    del self._pending[queue_id]
            except StoreError:
                raise  # it is looked at again when the store can be read
            except Exception as error:  # a mistake of ours in one queue is none of the monitor's
                del self._pending[queue_id]
                _limited.warn(type(error), "A queue's events were left out: %s", error, exc_info=True)
        if len(due) > _QUEUES_AT_ONCE:
            return True
        self.looked_at, self.looks = at, self.looks + whole
        if first or self._number != before:
            with self._lock:
                wakers = list(self._streams.values())
            for wake in wakers:
                wake()
        return False

    def _is_due(self, queue_id: int, now: float) -> bool:
        known = self._queues.get(queue_id)
        return known is None or now - known.told >= EVERY

    def after(self, number: int) -> Sequence[Event] | None:
        """Return the events behind a number; None when the log does not reach back so far."""
        with self._lock:
            oldest = self._log[0].number if self._log else self._number + 1
            if not oldest - 1 <= number <= self._number:
                return None
            found: list[Event] = []
            for event in reversed(self._log):
                if event.number <= number:
                    break
                found.append(event)
        return found[::-1]

    def state(self) -> tuple[int, Sequence[tuple[QueueStatus, str]]]:
        """Return the number of the last event, and status and JSON of every queue, which are at least as new."""
        with self._lock:
            return self._number, [(each.status, each.text) for each in self._queues.values()]

    # In the monitor's thread

    def _look_at(self, store: Store, queue_id: int, now: float, at: datetime, *, silent: bool) -> bool:
        """Tell what changed in a queue; return False if more of its dead items are to be told."""
        row, known = self._board.row(queue_id, now), self._queues.get(queue_id)
        if row is None or queue_id not in self._board.ids:
            if known is not None:
                with self._lock:
                    del self._queues[queue_id]
                self._write_gone(known)
            return True
        status, verdict = row.status, row.verdict
        shape = status_shape(status, verdict, at, rate_in=row.rate_in, rate_out=row.rate_out)
        text, codes = json_text(shape), tuple(code.value for code in verdict.codes)
        if known is not None and known.status.name != status.name:
            self._write_gone(known)
            known.text = known.level = ""
        judged = known is None or (known.level, known.codes) != (row.level, codes)
        # A status that was read again is told only if it is another one: rates and forecasts alone are no change.
        same = known is not None and known.status == status and not judged
        with self._lock:
            if known is None:
                known = _Queue(status, text, row.level, codes, now, (self.looked_at or at) - LATE)
                self._queues[queue_id] = known
            known.status, known.text, known.level, known.codes, known.told = status, text, row.level, codes, now
        if not (silent or same):
            self._write("queue", status.name, text)
        if judged and not silent:
            self._write("verdict", status.name, json_text({"queue": status.name, "verdict": shape["verdict"]}))
        return not status.totals.dead or self._tell_dead(store, status, known, silent=silent)

    def _tell_dead(self, store: Store, status: QueueStatus, known: _Queue, *, silent: bool) -> bool:
        told = 0
        for item, died in dead_since(store, status.name, known.died):
            if item.id not in known.dead:
                known.dead[item.id] = died
                if not silent:
                    told += 1
                    self._write("dead", status.name, json_text(dead_shape(status, item)))
            if told >= _DEAD_AT_ONCE:
                break
        if known.dead:
            times = sorted(known.dead.values())
            crowded = times[-_DEAD_KEPT] if len(times) > _DEAD_KEPT else known.died
            known.died = max(known.died, crowded, times[-1] - LATE)
            known.dead = {item_id: died for item_id, died in known.dead.items() if died >= known.died}
        return told < _DEAD_AT_ONCE

    def _write_gone(self, known: _Queue) -> None:
        self._write("queue", known.status.name, json_text({"queue": known.status.name, "gone": True}))

    def _write(self, kind: str, queue: str, text: str) -> None:
        with self._lock:
            self._number += 1
            self._log.append(Event(self._number, kind, queue, text))


def dead_since(store: Store, name: str, since: datetime) -> Iterator[tuple[Item, datetime]]:
    """Return the items of a queue that died since a time, the first to die first; none of a queue that is gone."""
    after = None
    try:
        queue = store.queue(name)
        while True:
            page = queue.dead(since=since, after=after, limit=_PAGE, preview=0)
            yield from ((item, item.died_at) for item in page.items if item.died_at is not None)
            after = page.cursor
            if after is None:
                return
    except QueueError:  # renamed or deleted meanwhile, or it cannot be read: its next event says so
        return


def dead_shape(status: QueueStatus, item: Item) -> Shape:
    """Describe an item that died, without its value."""
    return {
        "queue": status.name,
        "id": item.id,
        "priority": item.priority,
        "attempts": item.attempts,
        "worker": item.worker or None,
        "reason": redacted(item.reason, rules_of(status.redact)) or None,
        "died_at": time_shape(item.died_at),
    }
