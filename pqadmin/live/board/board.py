"""The board: the last known status of every queue, with its rates. Pages and frames read it.

Thread-safe. It never reads the store itself: the monitor hands it snapshots.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.live.board.health import Watch
from pqadmin.live.board.overviews import EVERYTHING, Overview, sight_of
from pqadmin.live.board.rates import WINDOW, Meter
from pqadmin.live.board.rows import Row, depth_of, row_of
from pqadmin.live.board.sums import total_of
from queues import QueueStatus, Snapshot
from queues.admin import HEALTH_STALE, HealthVerdict, TargetRules, Targets

#: Seconds after which rows and sums are recomputed without a change: rates fall, ages grow.
DERIVE_EVERY = 1.0
#: Seconds after which a queue that waits is judged again.
WATCH_EVERY = 5.0
#: Seconds of a processor: a cheaper overview is recomputed on demand; another one waits this many times its cost.
CHEAP, REBUILD_SHARE = 0.005, 100.0
#: Seconds that it waits at most.
LONGEST = 5.0
#: Scopes with kept overviews, and with kept visible queues.
_MAX_OVERVIEWS = 256
#: Seconds after which an unused overview of a scope is dropped.
FORGET_AFTER = 60.0
_FOREVER = float("inf")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class _Queue:
    """One queue as last read."""

    status: QueueStatus
    change: int
    #: When it was last known to be so: in seconds of the monitor's clock, and by the calendar.
    checked: float
    as_of: datetime
    meter: Meter = field(default_factory=Meter)
    watch: Watch = field(default_factory=Watch)
    row: Row | None = None
    #: The time at which the row is recomputed.
    until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """An overview, what it was made from, and how many seconds it may stay at least."""

    overview: Overview
    generation: int
    made: float
    stays: float


class Board:
    """Every queue as last known."""

    def __init__(self) -> None:
        #: The targets of queues by pattern, and the defaults.
        self.targets = TargetRules()
        self._lock = threading.RLock()
        self._directory: Mapping[str, int] = {}
        self._ids: frozenset[int] = frozenset()
        self._seen = _seen_in({})
        self._directory_change = -1
        self._version = 0
        self._at = _NEVER
        self._queues: dict[int, _Queue] = {}
        self._overviews: dict[Scope, _Made] = {}
        #: Queues that changed, came or went since `take_touched` was asked last; None: it is not asked.
        self._touched: dict[int, None] | None = None
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

    def put_directory(self, directory: Mapping[str, int], change: int, targets: TargetRules | None = None) -> None:
        """Take over the list of all queues and their targets, and forget the queues that are gone."""
        with self._lock:
            self._directory, self._directory_change = directory, change
            if targets is not None:
                self.targets = targets
                for known in self._queues.values():
                    known.until = 0.0
            self._ids, self._seen = frozenset(directory.values()), _seen_in(directory)
            for gone in self._queues.keys() - self._ids:
                del self._queues[gone]
                self._touch(gone)
            self._generation += 1

    def previous(self, ids: Iterable[int]) -> Snapshot:
        """Return the known state of these queues, for `Store.snapshot` to skip unchanged ones."""
        with self._lock:
            known = [queue_id for queue_id in ids if queue_id in self._queues]
            return self._snapshot(known, {queue_id: self._queues[queue_id].status for queue_id in known})

    def known(self, ids: frozenset[int]) -> Snapshot:
        """Return what is known of these queues in the form that `Store.wait_for_change` waits with."""
        with self._lock:
            return self._snapshot(ids, {})

    def _snapshot(self, ids: Iterable[int], statuses: Mapping[int, QueueStatus]) -> Snapshot:
        queues = self._queues
        return Snapshot(
            version=self._version,
            at=self._at,
            directory_change=self._directory_change,
            queues=statuses,
            changes={queue_id: queues[queue_id].change if queue_id in queues else 0 for queue_id in ids},
        )

    def apply(self, snapshot: Snapshot, now: float) -> None:
        """Take over a reading of the time `now` (seconds of the monitor's clock).

        A smaller version is no older reading but another store, a backup perhaps: readings come in order.
        """
        with self._lock:
            self._version, self._at = snapshot.version, snapshot.at
            for queue_id, change in snapshot.changes.items():
                status, known = snapshot.queues.get(queue_id), self._queues.get(queue_id)
                if status is None:
                    if self._queues.pop(queue_id, None) is not None:
                        self._touch(queue_id)
                elif known is None:
                    known = _Queue(status=status, change=change, checked=now, as_of=snapshot.at)
                    self._queues[queue_id] = known
                    self._touch(queue_id)
                    _observe(known, now, held_until=None)
                else:
                    changed, held_until = known.change != change, known.checked
                    if changed:
                        known.watch.hold(known.as_of.timestamp())
                    if changed or known.status is not status:
                        known.status, known.change, known.until = status, change, 0.0
                        self._touch(queue_id)
                    known.checked, known.as_of = now, snapshot.at
                    if changed:
                        _observe(known, now, held_until=held_until)
            self._generation += 1

    def take_touched(self) -> Collection[int] | None:
        """Return the queues that changed, came or went since the last call; None when any may have.

        That is so for the first call, and after `forget_touched`.
        """
        with self._lock:
            touched, self._touched = self._touched, {}
            return touched

    def forget_touched(self) -> None:
        """Keep no more which queues change, until `take_touched` is called again."""
        with self._lock:
            self._touched = None

    def _touch(self, queue_id: int) -> None:
        if self._touched is not None:
            self._touched[queue_id] = None

    def hold(self, ids: Iterable[int], now: float, at: datetime) -> None:
        """Note that these queues were still unchanged at `now`, which is `at` by the store's clock.

        That clock may have been set meanwhile, or the machine may have slept.
        """
        with self._lock:
            for queue_id in ids:
                if (known := self._queues.get(queue_id)) is not None:
                    known.checked, known.as_of = now, at

    def row(self, queue_id: int, now: float) -> Row | None:
        """Return one queue's row as last known.

        It is the very same one for as long as nothing but the time of its reading differs.
        """
        with self._lock:
            known = self._queues.get(queue_id)
            return None if known is None else self._row(known, now)

    def row_as_read(self, status: QueueStatus, now: float, at: datetime) -> Row | None:
        """Return the row of a status that was read at `at`, which may be older than the last known one."""
        with self._lock:
            known = self._queues.get(status.id)
            if known is None or known.status is status:
                return None if known is None else self._row(known, now)
            return self._derive(known, status, now, at)

    def _row(self, known: _Queue, now: float) -> Row:
        old = known.row
        if old is not None and now < known.until:
            return old
        new = self._derive(known, known.status, now)
        known.until = self._stays(known, new, now)
        if old is not None and old.status is known.status and replace(new, as_of=old.as_of) == old:
            return old
        known.row = new
        return new

    def overview(self, now: float, at: datetime, scope: Scope = EVERYTHING) -> Overview:
        """Return everything that a scope sees, as last known.

        Equal scopes share it. An expensive one is recomputed less often.
        """
        sight = sight_of(scope)
        with self._lock:
            known = self._overviews.get(sight)
            if known is not None and not self._due(known, now):
                return known.overview
            began = time.thread_time()
            overview = self._overview(sight, now, at)
            cost = time.thread_time() - began
            self._overviews[sight] = _Made(
                overview=overview,
                generation=self._generation,
                made=now,
                stays=min(LONGEST, REBUILD_SHARE * cost) if cost > CHEAP else 0.0,
            )
            for unused in [one for one, made in self._overviews.items() if now - made.made > FORGET_AFTER]:
                del self._overviews[unused]
            if len(self._overviews) > _MAX_OVERVIEWS:
                del self._overviews[min(self._overviews, key=lambda one: self._overviews[one].made)]
            return overview

    def _overview(self, sight: Scope, now: float, at: datetime) -> Overview:
        names, queues = self._seen(sight), self._queues
        known = [(name, queues[queue_id]) for queue_id, name in names.items() if queue_id in queues]
        # A queue that was read under another name is left out: that name may be invisible.
        rows = tuple([self._row(queue, now) for name, queue in known if queue.status.name == name])
        as_of = min((queue.as_of for _, queue in known), default=at)
        return Overview(
            snapshot_version=self._version,
            at=at if self.empty else self._at,
            rows=rows,
            summary=total_of(rows, queues=len(names), as_of=as_of),
        )

    def last(self, now: float, scope: Scope) -> tuple[Overview | None, bool]:
        """Return the last overview of a scope, and whether it is due to be recomputed. Never waits.

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
        stale = known.generation != self._generation
        return now - known.made >= (known.stays if stale else max(DERIVE_EVERY, known.stays))

    def in_sight(self, scope: Scope) -> frozenset[int]:
        """Return the ids of the queues that a scope sees; never waits."""
        sight = sight_of(scope)
        return self._ids if sight.everything else frozenset(self._seen(sight))

    def ready(self, queue_id: int) -> int | None:
        """Return a queue's ready items as last known. None for one that is not there, or not counted yet.

        Never waits: sockets ask for it in their event loop.
        """
        known = self._queues.get(queue_id)
        return None if known is None else depth_of(known.status)

    def targets_of(self, status: QueueStatus) -> Targets:
        """Return the targets by which a queue is judged."""
        return self.targets.targets(status.name, status.limits)

    def unread(self) -> frozenset[int]:
        """Return the queues that exist and were never read."""
        with self._lock:
            return self._ids - self._queues.keys()

    def uncounted(self, ids: Collection[int]) -> list[int]:
        """Return those of these queues that are attached and were not counted yet."""
        with self._lock:
            return [queue_id for queue_id in ids if queue_id in self._queues and self.ready(queue_id) is None]

    def level(self, queue_id: int) -> str | None:
        """Return a queue's level as last shown; None for one that was not shown yet. Never waits."""
        known = self._queues.get(queue_id)
        return None if known is None or known.row is None else known.row.level

    def _stays(self, known: _Queue, row: Row, now: float) -> float:
        """Return the time until which a row stays the same without a change."""
        status, pause = known.status, known.status.pause
        seen = not (status.attached or status.unreadable)
        ends = pause is not None and pause.until is not None
        old = now - known.checked > HEALTH_STALE
        if old or (seen and (row.rate_in is None or row.rate_in or row.rate_out or ends)):
            return now + DERIVE_EVERY
        return _FOREVER if known.watch.settled else now + WATCH_EVERY

    def _derive(self, known: _Queue, status: QueueStatus, now: float, at: datetime | None = None) -> Row:
        at = at or known.as_of
        verdict = self._verdict(known, status, now, at)
        rates = known.meter.rates(now) if now - known.checked <= WINDOW else None  # what was not watched has no rate
        return row_of(status, at, verdict, rates=rates, before=known.row)

    def _verdict(self, known: _Queue, status: QueueStatus, now: float, at: datetime) -> HealthVerdict:
        """Return the verdict on a status; one of long ago that was not confirmed since is unknown."""
        if status is known.status:
            if now - known.checked > HEALTH_STALE:
                return known.watch.unconfirmed(at.timestamp())
            return known.watch.look(status, at.timestamp(), self.targets_of(status))
        # A page's own reading, which may also be older.
        if status.change < known.status.change:
            return self._row(known, now).verdict
        return known.watch.glance(status, at.timestamp(), self.targets_of(status))


def _observe(known: _Queue, now: float, *, held_until: float | None) -> None:
    """Have a queue's meter note its totals; the ones before held until `held_until`."""
    status = known.status
    if not (status.attached or status.unreadable):
        known.meter.observe(now, status.arrived, status.left, held_until=held_until)


def _seen_in(directory: Mapping[str, int]) -> Callable[[Scope], Mapping[int, str]]:
    """Return what tells the names of the queues that a scope sees, by id. Computed once for each scope."""

    @lru_cache(maxsize=_MAX_OVERVIEWS)
    def seen(scope: Scope) -> Mapping[int, str]:
        sees = scope.teller(Right.READ)
        return {queue_id: name for name, queue_id in directory.items() if sees(name)}

    return seen
