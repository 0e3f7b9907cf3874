"""The board: the last known status of every queue, with its rates. Pages and frames read it.

Thread-safe. It never reads the store itself: the monitor hands it snapshots.
"""

import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import islice
from operator import itemgetter

from pqadmin.accounts.scope import Scope
from pqadmin.live.board.health import DEFAULT_RULES, Outlook, Problem, Rules, State, is_growing
from pqadmin.live.board.overviews import EVERYTHING, Overview, sight_of
from pqadmin.live.board.rates import Meter
from pqadmin.live.board.rollups import Roll
from pqadmin.live.board.rows import Row, depth_of, row_of
from pqadmin.live.visible_queues import Sight, Sights
from queues import QueueStatus, Snapshot

#: Seconds after which rows and sums are recomputed without a change: rates fall, ages grow.
DERIVE_EVERY = 1.0
#: Seconds: a cheaper overview is recomputed on demand; a more expensive one waits this many times its cost.
CHEAP, REBUILD_SHARE = 0.005, 10.0
#: Seconds that it waits at most.
LONGEST = 5.0
#: Scopes whose overviews are kept up to date.
_MAX_OVERVIEWS = 256
#: Seconds after which an unused overview of a scope is dropped.
FORGET_AFTER = 60.0
#: Changed rows that are remembered; an overview that is further behind is recomputed from all rows.
_MAX_BEHIND = 20_000
#: Outdated times that may stay in the heap beyond one for each row.
_MANY_DUE = 64
#: Seconds after the time at which a rule begins to hold, for rounding of the clock.
_AFTERWARDS = 0.01
_FOREVER = float("inf")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """An overview with its inputs, time and cost."""

    overview: Overview
    generation: int
    made: float
    cost: float
    sight: Sight
    roll: Roll
    #: How many rows had differed by then.
    differed: int


class Board:
    """Every queue as last known."""

    def __init__(self, rules: Rules = DEFAULT_RULES) -> None:
        self._rules = rules
        self._lock = threading.RLock()
        self._directory: Mapping[str, int] = {}
        self._ids: frozenset[int] = frozenset()
        self._names: Mapping[int, str] = {}
        self._directory_change = -1
        self._version = 0
        self._at = _NEVER
        self._statuses: dict[int, QueueStatus] = {}
        self._changes: dict[int, int] = {}
        self._meters: dict[int, Meter] = {}
        self._checked: dict[int, tuple[float, datetime]] = {}
        self._rows: dict[int, Row] = {}
        #: The time at which each row is recomputed without a change; and the same as a heap.
        self._until: dict[int, float] = {}
        self._next: list[tuple[float, int]] = []
        #: Queues that were read since their row was computed.
        self._read: set[int] = set()
        #: The last rows that differed from the ones before, and how many ever did.
        self._behind: deque[int] = deque(maxlen=_MAX_BEHIND)
        self._differed = 0
        self._overviews: dict[Scope, _Made] = {}
        self._sights = Sights()
        #: Grows with all that is taken over.
        self._generation = 0
        #: The generation up to which an overview must be.
        self._hurried = 0

    @property
    def directory(self) -> Mapping[str, int]:
        """Every queue's id by name, sorted by name."""
        return self._directory

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all queues that exist, as far as is known."""
        return self._ids

    @property
    def directory_change(self) -> int:
        """The directory's change number; −1 before it was read."""
        return self._directory_change

    @property
    def empty(self) -> bool:
        """Return whether nothing was read yet."""
        return self._directory_change < 0

    def put_directory(self, directory: Mapping[str, int], change: int) -> None:
        """Take over the list of all queues and forget the ones that are gone."""
        with self._lock:
            self._directory, self._directory_change = directory, change
            self._ids = frozenset(directory.values())
            self._names = dict(zip(directory.values(), directory, strict=True))
            for gone in self._meters.keys() - self._ids:
                self._forget(gone)
            self._generation += 1

    def previous(self, ids: Iterable[int]) -> Snapshot:
        """Return the known state of these queues, for `Store.snapshot` to skip unchanged ones."""
        with self._lock:
            known = [queue_id for queue_id in ids if queue_id in self._statuses]
            return self._snapshot(known, {queue_id: self._statuses[queue_id] for queue_id in known})

    def known(self, ids: frozenset[int]) -> Snapshot:
        """Return what is known of these queues in the form that `Store.wait_for_change` waits with."""
        with self._lock:
            return self._snapshot(ids, {})

    def _snapshot(self, ids: Iterable[int], queues: Mapping[int, QueueStatus]) -> Snapshot:
        return Snapshot(
            version=self._version,
            at=self._at,
            directory_change=self._directory_change,
            queues=queues,
            changes={queue_id: self._changes.get(queue_id, 0) for queue_id in ids},
        )

    def apply(self, snapshot: Snapshot, now: float) -> None:
        """Take over a reading of the time `now` (seconds of the monitor's clock).

        A smaller version is no older reading but another store, a backup perhaps: readings come in order.
        """
        with self._lock:
            self._version, self._at = snapshot.version, snapshot.at
            for queue_id, change in snapshot.changes.items():
                known = self._changes.get(queue_id)
                status = snapshot.queues.get(queue_id)
                if status is None:
                    self._forget(queue_id)
                    continue
                if known != change or self._statuses.get(queue_id) is not status:
                    self._observe(status, now, snapshot.at, changed=known != change)
                    self._statuses[queue_id] = status
                    self._changes[queue_id] = change
                    self._read.add(queue_id)
                self._checked[queue_id] = (now, snapshot.at)
            self._generation += 1

    def hold(self, ids: Iterable[int], now: float) -> None:
        """Note that these queues were still unchanged at `now`."""
        with self._lock:
            for queue_id in ids:
                checked = self._checked.get(queue_id)
                if checked is not None:
                    self._checked[queue_id] = (now, checked[1] + timedelta(seconds=now - checked[0]))

    def row(self, queue_id: int, now: float, status: QueueStatus | None = None) -> Row | None:
        """Return one queue's row, of `status` when given, else of the last known one.

        It is the very same one for as long as nothing but the time of its reading differs.
        """
        with self._lock:
            last = self._statuses.get(queue_id)
            if last is None:
                return None
            if status is not None and status is not last:
                return self._derive(status, now)
            if queue_id in self._read or self._until.get(queue_id, now) <= now:
                self._work_out(queue_id, last, now)
            return self._rows[queue_id]

    def _work_out(self, queue_id: int, status: QueueStatus, now: float) -> None:
        """Make a queue's row; note whether it differs and when it is due again."""
        self._read.discard(queue_id)
        old, new = self._rows.get(queue_id), self._derive(status, now)
        if old is None or old.status is not status or replace(new, as_of=old.as_of) != old:
            self._rows[queue_id] = new
            self._note(queue_id)
        until = self._stays(status, new, now)
        if until != self._until.get(queue_id):
            self._until[queue_id] = until
            if until != _FOREVER:
                heappush(self._next, (until, queue_id))

    def _note(self, queue_id: int) -> None:
        self._behind.append(queue_id)
        self._differed += 1

    def _freshen(self, now: float) -> None:
        """Recompute the rows of queues that were read, and of those that are due."""
        for queue_id in tuple(self._read):
            self._work_out(queue_id, self._statuses[queue_id], now)
        due = self._next
        while due and due[0][0] <= now:
            until, queue_id = heappop(due)
            if self._until.get(queue_id) == until:
                self._work_out(queue_id, self._statuses[queue_id], now)
        if len(due) > 2 * len(self._until) + _MANY_DUE:
            due[:] = [(until, queue_id) for queue_id, until in self._until.items() if until != _FOREVER]
            heapify(due)

    def overview(self, now: float, at: datetime, scope: Scope = EVERYTHING) -> Overview:
        """Return everything that a scope sees, as last known, updated by what changed.

        Equal scopes share it. An expensive one is recomputed less often.
        """
        sight = sight_of(scope)
        with self._lock:
            known = self._overviews.get(sight)
            if known is not None and not self._due(known, now):
                return known.overview
            began = time.perf_counter()
            self._freshen(now)
            behind = _MAX_BEHIND + 1 if known is None else self._differed - known.differed
            if known is None or known.sight.directory is not self._directory or behind > _MAX_BEHIND:
                what = self._sights.of(sight, self._directory)
                roll, changed = Roll(what.seen, self._names, self._rows), frozenset[int]()
            else:
                what, roll = known.sight, known.roll
                changed = frozenset(islice(reversed(self._behind), behind))
            try:
                overview = roll.overview(
                    changed,
                    self._rows,
                    version=self._version,
                    at=at if self.empty else self._at,
                    as_of=self._oldest_reading(what) or at,
                )
            except BaseException:
                # The roll has an unknown part of the changes: it is not used again.
                self._overviews.pop(sight, None)
                raise
            took = time.perf_counter() - began
            self._overviews[sight] = _Made(
                overview=overview,
                generation=self._generation,
                made=now,
                cost=took if took > CHEAP else 0.0,
                sight=what,
                roll=roll,
                differed=self._differed,
            )
            for unused in [one for one, made in self._overviews.items() if now - made.made > FORGET_AFTER]:
                del self._overviews[unused]
            if len(self._overviews) > _MAX_OVERVIEWS:
                del self._overviews[min(self._overviews, key=lambda one: self._overviews[one].made)]
            return overview

    def last(self, now: float, scope: Scope) -> tuple[Overview | None, bool]:
        """Return the last overview of a scope, and whether it is due to be recomputed; never waits.

        An overview that is due to be dropped is not returned.
        """
        known = self._overviews.get(sight_of(scope))
        if known is None or now - known.made > FORGET_AFTER:
            return None, True
        return known.overview, self._due(known, now)

    def hurry(self) -> None:
        """Have every overview recomputed on the next demand, whatever it costs."""
        self._hurried = self._generation

    def _due(self, known: _Made, now: float) -> bool:
        if known.generation < self._hurried:
            return True
        share = REBUILD_SHARE * known.cost
        stale = known.generation != self._generation
        return now - known.made >= min(LONGEST, share if stale else max(DERIVE_EVERY, share))

    def in_sight(self, scope: Scope) -> frozenset[int]:
        """Return the ids of the queues that a scope sees; never waits."""
        sight = sight_of(scope)
        return self._ids if sight.everything else self._sights.of(sight, self._directory).ids

    def _oldest_reading(self, sight: Sight) -> datetime | None:
        checked = self._checked
        if len(sight.seen) == len(self._ids):
            return min(map(itemgetter(1), checked.values()), default=None)
        return min((checked[queue_id][1] for queue_id in sight.seen if queue_id in checked), default=None)

    def ready(self, queue_id: int) -> int | None:
        """Return a queue's ready items as last known; None for one that is not there, or not counted yet.

        Never waits: sockets ask for it in their event loop.
        """
        status = self._statuses.get(queue_id)
        return None if status is None else depth_of(status)

    def unread(self) -> frozenset[int]:
        """Return the queues that exist and were never read."""
        with self._lock:
            return self._ids - self._statuses.keys()

    def uncounted(self, ids: Collection[int]) -> list[int]:
        """Return those of these queues that are attached and were not counted yet."""
        with self._lock:
            known = [(queue_id, self._statuses.get(queue_id)) for queue_id in ids]
        return [queue_id for queue_id, status in known if status is not None and depth_of(status) is None]

    def _stays(self, status: QueueStatus, row: Row, now: float) -> float:
        """Return the time until which a row stays the same without a change."""
        if status.attached or status.unreadable:
            return _FOREVER
        soon, pause = now + DERIVE_EVERY, status.pause
        if row.rate_in is None or row.rate_in or row.rate_out or (pause is not None and pause.until is not None):
            return soon
        moments = [_FOREVER]
        rules, waits = self._rules, row.state is not State.PAUSED
        if row.outlook not in (Outlook.EMPTY, Outlook.STALLED, Outlook.PAUSED) and rules.stalled_after:
            moments.append(now + rules.stalled_after - self._meters[status.id].quiet_for(now))
        if status.oldest is not None and rules.old_after and waits and Problem.OLD not in row.problems:
            checked, at = self._checked[status.id]
            moments.append(checked + rules.old_after - (at - status.oldest).total_seconds())
        return max(min(moments), now) + _AFTERWARDS

    def _observe(self, status: QueueStatus, now: float, calendar: datetime, *, changed: bool) -> None:
        meter = self._meters.setdefault(status.id, Meter())
        checked = self._checked.get(status.id)
        if status.attached or status.unreadable:
            return
        if changed or checked is None:
            paused_until, pause = 0.0, status.pause
            if pause is not None:
                paused_until = _FOREVER if pause.until is None else now + (pause.until - calendar).total_seconds()
            held = checked[0] if checked else None
            meter.observe(now, status.arrived, status.left, held_until=held, paused_until=paused_until)

    def _forget(self, queue_id: int) -> None:
        self._statuses.pop(queue_id, None)
        self._changes.pop(queue_id, None)
        self._meters.pop(queue_id, None)
        self._checked.pop(queue_id, None)
        self._until.pop(queue_id, None)
        self._read.discard(queue_id)
        if self._rows.pop(queue_id, None) is not None:
            self._note(queue_id)

    def _derive(self, status: QueueStatus, now: float) -> Row:
        meter = self._meters[status.id]
        checked, as_of = self._checked[status.id]
        rates = meter.rates(now)
        # A short observation makes every burst look like growth.
        growing = rates is not None and is_growing(status.totals.ready, *rates)
        return row_of(
            status,
            as_of,
            self._rules,
            at=as_of + timedelta(seconds=now - checked),
            rates=rates,
            quiet_for=meter.quiet_for(now),
            growing_for=meter.growing_for(now, growing),
        )
