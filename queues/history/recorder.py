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
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from queues.catalog import directory
from queues.context import StoreContext
from queues.health import Health, Level, TargetRules, Targets, advance, encode
from queues.health.health import STALE, born
from queues.health.target_records import read_rules
from queues.history.line import Line, decoded, differs, is_due, is_time, open_line
from queues.history.open_block import OpenBlock
from queues.history.points import HOURS, MINUTES, RESOLUTIONS, SECONDS, Point, Resolution
from queues.history.read_history import ALL_QUEUES
from queues.history.sampling import as_point, mix_of, percentiles
from queues.history.sums import Sums
from queues.history.turns import Turns
from queues.items.counters import CounterDelta, total
from queues.kv.port import ReadTransaction, Transaction
from queues.model.tuples import Range
from queues.status.health_observation import observation_of
from queues.status.snapshots import read_statuses
from queues.status.status import QueueStatus, Snapshot, TotalsRead

#: Seconds between two rounds: at least, and at most while nothing happens.
_EVERY, LONGEST = 1.0, 30.0
#: Seconds for which points wait to be written.
FLUSH = 10.0
#: Seconds for which the waits of a minute are told.
WAITS_HOLD = 120.0


@dataclass(slots=True, kw_only=True)
class _Track:
    """The last status of one queue, and the blocks that are being filled."""

    status: QueueStatus
    line: Line
    #: Now, and as it was written last.
    health: Health | None = None
    written: Health | None = None
    #: Seconds that 95 of 100 items waited that were taken in the last minute, None when none was; and when that ended.
    wait: float | None = None
    waited_at: float = 0.0


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
        self._rules = TargetRules()
        #: Raises in a transaction when this process is no longer elected.
        self._check = check
        self._count = count
        self._ids: tuple[int, ...] = ()
        self._directory: int | None = None
        #: When it looked last, and of queues that are new since: when they were not there yet.
        self._looked = 0.0
        self._unborn: dict[int, float] = {}
        self._turns = Turns()
        self._tracks: dict[int, _Track] = {}
        #: The sums over all queues; not before they were read once.
        self._sums: Sums | None = None
        self._sums_line: Line | None = None
        #: Some queue has changed while no process recorded.
        self._missed = False
        self._changes: dict[int, int] = {}
        #: Pending writes: ranges to clear, then blocks; and since when.
        self._clears: list[Range] = []
        self._blocks: dict[bytes, OpenBlock] = {}
        #: Queues of which the health is to be written.
        self._judged: set[int] = set()
        self._waiting_since: float | None = None

    def look(self) -> int:
        """Read some queues, write pending blocks if it is time, and return the number of new points."""
        now = self._context.clock.now_ms() // 1000
        full = self._waiting_since is not None and self._count() - self._waiting_since >= FLUSH
        try:
            if full:
                packed, anew = self._packed(), self._anew()  # outside of the transaction
                sample = self._context.kv.transact(
                    lambda tr: self._write_and_sample(tr, packed, anew, now), background=True
                )
                self._forget_written()
            else:
                sample = self._context.kv.read(lambda tr: self._sample(tr, now), background=True)
            return self._take_in(sample, now)
        except BaseException:
            self._forget()
            raise

    def flush(self) -> None:
        """Write pending blocks."""
        if self._waiting_since is not None:
            packed, anew = self._packed(), self._anew()
            self._context.kv.transact(lambda tr: self._write(tr, packed, anew), background=True)
            self._forget_written()

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
        if self._waiting_since is not None:
            ends.append(max(0.0, self._waiting_since + FLUSH - self._count()))
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

    def _write_and_sample(
        self, tr: Transaction, packed: Mapping[bytes, bytes], anew: Sequence[int], now: int
    ) -> _Sample:
        self._write(tr, packed, anew)
        return self._sample(tr.snapshot, now)

    def _write(self, tr: Transaction, packed: Mapping[bytes, bytes], anew: Sequence[int]) -> None:
        self._check(tr)
        for begin, end in self._clears:
            tr.clear_range(begin, end)
        for key, block in packed.items():
            tr.set(key, block)
        for queue_id in anew:  # screens show the verdict
            CounterDelta(self._context.keyspace.queue(queue_id), wake=False).apply(tr)

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
        if self._sums_line is None:
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
        attached = {
            int.from_bytes(value, "big")
            for _, value in tr.get_range(*keyspace.attached_within(b""), limit=100_000).wait()
        }
        return tuple(sorted(set(directory.names(tr, keyspace).values()) - attached))

    # Evaluation of a sample

    def _take_in(self, sample: _Sample, now: int) -> int:
        """Store the sample, make the points that are due, and return the number of queues with one."""
        if sample.ids is not None:
            if self._directory is not None:
                self._unborn |= dict.fromkeys(set(sample.ids) - set(self._ids), self._looked)
            self._ids = sample.ids
            self._turns.keep(sample.ids)
            for queue_id in (self._tracks.keys() | self._changes.keys() | self._unborn.keys()) - set(sample.ids):
                self._unborn.pop(queue_id, None)
                self._tracks.pop(queue_id, None)
                self._changes.pop(queue_id, None)
                if self._sums is not None:
                    self._sums.drop(queue_id)
        self._directory = sample.snapshot.directory_change
        self._changes.update(sample.snapshot.changes)
        if ALL_QUEUES in sample.blocks:
            self._sums_line = open_line(sample.blocks[ALL_QUEUES], now)
        at = sample.snapshot.at.timestamp()
        if sample.rules is not None:
            self._rules = sample.rules
            self._judge_again(sample.snapshot.queues, at)
        written = 0
        for queue_id, status in sample.snapshot.queues.items():
            track = self._tracks.get(queue_id)
            if track is None:
                blocks = sample.blocks[queue_id]
                line, unborn = open_line(blocks, now), self._unborn.pop(queue_id, None)
                recorded = self._watched(status.health)
                if unborn is not None and recorded is None and all(block == [] for block in blocks.values()):
                    recorded = born(unborn)  # one that was restored has been recorded
                self._tracks[queue_id] = track = _Track(
                    status=status, line=line, health=recorded, written=status.health
                )
                self._compare(line, as_point(status, now).counts)
                if status.health is not None:
                    track.wait, track.waited_at = status.health.seen.wait, status.health.seen.at
            track.status = status
            self._judge(queue_id, track, at)
            if status.unreadable:
                continue  # its numbers mean nothing
            due = [r for r in RESOLUTIONS.values() if is_due(r, track.line.blocks[r.name], status, now)]
            for resolution in due:
                self._add_status(queue_id, track, resolution, now, sample.waits.get(queue_id, {}))
            if due:
                written += 1
                self._turns.put_first(queue_id)
        self._add_up(sample.snapshot.queues, now)
        self._looked = at
        return written

    def _watched(self, health: Health | None) -> Health | None:
        """Return recorded health as it still was with the last sums: all that had changed was written with them."""
        until = None if self._sums_line is None else self._sums_line.blocks[SECONDS.name].at
        if health is None or until is None or not health.settled or until <= health.seen.at:
            return health
        return advance(health, msgspec.structs.replace(health.seen, at=float(until)), health.targets)

    def _compare(self, line: Line, counts: tuple[int, ...]) -> None:
        """Note until when a queue that is new to this recorder is known: its last point, if it has changed."""
        last = line.blocks[SECONDS.name]
        if last.counts is not None and last.counts != counts and last.at is not None:
            self._missed = True
            # What was written together with the sums says that nothing had changed until then.
            sums = None if self._sums_line is None else self._sums_line.blocks[SECONDS.name].at
            known = max(last.at, min(sums or 0, line.first)) if self._sums is None else last.at
            line.unknown_after = dict.fromkeys(RESOLUTIONS, known) | line.unknown_after
            line.last = last.newest

    def _add_up(self, read: Mapping[int, QueueStatus], now: int) -> None:
        """Bring the sums up to now, and make their points that are due."""
        line = self._sums_line
        if line is None or (self._sums is None and not self._tracks.keys() >= set(self._ids)):
            return
        if self._sums is None:
            last = line.blocks[SECONDS.name]
            self._sums = Sums(last.counts)
            read = {queue_id: track.status for queue_id, track in self._tracks.items()}
            if last.at is not None and self._missed:
                line.first, line.last = now, last.newest
                line.unknown_after |= dict.fromkeys(RESOLUTIONS, last.at)
        for queue_id, status in read.items():
            if status.unreadable:
                self._sums.miss(queue_id)
            else:
                self._sums.take(queue_id, as_point(status, now))
        if self._sums.missing:  # no sums are better than some that leave out a queue
            line.unknown_after |= {
                name: block.at
                for name, block in line.blocks.items()
                if block.at is not None and name not in line.unknown_after
            }
            line.first = now
            return
        point = self._sums.point(now)
        for resolution in RESOLUTIONS.values():
            block = line.blocks[resolution.name]
            changed = any(point.counts) if block.counts is None else block.counts != point.counts
            if (changed or line.has_gap(resolution)) and is_time(resolution, block, now):
                self._add(ALL_QUEUES, line, resolution, point)

    def _judge_again(self, judged: Container[int], at: float) -> None:
        """Judge queues with other targets than before, as many as a round has; this round's are judged anyway."""
        retargeted = (
            (queue_id, track)
            for queue_id, track in self._tracks.items()
            if queue_id not in judged
            and track.health is not None
            and track.health.targets != self._targets_of(track.status)
        )
        for queue_id, track in islice(retargeted, self._turns.size):
            self._judge(queue_id, track, at)

    def _targets_of(self, status: QueueStatus) -> Targets:
        return self._rules.targets(status.name, status.limits)

    def _judge(self, queue_id: int, track: _Track, at: float) -> None:
        """Bring a queue's health up to now. A new verdict is written with the next round, the rest with the blocks."""
        # A queue from which nothing is taken has no points, and no waits.
        seen = observation_of(track.status, at, wait=track.wait if at - track.waited_at < WAITS_HOLD else None)
        track.health = health = advance(track.health, seen, self._targets_of(track.status))
        written = track.written
        if written is None and health.is_unused:
            return
        differs = _is_news(written, health)
        if differs or not health.settled or written is None or msgspec.structs.replace(written.seen, at=at) != seen:
            self._judged.add(queue_id)
            self._wait()
        level = Level.OK if written is None else written.verdict.level
        retargeted = written is not None and written.targets != health.targets and differs
        # The record of an idle queue is old: a process that starts takes that for a time without a recorder.
        woke = written is not None and written.settled and not health.settled and at - written.seen.at > STALE
        if health.verdict.level is not level or retargeted or woke:
            self._waiting_since = self._count() - FLUSH

    def _wait(self) -> None:
        if self._waiting_since is None:
            self._waiting_since = self._count()

    def _add_status(
        self, queue_id: int, track: _Track, resolution: Resolution, now: int, histogram: Mapping[int, int]
    ) -> None:
        """Add a queue's point of now."""
        point = as_point(track.status, now)
        if resolution is not SECONDS:
            before = track.line.blocks[resolution.name].waits
            waits = None if before is None else percentiles(histogram, before)
            if resolution is MINUTES and before is not None:  # the first minute of a recorder is unknown to it
                track.wait, track.waited_at = None if waits is None else waits[1] / 1000, now
            point = replace(point, mix=mix_of(track.status), waits_ms=waits)
        self._add(queue_id, track.line, resolution, point)
        if resolution is not SECONDS:
            track.line.blocks[resolution.name].note_waits(histogram)

    def _add(self, queue_id: int, line: Line, resolution: Resolution, point: Point) -> None:
        """Add a point, preceded by one that ends a time without changes."""
        name, keyspace, now = resolution.name, self._context.keyspace, point.at
        block, gap = line.blocks[name], line.has_gap(resolution)
        known = line.unknown_after.pop(name, None)
        first, end = keyspace.history.below(queue_id, name)
        if block.at is not None and block.at > now:  # the clock stepped back
            self._clear(keyspace.history.key(queue_id, name, resolution.start(now)), end)
            block = block.without_points()
        moments = [now]
        if block.at is not None and now - block.at > resolution.step + resolution.step // 2 + 1:
            same = now - resolution.step if known is None else min(known, now - 1)
            moments = [same, now] if same > block.at else [now]
        for at in moments:
            start = resolution.start(at)
            if block.at is not None and resolution.start(block.at) != start:
                block = block.next_block()
                self._clear(first, keyspace.history.key(queue_id, name, resolution.start(now - resolution.kept)))
            if at == now:
                block.add(replace(point, gap=gap))
            else:
                same_as = block.newest if known is None or line.last is None else line.last
                block.add(replace(same_as, at=at))
            self._blocks[keyspace.history.key(queue_id, name, start)] = block
        line.blocks[name] = block
        self._wait()
        if gap:
            self._waiting_since = self._count() - FLUSH  # pages learn of it at once

    def _packed(self) -> dict[bytes, bytes]:
        packed = {key: block.block() for key, block in self._blocks.items()}
        for queue_id in self._judged & self._tracks.keys():
            if (health := self._tracks[queue_id].health) is not None:
                packed[self._context.keyspace.queue(queue_id).health] = encode(health)
        return packed

    def _anew(self) -> list[int]:
        """Return the queues with another verdict than was written last."""
        tracks = [(queue_id, self._tracks[queue_id]) for queue_id in self._judged & self._tracks.keys()]
        return [queue_id for queue_id, track in tracks if _is_news(track.written, track.health)]

    def _clear(self, begin: bytes, end: bytes) -> None:
        """Clear a range of blocks with the next write, pending ones included."""
        self._blocks = {key: block for key, block in self._blocks.items() if not begin <= key < end}
        self._clears.append((begin, end))

    def _forget_written(self) -> None:
        for queue_id in self._judged & self._tracks.keys():
            self._tracks[queue_id].written = self._tracks[queue_id].health
        self._judged = set()
        self._clears, self._blocks, self._waiting_since = [], {}, None

    def _forget(self) -> None:
        """Forget everything after a failure: another process may have written meanwhile."""
        self._forget_written()
        self._tracks.clear()
        self._sums = self._sums_line = None
        self._missed = False
        self._changes.clear()
        self._directory = None


def _is_news(written: Health | None, health: Health | None) -> bool:
    """Say whether there is another verdict to show. That a queue is well is no news at first."""
    if health is None:
        return False
    if written is None:
        return health.verdict.level is not Level.OK
    return written.verdict != health.verdict
