"""The board: the last known status of every queue, with its rates. The one place that pages and frames read from.

Thread-safe. It never reads the store itself: the monitor hands it snapshots.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.live.outlook import DEFAULT_RULES, Known, Outlook, Problem, Rules, State, is_growing, judge
from pqadmin.live.overviews import EVERYTHING, Overview, sight_of
from pqadmin.live.rates import Meter
from pqadmin.live.rows import Row, attached_row, depth_of, three_digits, unreadable_row
from pqadmin.live.sums import Summary, total_of
from queues.status import QueueStatus, Snapshot

#: Seconds after which rows and the sum are worked out again though no queue changed: rates fall, ages grow.
DERIVE_EVERY = 1.0
#: Seconds: a cheaper overview is worked out whenever it is wanted, a dearer one waits this many times its cost.
CHEAP, REBUILD_SHARE = 0.005, 10.0
#: Seconds that it waits at most.
LONGEST = 5.0
#: Scopes for which it is remembered what they see.
_MAX_SIGHTS = 64
#: Seconds after which the overview of a scope that nobody asks for is forgotten.
FORGET_AFTER = 60.0
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """An overview, what it was made from, when, and what that cost."""

    overview: Overview
    generation: int
    made: float
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sight:
    """What one scope sees of one list of all queues."""

    directory: Mapping[str, int]
    seen: Sequence[int]
    ids: frozenset[int]


class Board:
    """Every queue as last known."""

    def __init__(self, rules: Rules = DEFAULT_RULES) -> None:
        self._rules = rules
        self._lock = threading.RLock()
        self._directory: Mapping[str, int] = {}
        self._ids: frozenset[int] = frozenset()
        self._directory_change = -1
        self._version = 0
        self._at = _NEVER
        self._statuses: dict[int, QueueStatus] = {}
        self._changes: dict[int, int] = {}
        self._meters: dict[int, Meter] = {}
        self._checked: dict[int, tuple[float, datetime]] = {}
        self._rows: dict[int, tuple[QueueStatus, float, Row]] = {}
        self._overviews: dict[Scope, _Made] = {}
        #: Read and written without the lock, which a whole overview may hold: sockets ask for it in their event loop.
        self._sights: dict[Scope, _Sight] = {}
        #: Grows with all that is taken over.
        self._generation = 0

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
        """Say whether nothing was read yet."""
        return self._directory_change < 0

    def put_directory(self, directory: Mapping[str, int], change: int) -> None:
        """Take over the list of all queues and forget the ones that are gone."""
        with self._lock:
            self._directory, self._directory_change = directory, change
            self._ids = frozenset(directory.values())
            for gone in self._meters.keys() - self._ids:
                self._forget(gone)
            self._generation += 1

    def previous(self) -> Snapshot:
        """Return all that is known in the form that lets `Store.snapshot` skip what did not change."""
        with self._lock:
            return Snapshot(
                version=self._version,
                at=self._at,
                directory_change=self._directory_change,
                queues=dict(self._statuses),
                changes=dict(self._changes),
            )

    def known(self, ids: frozenset[int]) -> Snapshot:
        """Return what is known of these queues in the form that `Store.wait_for_change` waits with."""
        with self._lock:
            return Snapshot(
                version=self._version,
                at=self._at,
                directory_change=self._directory_change,
                queues={},
                changes={queue_id: self._changes.get(queue_id, 0) for queue_id in ids},
            )

    def apply(self, snapshot: Snapshot, now: float) -> None:
        """Take over what was read at `now` (seconds of the monitor's clock), one reading after the other.

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
                self._observe(status, now, changed=known != change)
                self._statuses[queue_id] = status
                self._changes[queue_id] = change
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
        """Return one queue's row, of `status` when given, else of the last known one."""
        with self._lock:
            last = self._statuses.get(queue_id)
            if last is None:
                return None
            if status is not None and status is not last:
                return self._derive(status, now)
            cached = self._rows.get(queue_id)
            same = cached is not None and cached[0] is last
            if cached is not None and same and (now - cached[1] < DERIVE_EVERY or self._rests(last, cached[2])):
                return cached[2]
            row = self._derive(last, now)
            self._rows[queue_id] = (last, now, row)
            return row

    def overview(self, now: float, at: datetime, scope: Scope = EVERYTHING) -> Overview:
        """Return everything that a scope sees, as last known.

        Equal scopes share it. With very many queues it is worked out anew for a share of the time only.
        """
        sight = sight_of(scope)
        with self._lock:
            known = self._overviews.get(sight)
            if known is not None and not self._due(known, now):
                return known.overview
            began = time.perf_counter()
            seen = self._sight(sight).seen
            rows = tuple(row for queue_id in seen if (row := self.row(queue_id, now)) is not None)
            overview = Overview(
                snapshot_version=self._version,
                at=at if self.empty else self._at,
                rows=rows,
                summary=total_of(rows, queues=len(seen), now=at, as_of=self._oldest_reading(seen)),
            )
            took = time.perf_counter() - began
            self._overviews[sight] = _Made(
                overview=overview,
                generation=self._generation,
                made=now,
                cost=took if took > CHEAP else 0.0,
            )
            for unused in [one for one, made in self._overviews.items() if now - made.made > FORGET_AFTER]:
                del self._overviews[unused]
            return overview

    def last(self, now: float, scope: Scope) -> tuple[Overview | None, bool]:
        """Return what was worked out last for a scope, and whether it is time to work it out anew."""
        with self._lock:
            known = self._overviews.get(sight_of(scope))
            return (None, True) if known is None else (known.overview, self._due(known, now))

    def _due(self, known: _Made, now: float) -> bool:
        share = REBUILD_SHARE * known.cost
        stale = known.generation != self._generation
        return now - known.made >= min(LONGEST, share if stale else max(DERIVE_EVERY, share))

    def summary(self, now: float, at: datetime, scope: Scope = EVERYTHING) -> Summary:
        """Return the sum over all queues that a scope sees, as last known."""
        return self.overview(now, at, scope).summary

    def in_sight(self, scope: Scope) -> frozenset[int]:
        """Return the ids of the queues that a scope sees; never waits."""
        sight = sight_of(scope)
        return self._ids if sight.everything else self._sight(sight).ids

    def _oldest_reading(self, ids: Iterable[int]) -> datetime | None:
        checked = self._checked
        return min((checked[queue_id][1] for queue_id in ids if queue_id in checked), default=None)

    def _sight(self, sight: Scope) -> _Sight:
        directory = self._directory
        known = self._sights.get(sight)
        if known is None or known.directory is not directory:
            sees = sight.teller(Right.READ)
            seen = tuple(queue_id for name, queue_id in directory.items() if sees(name))
            known = _Sight(directory=directory, seen=seen, ids=frozenset(seen))
            if len(self._sights) >= _MAX_SIGHTS:
                self._sights.clear()
            self._sights[sight] = known
        return known

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

    def uncounted(self, ids: Iterable[int]) -> list[int]:
        """Return those of these queues that are attached and were not counted yet."""
        with self._lock:
            known = [(queue_id, self._statuses.get(queue_id)) for queue_id in ids]
        return [queue_id for queue_id, status in known if status is not None and depth_of(status) is None]

    def settled(self, queue_id: int, now: float) -> bool:
        """Say whether the queue's row stays as it is for as long as the queue does not change."""
        with self._lock:
            status = self._statuses.get(queue_id)
            cached = self._rows.get(queue_id)
            if status is None or cached is None or cached[0] is not status:
                return False
            return self._rests(status, cached[2])

    def _rests(self, status: QueueStatus, row: Row) -> bool:
        if status.attached or status.unreadable:
            return True
        until = status.pause.until if status.pause else None
        ageing = status.oldest is not None and bool(self._rules.old_after) and Problem.OLD not in row.problems
        if ageing and row.state is not State.PAUSED:
            return False
        resting = row.outlook in (Outlook.EMPTY, Outlook.STALLED, Outlook.PAUSED)
        return resting and not row.rate_in and not row.rate_out and row.rate_in is not None and until is None

    def _observe(self, status: QueueStatus, now: float, *, changed: bool) -> None:
        meter = self._meters.setdefault(status.id, Meter())
        checked = self._checked.get(status.id)
        if status.attached or status.unreadable:
            return
        if changed or checked is None:
            meter.observe(now, status.arrived, status.left, held_until=checked[0] if checked else None)

    def _forget(self, queue_id: int) -> None:
        self._statuses.pop(queue_id, None)
        self._changes.pop(queue_id, None)
        self._meters.pop(queue_id, None)
        self._checked.pop(queue_id, None)
        self._rows.pop(queue_id, None)

    def _derive(self, status: QueueStatus, now: float) -> Row:
        meter = self._meters[status.id]
        checked, as_of = self._checked[status.id]
        if status.unreadable:
            return unreadable_row(status, as_of)
        if status.attached:
            return attached_row(status, as_of)
        rates = meter.rates(now)
        rate_in, rate_out = rates or (None, None)
        ready = status.totals.ready
        # Brief watching makes every burst look like growth: only a full window may say so.
        growing = is_growing(ready, rate_in, rate_out)
        quiet = meter.quiet_for(now)
        calendar = as_of + timedelta(seconds=now - checked)
        pause = status.pause
        verdict = judge(
            Known(
                ready=ready,
                paused=pause is not None and (pause.until is None or pause.until > calendar),
                drift=status.drift,
                rate_in=rate_in,
                rate_out=rate_out,
                quiet_for=quiet,
                growing_for=meter.growing_for(now, growing),
                dead=status.totals.dead,
                oldest_for=None if status.oldest is None else (calendar - status.oldest).total_seconds(),
            ),
            self._rules,
        )
        stalled = verdict.outlook is Outlook.STALLED
        return Row(
            status=status,
            rate_in=three_digits(rate_in),
            rate_out=three_digits(rate_out),
            state=verdict.state,
            outlook=verdict.outlook,
            problem=verdict.problem,
            more=verdict.more,
            clears_in=three_digits(verdict.clears_in),
            grows_by=three_digits(verdict.grows_by),
            quiet_since=calendar - timedelta(seconds=quiet) if stalled else None,
            as_of=as_of,
        )
