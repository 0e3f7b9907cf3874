"""Depths of attached queues. They have no counters, so a thread counts their items in steps.

A count takes many short reads: it is exact when nothing changes meanwhile, and otherwise "as of" its beginning. One
thread counts for all viewers; it takes a small share of the time, and ends when there are no viewers.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues.errors import StoreClosed, StoreError, StoreUnavailable, display_name
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys
from queues.kv.errors import ForkedStore
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model.config import Config
from queues.model.ids import at
from queues.model.log_limit import LogLimit
from queues.model.range_in_steps import Look, StepSize, in_background, steps
from queues.status.status import Snapshot

log = logging.getLogger(__name__)

#: Seconds between two counts: at least, and at most because nothing changes.
SHORTEST, LONGEST = 0.5, 5.0
#: All counts together take no more of the time than this.
SHARE = 0.05
#: Seconds after the last viewer until the thread ends.
LINGER = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Number of items, and when the count began, UTC."""

    depth: int
    counted_at: datetime


@dataclass(slots=True)
class Pace:
    """Schedule of a queue's counts: often if small and changing, seldom if large or idle."""

    due: float
    #: Seconds between counts: now, and at least.
    pause: float = SHORTEST
    least: float = SHORTEST

    def counted(self, now: float, *, took: float, same: bool, sharers: int) -> None:
        """Record the seconds of a count, and whether the depth is the same."""
        self.least = max(SHORTEST, took * sharers / SHARE)
        self.pause = max(self.least, min(self.pause * 2, LONGEST)) if same else self.least
        self.due = now + self.pause

    def hurry(self) -> bool:
        """Record a change of the queue; return whether it is counted earlier therefore."""
        early = self.pause - self.least
        self.due, self.pause = self.due - early, self.least
        return early > 0


@dataclass(slots=True)
class _Wanted:
    """A queue with viewers."""

    wanted: float
    pace: Pace
    count: Count | None = None


def count_within(tr: ReadTransaction, keys: AttachedKeys) -> int:
    """Count the items in one transaction of at most five seconds."""
    return sum(map(len, _steps(lambda fn: fn(tr), keys)))


def _steps(look: Look[Any], keys: AttachedKeys) -> Iterator[list[KeyValue]]:
    return steps(look, keys.all, lambda tr, found: found, StepSize(100, 1_000, 1_000_000))


class AttachedCounts:
    """Depths of a store's attached queues, as last counted by this process. Thread-safe."""

    def __init__(
        self,
        kv: KeyValueStore,
        keyspace: Keyspace,
        clock: Callable[[], float],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kv = kv
        self._keyspace = keyspace
        self._clock = clock
        self._monotonic = monotonic
        self._condition = threading.Condition()
        self._wanted: dict[int, _Wanted] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._limited = LogLimit(log, monotonic=monotonic)
        #: Names of queues for the log, as last read; used by the thread.
        self._names: dict[int, str] = {}

    def known(self, queue_id: int) -> Count | None:
        """Return the last count of a queue; None: not counted in this process yet."""
        with self._condition:
            wanted = self._wanted.get(queue_id)
            return None if wanted is None else wanted.count

    def want(self, queue_ids: Iterable[int]) -> None:
        """Start counting these queues, until they were not asked for any longer. Returns at once."""
        now = self._monotonic()
        with self._condition:
            for queue_id in queue_ids:
                wanted = self._wanted.setdefault(queue_id, _Wanted(wanted=now, pace=Pace(due=now)))
                wanted.wanted = now
            if self._wanted and not self._closed and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="pqadmin-count", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def look(self, snapshot: Snapshot, previous: Snapshot | None) -> None:
        """Start counting the attached queues of a snapshot, soon those that changed since `previous`."""
        attached = [status for status in snapshot.queues.values() if status.attached]
        if not attached:
            return
        known = {} if previous is None else previous.queues
        self.want(status.id for status in attached)
        for status in attached:
            if known.get(status.id) is not status:
                self.hurry(status.id)

    def hurry(self, queue_id: int) -> None:
        """Count a queue soon, as it has changed."""
        with self._condition:
            wanted = self._wanted.get(queue_id)
            if wanted is not None and wanted.pace.hurry():
                self._condition.notify_all()

    def count(self, config: Config) -> Count:
        """Count a queue now, in steps of one read each, and remember the count."""
        count = self.count_unless(lambda: False, config)
        assert count is not None
        return count

    def close(self) -> None:
        """Stop counting. Idempotent."""
        with self._condition:
            self._closed, thread = True, self._thread
            self._condition.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(5)

    def count_unless(self, stop: Callable[[], bool], config: Config) -> Count | None:
        """Count a queue like `count`; return None if `stop` is true before a read."""
        keys = AttachedKeys(config.attached_prefix)
        began, now = self._monotonic(), at(int(self._clock() * 1000))
        depth, counting = 0, _steps(in_background(self._kv), keys)
        while not stop():
            found = next(counting, None)
            if found is None:
                count = Count(depth=depth, counted_at=now)
                self._note(config.id, count, self._monotonic() - began)
                return count
            depth += len(found)
        return None

    def _note(self, queue_id: int, count: Count, took: float) -> None:
        now = self._monotonic()
        with self._condition:
            wanted = self._wanted.setdefault(queue_id, _Wanted(wanted=now, pace=Pace(due=now)))
            same = wanted.count is not None and wanted.count.depth == count.depth
            wanted.count = count
            wanted.pace.counted(now, took=took, same=same, sharers=len(self._looked_at(now)))

    # The thread

    def _config(self, queue_id: int) -> Config | None:
        key = self._keyspace.configs.key(queue_id)
        record = self._kv.read(lambda tr: tr.get(key).wait(), background=True)
        return None if record is None else Config.decode(record)

    def _run(self) -> None:
        while (queue_id := self._next()) is not None:
            try:
                config = self._config(queue_id)
                if config is None or config.prefix is None:
                    with self._condition:
                        self._wanted.pop(queue_id, None)
                else:
                    self._names[queue_id] = display_name(config.name)
                    self.count_unless(lambda: self._closed, config)
            except (StoreClosed, ForkedStore):
                return
            except Exception as error:  # one queue's record may hold anything; other queues are counted all the same
                away = isinstance(error, StoreUnavailable)  # the same for all queues: one line is enough
                self._limited.warn(
                    type(error) if away else (queue_id, type(error)),
                    "Queue %s is not counted: %s: %s. It is tried again every %g s.",
                    self._names.get(queue_id, queue_id),
                    type(error).__name__,
                    error,
                    LONGEST,
                    exc_info=not isinstance(error, (StoreError, ValueError, LookupError)),
                )
                self._later(queue_id)

    def _next(self) -> int | None:
        """Wait for the next queue that is due; None when there are no viewers."""
        with self._condition:
            while not self._closed:
                now = self._monotonic()
                looked_at = self._looked_at(now)
                if not looked_at:
                    break
                queue_id = min(looked_at, key=lambda key: looked_at[key].pace.due)
                wait = looked_at[queue_id].pace.due - now
                if wait <= 0:
                    return queue_id
                self._condition.wait(min(wait, LINGER))
            self._thread = None
            return None

    def _looked_at(self, now: float) -> dict[int, _Wanted]:
        return {key: one for key, one in self._wanted.items() if now - one.wanted < LINGER}

    def _later(self, queue_id: int) -> None:
        with contextlib.suppress(KeyError), self._condition:
            self._wanted[queue_id].pace.due = self._monotonic() + LONGEST
