"""The board: the last known status of every queue, with its rates. The one place that pages and frames read from.

Thread-safe. It never reads the store itself: the monitor hands it snapshots.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from pqadmin.live.outlook import Known, Outlook, is_growing, judge
from pqadmin.live.rates import Meter
from pqadmin.live.rows import Overview, Row, Summary, attached_row, depth_of, three_digits, total_of
from queues.status import QueueStatus, Snapshot

#: Seconds after which rows and the sum are worked out again though no queue changed: rates fall, ages grow.
DERIVE_EVERY = 1.0
#: Seconds: a cheaper overview is worked out whenever it is wanted, a dearer one waits this many times its cost.
CHEAP, REBUILD_SHARE = 0.005, 10.0
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Board:
    """Every queue as last known."""

    def __init__(self) -> None:
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
        self._overview: Overview | None = None
        self._stale = True
        self._made, self._cost = float("-inf"), 0.0

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
            self._stale = True

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
            self._stale = True

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
            if cached is not None and cached[0] is last and now - cached[1] < DERIVE_EVERY:
                return cached[2]
            row = self._derive(last, now)
            self._rows[queue_id] = (last, now, row)
            return row

    def overview(self, now: float, at: datetime) -> Overview:
        """Return everything as last known; with very many queues it is worked out anew for a share of the time only."""
        with self._lock:
            if self._overview is not None:
                wait = min(DERIVE_EVERY, REBUILD_SHARE * self._cost) if self._stale else DERIVE_EVERY
                if now - self._made < wait:
                    return self._overview
            began = time.perf_counter()
            rows = tuple(row for queue_id in self._directory.values() if (row := self.row(queue_id, now)) is not None)
            self._overview = Overview(
                snapshot_version=self._version,
                at=at if self.empty else self._at,
                rows=rows,
                summary=total_of(rows, queues=len(self._directory), now=at),
            )
            self._made, self._stale = now, False
            took = time.perf_counter() - began
            self._cost = took if took > CHEAP else 0.0
            return self._overview

    def summary(self, now: float, at: datetime) -> Summary:
        """Return the sum over all queues as last known."""
        return self.overview(now, at).summary

    def ready(self, queue_id: int) -> int | None:
        """Return a queue's ready items as last known; None for one that is not there, or not counted yet."""
        with self._lock:
            status = self._statuses.get(queue_id)
            return None if status is None else depth_of(status)

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
            if status.attached:
                return True
            row = cached[2]
            resting = row.outlook in (Outlook.EMPTY, Outlook.STALLED, Outlook.PAUSED)
            until = status.pause.until if status.pause else None
            return resting and not row.rate_in and not row.rate_out and row.rate_in is not None and until is None

    def _observe(self, status: QueueStatus, now: float, *, changed: bool) -> None:
        meter = self._meters.setdefault(status.id, Meter())
        checked = self._checked.get(status.id)
        if status.attached:
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
            )
        )
        stalled = verdict.outlook is Outlook.STALLED
        return Row(
            status=status,
            rate_in=three_digits(rate_in),
            rate_out=three_digits(rate_out),
            state=verdict.state,
            outlook=verdict.outlook,
            problem=verdict.problem,
            clears_in=three_digits(verdict.clears_in),
            grows_by=three_digits(verdict.grows_by),
            quiet_since=calendar - timedelta(seconds=quiet) if stalled else None,
            as_of=as_of,
        )
