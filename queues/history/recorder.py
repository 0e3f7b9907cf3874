"""Recorder: writes the history and the health of every queue, in the elected process.

It reads a few hundred queues a second, changing ones first, and writes changes every ten seconds in a transaction that
reads as well: one transaction a second, for any number of queues and screens. Statuses that a screen of this process
has read are not read again. An idle queue writes nothing. A new verdict is written at once, and changes the queue, so
that screens of all processes show it.

When the process is killed, the last seconds are lost. The next recorder continues from what was written: a queue that
has changed since gets a gap, as nothing is known of how it changed.

The sums over all queues have a history too, from the moment on at which this recorder has read every queue.
"""

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import msgspec

from queues.catalog import attached_prefixes as prefixes
from queues.catalog import directory
from queues.context import StoreContext
from queues.health import Health, TargetRules, advance
from queues.health.health import born
from queues.health.target_records import read_rules
from queues.history.line import decoded, differs, is_due, open_line
from queues.history.open_block import OpenBlock
from queues.history.pending_writes import FLUSH, PendingWrites
from queues.history.points import HOURS, MINUTES, RESOLUTIONS, SECONDS, Point, Resolution
from queues.history.read_history import ALL_QUEUES
from queues.history.sampling import as_point, middle_ms, mix_of, percentiles
from queues.history.sums import SumsHistory
from queues.history.turns import Turns
from queues.history.verdicts import Track, Verdicts
from queues.items.counters import total
from queues.kv.port import ReadTransaction, Transaction
from queues.status.snapshots import read_statuses
from queues.status.status import QueueStatus, Snapshot, TotalsRead

#: Seconds between two rounds: at least, and at most while nothing happens.
_EVERY, LONGEST = 1.0, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Result of the reads of one round."""

    snapshot: Snapshot
    #: The points of the newest blocks of what is new to the recorder, by resolution; None for a damaged block.
    blocks: Mapping[int, Mapping[str, Sequence[Point] | None]]
    #: Wait histograms of queues that are due for more than a point of a second.
    waits: Mapping[int, Mapping[int, int]]
    #: Queues with histories, and the targets of queues, when the directory or targets have changed.
    ids: tuple[int, ...] | None
    rules: TargetRules | None


class Recorder:
    """Writes histories; used by one thread of the elected process."""

    def __init__(
        self,
        context: StoreContext,
        *,
        check: Callable[[ReadTransaction], None] = lambda tr: None,
        count: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        #: Raises in a transaction when this process is no longer elected.
        self._check = check
        self._count = count
        self._ids: tuple[int, ...] = ()
        self._directory: int | None = None
        #: When it looked last, and of queues that are new since: when they were not there yet.
        self._looked = 0.0
        self._unborn: dict[int, float] = {}
        self._turns = Turns()
        self._tracks: dict[int, Track] = {}
        self._sums = SumsHistory()
        self._changes: dict[int, int] = {}
        self._pending = PendingWrites(context.keyspace, count, self._stored)
        self._verdicts = Verdicts(context.keyspace, self._tracks, self._pending)

    def look(self) -> int:
        """Read some queues, write pending blocks if it is time, and return the number of new points."""
        now = self._context.clock.now_ms() // 1000
        left = self._pending.left
        try:
            if left is not None and left <= 0:
                write = self._writer()  # packs outside of the transaction

                def write_and_sample(tr: Transaction) -> _Sample:
                    write(tr)
                    return self._sample(tr.snapshot, now)

                sample = self._context.kv.transact(write_and_sample, background=True)
                self._note_written()
            else:
                sample = self._context.kv.read(lambda tr: self._sample(tr, now), background=True)
            return self._take_in(sample, now)
        except BaseException:
            self._forget()
            raise

    def flush(self) -> None:
        """Write pending blocks."""
        if self._pending.left is not None:
            self._context.kv.transact(self._writer(), background=True)
            self._note_written()

    def run(self, go_on: Callable[[], bool]) -> None:
        """Record while `go_on` is true, resting until something changes or the store is interrupted."""
        while go_on():
            began = self._count()
            self.look()
            self._rest(began, go_on)
        self.flush()

    @property
    def rest(self) -> float:
        """The seconds until the next write, if nothing changes."""
        if len(self._ids) > self._turns.size or not self._changes.keys() >= set(self._ids):
            return 0.0
        now = self._context.clock.now_ms() / 1000
        ends = [
            (now // resolution.step + 1) * resolution.step - now
            for resolution in (MINUTES, HOURS)
            if any(differs(track.line.blocks[resolution.name], track.status) for track in self._tracks.values())
        ]
        if self._pending.left is not None:
            ends.append(max(0.0, self._pending.left))
        if any(track.health is not None and not track.health.settled for track in self._tracks.values()):
            ends.append(FLUSH)
        return min([LONGEST, *ends])

    @property
    def known(self) -> Mapping[bytes, bytes | None]:
        """The keys to watch: the change keys of queues and directory, with their last values."""
        keyspace = self._context.keyspace
        changes = {keyspace.change(queue_id): change for queue_id, change in self._changes.items()}
        if self._directory is not None:
            changes[keyspace.directory_change] = self._directory
        return {key: change.to_bytes(8, "little") if change else None for key, change in changes.items()}

    def _rest(self, began: float, go_on: Callable[[], bool]) -> None:
        """Sleep at least until a second has passed, then until something changes."""
        while go_on() and (left := began + _EVERY - self._count()) > 0:
            self._context.kv.watch({}, timeout=left)
        if go_on() and (rest := self.rest) > 0:
            self._context.kv.watch(self.known, timeout=rest)

    # Bodies of transactions

    def _writer(self) -> Callable[[Transaction], None]:
        """Return the function that writes what is pending now."""
        blocks, verdicts, news = self._pending.packed(), self._verdicts.packed(), self._verdicts.news()

        def write(tr: Transaction) -> None:
            self._check(tr)
            gone = self._gone(tr, blocks.keys() | verdicts.keys())
            self._pending.clear(tr)
            for packed in (blocks, verdicts):
                for queue_id in packed.keys() - gone:
                    for key, value in packed[queue_id].items():
                        tr.set(key, value)
            self._verdicts.show(tr, news - gone)

        return write

    def _stored(self, key: bytes) -> Sequence[Point]:
        """Return the points of a block that was written; of a damaged one there are none."""
        block = self._context.kv.read(lambda tr: tr.get(key).wait(), background=True)
        return decoded(block) or () if block else ()

    def _gone(self, tr: ReadTransaction, queue_ids: Set[int]) -> set[int]:
        """Return those of these queues that are gone since the last look. The trash may have lost them already."""
        keyspace = self._context.keyspace
        if total(tr.get(keyspace.directory_change).wait()) == self._directory:
            return set()
        reads = [(queue_id, tr.get(keyspace.configs.key(queue_id))) for queue_id in queue_ids - {ALL_QUEUES}]
        return {queue_id for queue_id, read in reads if read.wait() is None}

    def _sample(self, tr: ReadTransaction, now: int) -> _Sample:
        keyspace = self._context.keyspace
        changed = total(tr.get(keyspace.directory_change).wait())
        stale = changed != self._directory
        ids, rules = (self._own(tr), read_rules(tr, keyspace)) if stale else (None, None)
        chosen = self._turns.choose(
            self._ids if ids is None else ids, self._context.statuses.take_changed(), self._tracks
        )
        snapshot = read_statuses(
            tr,
            keyspace,
            chosen,
            at_time=self._context.clock.now(),
            previous=self._previous(chosen),
            preview=0,
            counts=self._context.counts,
            tolerant=True,
        )
        new = [queue_id for queue_id in snapshot.queues if queue_id not in self._tracks]
        if self._sums.line is None:
            new.append(ALL_QUEUES)
        pending = {
            queue_id: {
                resolution.name: tr.get_range(*keyspace.history.below(queue_id, resolution.name), limit=1, reverse=True)
                for resolution in RESOLUTIONS.values()
            }
            for queue_id in new
        }
        blocks = {
            queue_id: {name: decoded(found[0][1]) if (found := read.wait()) else [] for name, read in reads.items()}
            for queue_id, reads in pending.items()
        }

        def last(queue_id: int, resolution: Resolution) -> OpenBlock:
            if queue_id in blocks:
                return OpenBlock(resolution, (blocks[queue_id][resolution.name] or ())[-1:])
            return self._tracks[queue_id].line.blocks[resolution.name]

        waits = {
            queue_id: TotalsRead(tr, keyspace.queue(queue_id).waits)
            for queue_id, status in snapshot.queues.items()
            if not status.unreadable and any(is_due(r, last(queue_id, r), status, now) for r in (MINUTES, HOURS))
        }
        return _Sample(
            snapshot=snapshot,
            blocks=blocks,
            waits={queue_id: read.wait() for queue_id, read in waits.items()},
            ids=ids,
            rules=rules,
        )

    def _previous(self, ids: Sequence[int]) -> Snapshot:
        """Return the newest statuses of these queues, read here or elsewhere in this process."""
        queues: dict[int, QueueStatus] = {}
        changes: dict[int, int] = {}
        for queue_id in ids:
            track, seen = self._tracks.get(queue_id), self._context.statuses.get(queue_id)
            if seen is not None and (track is None or seen.change > track.status.change):
                queues[queue_id], changes[queue_id] = seen, seen.change
            elif queue_id in self._changes:
                changes[queue_id] = self._changes[queue_id]
                if track is not None:
                    queues[queue_id] = track.status
        return Snapshot(version=0, at=self._context.clock.now(), directory_change=0, queues=queues, changes=changes)

    def _own(self, tr: ReadTransaction) -> tuple[int, ...]:
        """Return the ids of all queues but attached ones, which have no counters."""
        keyspace = self._context.keyspace
        attached = set(prefixes.claims(tr, keyspace).values())
        return tuple(sorted(set(directory.names(tr, keyspace).values()) - attached))

    # Evaluation of a sample

    def _take_in(self, sample: _Sample, now: int) -> int:
        """Store the sample, make the points that are due, and return the number of queues with one."""
        if sample.ids is not None:
            self._keep(sample.ids)
        self._directory = sample.snapshot.directory_change
        self._changes.update(sample.snapshot.changes)
        if ALL_QUEUES in sample.blocks:
            self._sums.line = open_line(sample.blocks[ALL_QUEUES], now)
        at = sample.snapshot.at.timestamp()
        if sample.rules is not None:
            self._verdicts.retarget(sample.rules, sample.snapshot.queues, at, most=self._turns.size)
        written = 0
        for queue_id, status in sample.snapshot.queues.items():
            track = self._tracks.get(queue_id)
            if track is None:
                blocks = sample.blocks[queue_id]
                line, unborn = open_line(blocks, now), self._unborn.pop(queue_id, None)
                recorded = self._watched(status.health)
                if unborn is not None and recorded is None and all(block == [] for block in blocks.values()):
                    recorded = born(unborn)  # one that was restored has been recorded
                self._tracks[queue_id] = track = Track(status=status, line=line, health=recorded, written=status.health)
                self._sums.compare(line, as_point(status, now).counts)
                if status.health is not None:
                    track.wait, track.waited_at = status.health.seen.wait, status.health.seen.at
            track.status = status
            self._verdicts.judge(queue_id, track, at)
            if status.unreadable:
                continue  # its numbers mean nothing
            due = [r for r in RESOLUTIONS.values() if is_due(r, track.line.blocks[r.name], status, now)]
            for resolution in due:
                self._add_status(queue_id, track, resolution, now, sample.waits.get(queue_id, {}))
            if due:
                written += 1
                self._turns.put_first(queue_id)
        read = sample.snapshot.queues
        if not self._sums.is_begun:
            read = {queue_id: track.status for queue_id, track in self._tracks.items()}
        if self._sums.is_begun or self._tracks.keys() >= set(self._ids):
            for sums_line, resolution, point in self._sums.points(read, now):
                self._pending.add(ALL_QUEUES, sums_line, resolution, point)
        self._looked = at
        return written

    def _keep(self, ids: tuple[int, ...]) -> None:
        """Record these queues from now on, and forget the rest."""
        if self._directory is not None:
            self._unborn |= dict.fromkeys(set(ids) - set(self._ids), self._looked)
        self._ids = ids
        self._turns.keep(ids)
        for queue_id in (self._tracks.keys() | self._changes.keys() | self._unborn.keys()) - set(ids):
            self._unborn.pop(queue_id, None)
            self._tracks.pop(queue_id, None)
            self._changes.pop(queue_id, None)
            self._pending.drop(queue_id)
            self._sums.drop(queue_id)

    def _watched(self, health: Health | None) -> Health | None:
        """Return recorded health as it still was with the last sums: all that had changed was written with them."""
        until = self._sums.until
        if health is None or until is None or not health.settled or until <= health.seen.at:
            return health
        return advance(health, msgspec.structs.replace(health.seen, at=float(until)), health.targets)

    def _add_status(
        self, queue_id: int, track: Track, resolution: Resolution, now: int, histogram: Mapping[int, int]
    ) -> None:
        """Add a queue's point of now."""
        point = as_point(track.status, now)
        if resolution is not SECONDS:
            before = track.line.blocks[resolution.name].waits
            waits = None if before is None else percentiles(histogram, before)
            if resolution is MINUTES and before is not None:  # the first minute of a recorder is unknown to it
                track.wait, track.waited_at = None if waits is None else middle_ms(waits[1]) / 1000, now
            point = replace(point, mix=mix_of(track.status), waits_ms=waits)
        self._pending.add(queue_id, track.line, resolution, point)
        if resolution is not SECONDS:
            track.line.blocks[resolution.name].note_waits(histogram)

    def _note_written(self) -> None:
        self._verdicts.note_written()
        self._pending.forget()

    def _forget(self) -> None:
        """Forget everything after a failure: another process may have written meanwhile."""
        self._note_written()
        self._tracks.clear()
        self._sums = SumsHistory()
        self._changes.clear()
        self._directory = None
