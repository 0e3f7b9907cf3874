"""Verdicts of the recorder: the health of each queue, judged at each look, and written when it has changed."""

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass
from itertools import islice

import msgspec

from queues.health import Health, Level, TargetRules, Targets, advance, encode
from queues.health.health import STALE
from queues.history.line import Line
from queues.history.pending_writes import PendingWrites
from queues.items.counters import CounterDelta
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.status.health_observation import observation_of
from queues.status.status import QueueStatus

#: Seconds for which the waits of a minute are told.
_WAITS_HOLD = 120.0


@dataclass(slots=True, kw_only=True)
class Track:
    """The last status of one queue, its health, and the blocks that are being filled."""

    status: QueueStatus
    line: Line
    #: Now, and as it was written last.
    health: Health | None = None
    written: Health | None = None
    #: About the seconds that 95 of 100 items waited that were taken in the last minute, None when none was; and when
    #: that ended.
    wait: float | None = None
    waited_at: float = 0.0

    @property
    def is_news(self) -> bool:
        """Say whether there is another verdict to show. That a queue is well is no news at first."""
        if self.health is None:
            return False
        if self.written is None:
            return self.health.verdict.level is not Level.OK
        return self.written.verdict != self.health.verdict


class Verdicts:
    """Judges the queues of the recorder by their targets."""

    def __init__(self, keyspace: Keyspace, tracks: Mapping[int, Track], pending: PendingWrites) -> None:
        self._keyspace = keyspace
        self._tracks = tracks
        self._pending = pending
        self._rules = TargetRules()
        #: Queues of which the health is to be written.
        self._judged: set[int] = set()

    def judge(self, queue_id: int, track: Track, at: float) -> None:
        """Bring a queue's health up to now. A new verdict is written with the next round, the rest with the blocks."""
        # A queue from which nothing is taken has no points, and no waits.
        seen = observation_of(track.status, at, wait=track.wait if at - track.waited_at < _WAITS_HOLD else None)
        track.health = health = advance(track.health, seen, self._targets_of(track.status))
        written = track.written
        if written is None and health.is_unused:
            return
        changed = written is None or msgspec.structs.replace(written.seen, at=at) != seen
        if changed or track.is_news or not health.settled:
            self._judged.add(queue_id)
            self._pending.wait()
        level = Level.OK if written is None else written.verdict.level
        retargeted = written is not None and written.targets != health.targets and track.is_news
        # The record of an idle queue is old: a process that starts takes that for a time without a recorder.
        woke = written is not None and written.settled and not health.settled and at - written.seen.at > STALE
        if health.verdict.level is not level or retargeted or woke:
            self._pending.hurry()

    def retarget(self, rules: TargetRules, judged: Container[int], at: float, *, most: int) -> None:
        """Judge queues with other targets than before, at most some; those of this round are judged anyway."""
        self._rules = rules
        retargeted = (
            (queue_id, track)
            for queue_id, track in self._tracks.items()
            if queue_id not in judged
            and track.health is not None
            and track.health.targets != self._targets_of(track.status)
        )
        for queue_id, track in islice(retargeted, most):
            self.judge(queue_id, track, at)

    def packed(self) -> dict[int, dict[bytes, bytes]]:
        """Return what is to be written, by queue and by key."""
        return {
            queue_id: {self._keyspace.queue(queue_id).health: encode(track.health)}
            for queue_id, track in self._unwritten().items()
            if track.health is not None
        }

    def news(self) -> set[int]:
        """Return the queues with another verdict than was written last."""
        return {queue_id for queue_id, track in self._unwritten().items() if track.is_news}

    def show(self, tr: Transaction, news: Set[int]) -> None:
        """Change queues with a new verdict, so that screens show it."""
        for queue_id in news:
            CounterDelta(self._keyspace.queue(queue_id), wake=False).apply(tr)

    def note_written(self) -> None:
        """Note that all is written."""
        for track in self._unwritten().values():
            track.written = track.health
        self._judged = set()

    def _unwritten(self) -> dict[int, Track]:
        return {queue_id: self._tracks[queue_id] for queue_id in self._judged & self._tracks.keys()}

    def _targets_of(self, status: QueueStatus) -> Targets:
        return self._rules.targets(status.name, status.limits)
