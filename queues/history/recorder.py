"""The recorder: writes the history of every queue, in whichever process is elected to.

It looks at a few hundred queues a second, those that change first, and writes what changed every ten seconds, in a
transaction that looks as well: one transaction a second, however many queues and screens there are. What a screen of
this process has read it does not read again. A queue that does nothing writes nothing. Who is killed takes the last
seconds along; the next one goes on from what was written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from queues.catalog import directory
from queues.context import StoreContext
from queues.history.filling import Filling
from queues.history.points import HOURS, MINUTES, SECONDS, Point, Resolution, decode
from queues.history.sampling import as_point, percentiles, shares
from queues.items.counters import total
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import ReadTransaction, Transaction
from queues.model.tuples import Range
from queues.status.snapshots import read_statuses
from queues.status.status import QueueStatus, Snapshot

#: Seconds between two looks, at least; and without anything to do, at most.
_EVERY, LONGEST = 1.0, 30.0
#: Seconds for which points wait to be written.
FLUSH = 10.0
#: Queues that changed lately, and others, of one look: what they may write stays below 1 MB.
HOT, OTHERS = 200, 200
#: Queues of one look that were never looked at before: these are read whole, with the ends of their histories.
FIRST = 200
#: Seconds by which a clock may step back unnoticed; beyond that, points of the future are dropped.
_BACK = 60
_RESOLUTIONS = (SECONDS, MINUTES, HOURS)
_BUCKETS = 100


@dataclass(slots=True, kw_only=True)
class _Track:
    """What the recorder knows of one queue: as it was last seen, and what was written last."""

    status: QueueStatus
    #: By resolution: the block that is being filled.
    blocks: dict[str, Filling]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """What one look saw."""

    snapshot: Snapshot
    #: The newest blocks of queues that were not seen before, by resolution.
    blocks: Mapping[int, Mapping[str, Sequence[Point]]]
    #: Wait histograms of queues that are due for more than a point of a second.
    waits: Mapping[int, Mapping[int, int]]
    #: Queues of which histories are kept, when that has changed.
    ids: tuple[int, ...] | None


class Recorder:
    """Writes histories. One thread calls it, in the one process that is elected."""

    def __init__(
        self,
        context: StoreContext,
        *,
        check: Callable[[ReadTransaction], None] = lambda tr: None,
        count: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        #: Raises in a transaction of whoever is no longer elected.
        self._check = check
        self._count = count
        self._ids: tuple[int, ...] = ()
        self._directory: int | None = None
        self._next = 0
        #: Ids of queues that were written to, the latest last.
        self._hot: dict[int, None] = {}
        self._tracks: dict[int, _Track] = {}
        self._changes: dict[int, int] = {}
        #: What waits to be written: ranges to clear, then blocks; and since when.
        self._clears: list[Range] = []
        self._blocks: dict[bytes, Filling] = {}
        self._waiting_since: float | None = None

    def look(self) -> int:
        """Look at some queues and return how many have a new point; sometimes write what waits."""
        now = self._context.now_ms() // 1000
        full = self._waiting_since is not None and self._count() - self._waiting_since >= FLUSH
        try:
            if full:
                packed = self._packed()  # here, where it holds up nobody
                sample = self._context.kv.transact(lambda tr: self._write_and_sample(tr, packed, now), background=True)
                self._forget_written()
            else:
                sample = self._context.kv.read(lambda tr: self._sample(tr, now), background=True)
            return self._take_in(sample, now)
        except BaseException:
            self._forget()
            raise

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting_since is not None:
            packed = self._packed()
            self._context.kv.transact(lambda tr: self._write(tr, packed), background=True)
            self._forget_written()

    def run(self, go_on: Callable[[], bool]) -> None:
        """Look, and rest until something changes, for as long as `go_on` says; `interrupt` of the store wakes it."""
        while go_on():
            began = self._count()
            self.look()
            self._rest(began, go_on)
        self.flush()

    @property
    def rest(self) -> float:
        """Return the seconds until something has to be written though nothing changes."""
        if len(self._ids) > HOT + OTHERS or not self._changes.keys() >= set(self._ids):
            return 0.0
        now = self._context.now_ms() / 1000
        ends = [
            (now // resolution.step + 1) * resolution.step - now
            for resolution in (MINUTES, HOURS)
            if any(_differs(track.blocks[resolution.name], track.status) for track in self._tracks.values())
        ]
        if self._waiting_since is not None:
            ends.append(max(0.0, self._waiting_since + FLUSH - self._count()))
        return min([LONGEST, *ends])

    @property
    def known(self) -> Mapping[bytes, bytes | None]:
        """Return what to watch meanwhile: every queue that was looked at, and which queues there are."""
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

    # What transactions do

    def _write_and_sample(self, tr: Transaction, packed: Mapping[bytes, bytes], now: int) -> _Sample:
        self._write(tr, packed)
        return self._sample(tr.snapshot, now)

    def _write(self, tr: Transaction, packed: Mapping[bytes, bytes]) -> None:
        self._check(tr)
        for begin, end in self._clears:
            tr.clear_range(begin, end)
        for key, block in packed.items():
            tr.set(key, block)

    def _sample(self, tr: ReadTransaction, now: int) -> _Sample:
        keyspace = self._context.keyspace
        changed = total(tr.get(keyspace.directory_change).wait())
        ids = self._own(tr) if changed != self._directory else None
        chosen = self._choose(self._ids if ids is None else ids)
        snapshot = read_statuses(
            tr,
            keyspace,
            chosen,
            at_time=self._context.now(),
            previous=self._previous(chosen),
            preview=0,
            counts=self._context.counts,
        )
        new = [queue_id for queue_id in snapshot.queues if queue_id not in self._tracks]
        pending = {
            queue_id: {
                resolution.name: tr.get_range(*keyspace.history(queue_id, resolution.name), limit=1, reverse=True)
                for resolution in _RESOLUTIONS
            }
            for queue_id in new
        }
        blocks = {
            queue_id: {name: decode(found[0][1]) if (found := read.wait()) else [] for name, read in reads.items()}
            for queue_id, reads in pending.items()
        }

        def last(queue_id: int, resolution: Resolution) -> Filling:
            if queue_id in blocks:
                return Filling(resolution, blocks[queue_id][resolution.name][-1:])
            return self._tracks[queue_id].blocks[resolution.name]

        waits = {
            queue_id: _Waits(tr, keyspace.queue(queue_id))
            for queue_id, status in snapshot.queues.items()
            if any(_is_due(r, last(queue_id, r), status, now) for r in (MINUTES, HOURS))
        }
        return _Sample(
            snapshot=snapshot,
            blocks=blocks,
            waits={queue_id: read.wait() for queue_id, read in waits.items()},
            ids=ids,
        )

    def _previous(self, ids: Sequence[int]) -> Snapshot:
        """Return what is known of these queues, by ourselves or by others of this process, whoever read it later."""
        queues: dict[int, QueueStatus] = {}
        changes: dict[int, int] = {}
        for queue_id in ids:
            track, seen = self._tracks.get(queue_id), self._context.seen.get(queue_id)
            if seen is not None and (track is None or seen.change > track.status.change):
                queues[queue_id], changes[queue_id] = seen, seen.change
            elif queue_id in self._changes:
                changes[queue_id] = self._changes[queue_id]
                if track is not None:
                    queues[queue_id] = track.status
        return Snapshot(version=0, at=self._context.now(), directory_change=0, queues=queues, changes=changes)

    def _own(self, tr: ReadTransaction) -> tuple[int, ...]:
        """Return the ids of all queues but attached ones, whose items others write uncounted."""
        keyspace = self._context.keyspace
        attached = {
            int.from_bytes(value, "big")
            for _, value in tr.get_range(*keyspace.attached_within(b""), limit=100_000).wait()
        }
        return tuple(sorted(set(directory.names(tr, keyspace).values()) - attached))

    def _choose(self, ids: Sequence[int]) -> list[int]:
        """Return which queues to look at now: those that change, and some of the others in turn.

        Few at once that were never looked at, whether they change or not: the first round after a start takes its time.
        """
        there = set(ids)
        for queue_id in self._context.seen.take_changed():
            if queue_id in there:  # others would take the places of these
                self._heat(queue_id)
        chosen: dict[int, None] = {}
        first = 0
        for queue_id in reversed(self._hot):
            new = queue_id not in self._tracks
            if queue_id in there and first + new <= FIRST:
                chosen[queue_id] = None
                first += new
        for _ in range(len(ids)):
            queue_id = ids[self._next % len(ids)]
            first += queue_id not in self._tracks and queue_id not in chosen
            if len(chosen) == HOT + OTHERS or first > FIRST:
                break
            chosen[queue_id] = None
            self._next = (self._next + 1) % len(ids)
        return list(chosen)

    # What follows from a sample

    def _take_in(self, sample: _Sample, now: int) -> int:
        """Remember what was seen, make the points that are due, and return how many queues have one."""
        if sample.ids is not None:
            self._ids = sample.ids
            for queue_id in (self._tracks.keys() | self._changes.keys() | self._hot.keys()) - set(sample.ids):
                self._tracks.pop(queue_id, None)
                self._changes.pop(queue_id, None)
                self._hot.pop(queue_id, None)
        self._directory = sample.snapshot.directory_change
        self._changes.update(sample.snapshot.changes)
        written = 0
        for queue_id, status in sample.snapshot.queues.items():
            track = self._tracks.get(queue_id)
            if track is None:
                points = sample.blocks[queue_id]
                blocks = {r.name: Filling(r, points[r.name]) for r in _RESOLUTIONS}
                track = self._tracks[queue_id] = _Track(status=status, blocks=blocks)
            track.status = status
            due = [r for r in _RESOLUTIONS if _is_due(r, track.blocks[r.name], status, now)]
            for resolution in due:
                self._add(queue_id, track, resolution, now, sample.waits.get(queue_id, {}))
            if due:
                written += 1
                self._heat(queue_id)
        return written

    def _heat(self, queue_id: int) -> None:
        """Note that a queue changed: of those that did, the latest are looked at every second."""
        self._hot.pop(queue_id, None)
        self._hot[queue_id] = None
        if len(self._hot) > HOT:
            self._hot.pop(next(iter(self._hot)))

    def _add(
        self, queue_id: int, track: _Track, resolution: Resolution, now: int, histogram: Mapping[int, int]
    ) -> None:
        """Make a queue's point of now, and before it one of how it stayed, if it did for a while."""
        name, keyspace = resolution.name, self._context.keyspace
        point, block = as_point(track.status, now), track.blocks[name]
        if resolution is not SECONDS:
            before = block.waits
            waits = None if before is None else percentiles(histogram, before)
            point = replace(point, mix=shares(track.status), waits_ms=waits)
        first, end = keyspace.history(queue_id, name)
        if block.at is not None and block.at > now:  # the clock stepped back
            self._clear(keyspace.history_block(queue_id, name, resolution.start(now)), end)
            block = block.without_points()
        late = block.at is not None and now - block.at > resolution.step + resolution.step // 2 + 1
        for at in (now - resolution.step, now) if late else (now,):
            start = resolution.start(at)
            if block.at is not None and resolution.start(block.at) != start:
                block = block.next_block()
                self._clear(first, keyspace.history_block(queue_id, name, resolution.start(now - resolution.kept)))
            if at == now:
                block.add(point)
            else:
                block.add_as_before(at)
            self._blocks[keyspace.history_block(queue_id, name, start)] = block
        if resolution is not SECONDS:
            block.note_waits(histogram)
        track.blocks[name] = block
        if self._waiting_since is None:
            self._waiting_since = self._count()

    def _packed(self) -> dict[bytes, bytes]:
        return {key: block.block() for key, block in self._blocks.items()}

    def _clear(self, begin: bytes, end: bytes) -> None:
        """Clear a range of blocks with the next write, those that wait for it included."""
        self._blocks = {key: block for key, block in self._blocks.items() if not begin <= key < end}
        self._clears.append((begin, end))

    def _forget_written(self) -> None:
        self._clears, self._blocks, self._waiting_since = [], {}, None

    def _forget(self) -> None:
        """After a failure nothing is known: another process may have written meanwhile."""
        self._forget_written()
        self._tracks.clear()
        self._changes.clear()
        self._directory = None


class _Waits:
    """A queue's wait histogram, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys) -> None:
        self._keys = keys
        self._read = tr.get_range(*keys.all_waits(), limit=_BUCKETS)

    def wait(self) -> dict[int, int]:
        """Return how many items waited, by bucket."""
        return {self._keys.bucket_of(key): total(value) for key, value in self._read.wait()}


def _is_due(resolution: Resolution, block: Filling, status: QueueStatus, now: int) -> bool:
    """Say whether a point has to be written."""
    if not _differs(block, status):
        return False
    last = block.at
    if last is None or last > now + _BACK:
        return True
    return now // resolution.step > last // resolution.step


def _differs(block: Filling, status: QueueStatus) -> bool:
    """Say whether a status differs from what was written last; a queue that nobody ever used has no history."""
    counts, last = as_point(status, 0).counts, block.counts
    return any(counts) if last is None else counts != last
