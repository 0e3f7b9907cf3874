"""The recorder: writes the history of every queue, in whichever process is elected to.

It looks at a few hundred queues a second, those that change first, and writes what changed in the very transaction that
read it: at most one a second, however many queues and screens there are. A queue that does nothing writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from queues import directory
from queues.backing import Backing
from queues.history.points import HOURS, MINUTES, SECONDS, Point, Resolution, decode, encode
from queues.history.sampling import as_point, percentiles, shares
from queues.keyspace import QueueKeys, total
from queues.kv.port import KeyValue, ReadTransaction, Result, Transaction
from queues.snapshots import read_statuses
from queues.status import QueueStatus, Snapshot

#: Seconds between two looks, at least; and without anything to do, at most.
_EVERY, LONGEST = 1.0, 30.0
#: Queues that changed lately, and others, of one look: what they may write stays below 1 MB.
HOT, OTHERS = 200, 200
#: Seconds by which a clock may step back unnoticed; beyond that, points of the future are dropped.
_BACK = 60
_RESOLUTIONS = (SECONDS, MINUTES, HOURS)
_BUCKETS = 100


@dataclass(slots=True, kw_only=True)
class _Track:
    """What the recorder knows of one queue: as it was last seen, and what was written last."""

    status: QueueStatus
    #: By resolution: the points of the block that is being filled, and the newest point of all.
    blocks: dict[str, list[Point]] = field(default_factory=dict)
    last: dict[str, Point | None] = field(default_factory=dict)
    #: By resolution: the wait histogram when its newest point was written.
    waits: dict[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one look did."""

    #: Queues that were looked at, and that were written to.
    queues: int
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    snapshot: Snapshot
    tracks: Mapping[int, _Track]
    written: frozenset[int]
    ids: tuple[int, ...] | None


class Recorder:
    """Writes histories. One thread calls it, in the one process that is elected."""

    def __init__(
        self,
        backing: Backing,
        *,
        check: Callable[[ReadTransaction], None] = lambda tr: None,
        count: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backing = backing
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

    def look(self) -> Looked:
        """Look at some queues, and write what changed; forget what was known if that fails."""
        now = self._backing.now_ms() // 1000
        try:
            outcome = self._backing.kv.transact(lambda tr: self._look(tr, now), background=True)
        except BaseException:
            self._tracks.clear()
            self._changes.clear()
            self._directory = None
            raise
        if outcome.ids is not None:
            self._ids = outcome.ids
            gone = self._tracks.keys() - set(outcome.ids)
            for queue_id in gone:
                self._tracks.pop(queue_id)
                self._hot.pop(queue_id, None)
        self._directory = outcome.snapshot.directory_change
        self._tracks.update(outcome.tracks)
        self._changes.update(outcome.snapshot.changes)
        for queue_id in outcome.written:
            self._hot.pop(queue_id, None)
            self._hot[queue_id] = None
        while len(self._hot) > HOT:
            self._hot.pop(next(iter(self._hot)))
        return Looked(queues=len(outcome.snapshot.changes), written=len(outcome.written))

    def run(self, go_on: Callable[[], bool]) -> None:
        """Look, and rest until something changes, for as long as `go_on` says; `interrupt` of the store wakes it."""
        while go_on():
            began = self._count()
            self.look()
            self._rest(began, go_on)

    @property
    def rest(self) -> float:
        """Return the seconds until something has to be written though nothing changes."""
        if len(self._ids) > HOT + OTHERS:
            return 0.0
        now = self._backing.now_ms() / 1000
        ends = [
            (now // resolution.step + 1) * resolution.step - now
            for resolution in (MINUTES, HOURS)
            if any(_differs(track.last.get(resolution.name), track.status) for track in self._tracks.values())
        ]
        return min([LONGEST, *ends])

    @property
    def known(self) -> Mapping[bytes, bytes | None]:
        """Return what to watch meanwhile: every queue that was looked at, and which queues there are."""
        keyspace = self._backing.keyspace
        changes = {keyspace.queue(queue_id).change: change for queue_id, change in self._changes.items()}
        if self._directory is not None:
            changes[keyspace.directory_change] = self._directory
        return {key: change.to_bytes(8, "little") if change else None for key, change in changes.items()}

    def _rest(self, began: float, go_on: Callable[[], bool]) -> None:
        """Sleep at least until a second has passed, then until something changes."""
        while go_on() and (left := began + _EVERY - self._count()) > 0:
            self._backing.kv.watch({}, timeout=left)
        if go_on() and (rest := self.rest) > 0:
            self._backing.kv.watch(self.known, timeout=rest)

    # One look

    def _look(self, tr: Transaction, now: int) -> _Outcome:
        self._check(tr)
        keyspace, reads = self._backing.keyspace, tr.snapshot
        changed = total(reads.get(keyspace.directory_change).wait())
        ids = self._own(reads) if changed != self._directory else None
        chosen = self._choose(self._ids if ids is None else ids)
        previous = Snapshot(
            version=0,
            at=self._backing.now(),
            directory_change=0,
            queues={queue_id: track.status for queue_id, track in self._tracks.items()},
            changes=self._changes,
        )
        snapshot = read_statuses(
            reads,
            keyspace,
            chosen,
            at_time=self._backing.now(),
            previous=previous,
            preview=0,
            counts=self._backing.counts,
        )
        tracks = self._load(reads, snapshot)
        due = {
            queue_id: [r for r in _RESOLUTIONS if _is_due(r, track.last.get(r.name), track.status, now)]
            for queue_id, track in tracks.items()
        }
        waits = {
            queue_id: _Waits(reads, keyspace.queue(queue_id))
            for queue_id, resolutions in due.items()
            if any(resolution is not SECONDS for resolution in resolutions)
        }
        written = set()
        for queue_id, resolutions in due.items():
            histogram = waits[queue_id].wait() if queue_id in waits else {}
            for resolution in resolutions:
                self._write(tr, queue_id, tracks[queue_id], resolution, now, histogram)
                written.add(queue_id)
        return _Outcome(snapshot=snapshot, tracks=tracks, written=frozenset(written), ids=ids)

    def _own(self, tr: ReadTransaction) -> tuple[int, ...]:
        """Return the ids of all queues but attached ones, whose items others write uncounted."""
        keyspace = self._backing.keyspace
        attached = {
            int.from_bytes(value, "big")
            for _, value in tr.get_range(*keyspace.attached_within(b""), limit=100_000).wait()
        }
        return tuple(sorted(set(directory.names(tr, keyspace).values()) - attached))

    def _choose(self, ids: Sequence[int]) -> list[int]:
        """Return which queues to look at now: those that change, and some of the others in turn."""
        if len(ids) <= HOT + OTHERS:
            return list(ids)
        there = set(ids)
        chosen = dict.fromkeys(queue_id for queue_id in reversed(self._hot) if queue_id in there)
        for _ in range(len(ids)):
            if len(chosen) == HOT + OTHERS:
                break
            chosen[ids[self._next % len(ids)]] = None
            self._next = (self._next + 1) % len(ids)
        return list(chosen)

    def _load(self, tr: ReadTransaction, snapshot: Snapshot) -> dict[int, _Track]:
        """Return what is known of each queue with its status now; of one not seen before, from what was written."""
        tracks: dict[int, _Track] = {}
        pending: dict[int, dict[str, Result[list[KeyValue]]]] = {}
        for queue_id, status in snapshot.queues.items():
            track = self._tracks.get(queue_id)
            if track is not None:
                tracks[queue_id] = replace(
                    track, status=status, blocks=dict(track.blocks), last=dict(track.last), waits=dict(track.waits)
                )
                continue
            pending[queue_id] = {
                resolution.name: tr.get_range(
                    *self._backing.keyspace.history(queue_id, resolution.name), limit=1, reverse=True
                )
                for resolution in _RESOLUTIONS
            }
        for queue_id, reads in pending.items():
            blocks = {name: decode(pairs[0][1]) if (pairs := read.wait()) else [] for name, read in reads.items()}
            tracks[queue_id] = _Track(
                status=snapshot.queues[queue_id],
                blocks=blocks,
                last={name: points[-1] if points else None for name, points in blocks.items()},
            )
        return tracks

    def _write(
        self,
        tr: Transaction,
        queue_id: int,
        track: _Track,
        resolution: Resolution,
        now: int,
        histogram: Mapping[int, int],
    ) -> None:
        """Write a queue's point of now, and before it one of how it stayed, if it did for a while."""
        name, keyspace = resolution.name, self._backing.keyspace
        point, last = as_point(track.status, now), track.last[name]
        if resolution is not SECONDS:
            before = track.waits.get(name)
            point = replace(
                point,
                mix=shares(track.status),
                waits_ms=None if before is None else percentiles(histogram, before),
            )
            track.waits[name] = histogram
        if last is not None and last.at > now:  # the clock stepped back
            tr.clear_range(
                keyspace.history_block(queue_id, name, resolution.start(now)), keyspace.history(queue_id, name)[1]
            )
            track.blocks[name], last = [], None
        points = [point]
        if last is not None and now - last.at > resolution.step + resolution.step // 2 + 1:
            points.insert(0, _stayed(last, now - resolution.step))
        for new in points:
            block, start = track.blocks[name], resolution.start(new.at)
            if block and resolution.start(block[-1].at) != start:
                block = []
                first = keyspace.history(queue_id, name)[0]
                tr.clear_range(first, keyspace.history_block(queue_id, name, resolution.start(now - resolution.kept)))
            track.blocks[name] = [*block, new]
            tr.set(keyspace.history_block(queue_id, name, start), encode(track.blocks[name], resolution.room))
        track.last[name] = point


class _Waits:
    """A queue's wait histogram, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys) -> None:
        self._keys = keys
        self._read = tr.get_range(*keys.all_waits(), limit=_BUCKETS)

    def wait(self) -> dict[int, int]:
        """Return how many items waited, by bucket."""
        return {self._keys.bucket_of(key): total(value) for key, value in self._read.wait()}


def _is_due(resolution: Resolution, last: Point | None, status: QueueStatus, now: int) -> bool:
    """Say whether a point has to be written."""
    if not _differs(last, status):
        return False
    if last is None or last.at > now + _BACK:
        return True
    return now // resolution.step > last.at // resolution.step


def _differs(last: Point | None, status: QueueStatus) -> bool:
    """Say whether a status differs from what was written last; a queue that nobody ever used has no history."""
    counts = as_point(status, 0).counts
    return any(counts) if last is None else counts != last.counts


def _stayed(last: Point, at: int) -> Point:
    """Return a queue as it still was at a later moment."""
    oldest = None if last.oldest_ms is None else last.oldest_ms + (at - last.at) * 1000
    return replace(last, at=at, oldest_ms=oldest, waits_ms=None)
