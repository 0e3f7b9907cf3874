"""The queues on screens: read as consistent cuts, serialized once, compared with the last frame."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from pqadmin.accounts.scope import Scope
from pqadmin.live import frame_json
from pqadmin.live.board import consistent_cuts
from pqadmin.live.board.board import DERIVE_EVERY, Board
from pqadmin.live.board.consistent_cuts import Cut, Reading
from pqadmin.live.board.rows import Row
from pqadmin.live.board.totals import Totals
from pqadmin.live.off_screen_reads import chunks
from pqadmin.live.subscription import Shown
from pqadmin.live.ticks import Tick
from queues import QueueStatus, Snapshot, Store

#: Seconds after which the consumers of a queue that fills a screen are read again.
CONSUMERS_EVERY = 5.0


class Screens:
    """The queues on all screens. Used under the monitor's reading lock."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._groups: list[frozenset[int]] | None = None
        self._readings: Sequence[Reading] = ()
        self._tick: Tick | None = None
        self._number = 0
        self._changed: dict[int, int] = {}
        self._totals = Totals(board)
        #: The newest text of each row, and what it was made from.
        self._texts: dict[int, tuple[Row, str]] = {}
        self._derived = float("-inf")
        #: When the consumers of single queues were read last.
        self._consumers_read = float("-inf")
        self._dirty = True
        self._new: dict[int, str] = {}
        #: What was read last: `Store.snapshot` skips what did not change since.
        self._known: Snapshot | None = None
        #: What `Store.wait_for_change` has to wait for: the same object until a change number differs.
        self.watched: Snapshot | None = None

    @property
    def ids(self) -> frozenset[int]:
        """Every queue on a screen."""
        return frozenset().union(*self._groups) if self._groups else frozenset()

    @property
    def attached(self) -> frozenset[int]:
        """The attached queues on a screen, which are polled."""
        return frozenset(
            queue_id
            for reading in self._readings
            for queue_id, status in reading.snapshot.queues.items()
            if status.attached
        )

    @property
    def as_of(self) -> Mapping[Scope, int]:
        """The oldest reading in each sum as of now, milliseconds since the epoch."""
        return self._totals.as_of

    def changed(self) -> None:
        """Note that the store may have changed: the next `read` reads it."""
        self._dirty = True

    def poll(self, store: Store) -> None:
        """Look whether an attached queue on a screen changed; then the next `read` reads all screens.

        A queue is counted again when the items at its ends differ.
        """
        attached = self.attached
        if not attached or self._dirty:
            return
        before = {queue_id: ends for reading in self._readings for queue_id, ends in reading.ends.items()}
        for chunk in chunks(attached):
            seen = consistent_cuts.read(
                store,
                chunk,
                previous=self._known,
                ends_of=[queue_id for queue_id in chunk if queue_id in before],
                known_ends=(),
            )
            known = {} if self._known is None else self._known.queues
            inside = [queue_id for queue_id, ends in seen.ends.items() if ends != before[queue_id]]
            for queue_id in inside:
                store.counts.hurry(queue_id)
            if inside or any(seen.snapshot.queues.get(queue_id) is not known.get(queue_id) for queue_id in chunk):
                self._dirty = True

    def held(self, at: datetime) -> None:
        """Note that nothing on a screen has changed until now, which is `at` by the store's clock."""
        self._board.hold(self.ids, self._clock(), at)

    def forget(self) -> None:
        """Read everything anew next time."""
        self._groups, self._readings, self._tick, self._known, self.watched = None, (), None, None, None
        self._texts = {}

    def read(self, store: Store, screens: Sequence[Shown]) -> Tick | None:
        """Read and describe what changed; None when there is nothing to tell."""
        groups = consistent_cuts.pack(screen.ids for screen in screens if screen.ids) or [frozenset()]
        single: frozenset[int] = frozenset().union(*(screen.ids for screen in screens if screen.single))
        fresh_sums = self._totals.want(screens)
        unread_ends = any(
            queue_id not in reading.ends and queue_id in reading.snapshot.queues
            for queue_id in single
            for reading in self._readings
        )
        before = self._readings if self._groups == groups else ()
        now = self._clock()
        beating: frozenset[int] = frozenset()
        if now - self._consumers_read >= CONSUMERS_EVERY:
            beating, self._consumers_read = self._beating(single), now
            self._known = _without(self._known, beating)
        if self._dirty or unread_ends or beating or self._groups != groups:
            self._read(store, groups, single)
        if self._readings is before and not (self._new or fresh_sums or now - self._derived >= DERIVE_EVERY):
            return None
        return self._describe(now)

    def read_directory(self, store: Store, change: int | None = None) -> None:
        """Read the list of all queues if it changed; `change` is its change number if that is known already."""
        if change is None:
            change = store.snapshot(()).directory_change
        if change == self._board.directory_change:
            return
        known = None if self._board.empty else self._board.directory.items()
        directory, targets = store.read(lambda tr: (store.directory(tr=tr), store.targets.rules(tr=tr)))
        self._board.put_directory(directory, change, targets)
        if known is not None:
            self._new.update((queue_id, name) for name, queue_id in self._board.directory.items() - known)

    def _beating(self, single: Collection[int]) -> frozenset[int]:
        """Return the single queues that have consumers: their heartbeats do not change the queue."""
        return frozenset(
            queue_id
            for reading in self._readings
            for queue_id, status in reading.snapshot.queues.items()
            if queue_id in single and status.consumers.live
        )

    def _read(self, store: Store, groups: list[frozenset[int]], single: Collection[int]) -> None:
        known_ends = [
            (reading.snapshot.queues[queue_id], ends)
            for reading in self._readings
            for queue_id, ends in reading.ends.items()
        ]
        readings = []
        for group in groups:
            reading = consistent_cuts.read(
                store,
                sorted(group),
                previous=self._known,
                ends_of=[queue_id for queue_id in single if queue_id in group],
                known_ends=known_ends,
            )
            readings.append(reading)
            self.read_directory(store, reading.snapshot.directory_change)
            self._board.apply(reading.snapshot, self._clock())
        if groups != self._groups:
            shown = frozenset[int]().union(*groups)
            self._texts = {queue_id: text for queue_id, text in self._texts.items() if queue_id in shown}
            self._changed = {queue_id: since for queue_id, since in self._changed.items() if queue_id in shown}
        self._groups, self._readings, self._dirty = groups, readings, False
        self._known = merged = _merged([reading.snapshot for reading in readings])
        watched = self.watched
        if watched is None or (watched.directory_change, watched.changes) != (merged.directory_change, merged.changes):
            self.watched = merged

    def _describe(self, now: float) -> Tick | None:
        self._derived = now
        old = self._tick.cuts if self._tick is not None else ()
        made = [self._cut(reading, now) for reading in self._readings]
        changed = {
            queue_id
            for cut, known in zip_longest(made, old[: len(made)])
            for queue_id in cut.covers
            if known is None
            or cut.rows.get(queue_id) != known.rows.get(queue_id)
            or cut.ends.get(queue_id) != known.ends.get(queue_id)
        }
        fresh_sums = self._totals.work_out(now, self._number + 1)
        same = self._tick is not None and [cut.covers for cut in made] == [cut.covers for cut in old]
        if same and not (changed or fresh_sums or self._new):
            return None
        self._number += 1
        self._changed = {**self._changed, **dict.fromkeys(changed, self._number)}
        new, self._new = self._new, {}
        self._tick = Tick(number=self._number, cuts=tuple(made), sums=self._totals.sums, changed=self._changed, new=new)
        return self._tick

    def _cut(self, reading: Reading, now: float) -> Cut:
        rows: dict[int, str] = {}
        for queue_id, status in reading.snapshot.queues.items():
            row, known = self._board.row_as_read(status, now, reading.snapshot.at), self._texts.get(queue_id)
            if row is not None and (known is None or known[0] is not row):
                known = self._texts[queue_id] = (row, frame_json.row(row))
            if known is not None:
                rows[queue_id] = known[1]
        return Cut(
            version=reading.snapshot.version,
            at=int(reading.snapshot.at.timestamp() * 1000),
            covers=frozenset(reading.snapshot.changes),
            rows=rows,
            ends={queue_id: ends.text for queue_id, ends in reading.ends.items()},
            names={queue_id: status.name for queue_id, status in reading.snapshot.queues.items()},
        )


def _without(snapshot: Snapshot | None, ids: frozenset[int]) -> Snapshot | None:
    """Return a snapshot without some queues, so that they are read anew."""
    if snapshot is None:
        return None
    changes = {queue_id: change for queue_id, change in snapshot.changes.items() if queue_id not in ids}
    return replace(snapshot, changes=changes)


def _merged(snapshots: Sequence[Snapshot]) -> Snapshot:
    """Put snapshots together; of a queue in several, the oldest reading counts, so that no change is missed."""
    first = snapshots[0]
    if len(snapshots) == 1:
        return first
    changes: dict[int, int] = {}
    queues: dict[int, QueueStatus] = {}
    for snapshot in reversed(snapshots):
        changes |= snapshot.changes
        queues = {k: v for k, v in queues.items() if k not in snapshot.changes} | dict(snapshot.queues)
    return replace(first, changes=changes, queues=queues)
