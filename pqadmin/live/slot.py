"""One socket's place in the stream: the newest state wins, and at most two frames are under way.

Pure bookkeeping in a single event loop; time is passed in. Whatever a client does, a slot holds no more than the ids
of one screen and two sequence numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set as AbstractSet

from pqadmin.live import wire
from pqadmin.live.cuts import Cut, Tick
from pqadmin.live.requests import MAX_SCREEN, OVERVIEW, Watch

#: Frames sent and not yet acknowledged.
IN_FLIGHT = 2
#: Seconds without a frame after which a beat says that nothing changed; the same for a hidden tab.
BEAT, BEAT_HIDDEN = 2.0, 10.0
#: Seconds that a client may take to acknowledge before its socket is given up.
PATIENCE = 30.0


class Slot:
    """What one socket has on screen and still has to hear of."""

    def __init__(self, now: float) -> None:
        self.topic: str | None = None
        self.ids: frozenset[int] = frozenset()
        self.grow = False
        self.hidden = False
        self._dirty: set[int] = set()
        self._gone: frozenset[int] = frozenset()
        self._full = False
        self._total: str | None = None
        self._seq = 0
        self._flying: deque[tuple[int, float]] = deque()
        self._last = now
        self._trouble: tuple[float, str] | None = None
        self._told_trouble = False

    @property
    def screen(self) -> frozenset[int]:
        """The queues that must be read for this socket now."""
        return frozenset() if self.hidden else self.ids

    @property
    def single(self) -> bool:
        """Say whether the screen is one queue's page, with the items of both its ends."""
        return self.topic is not None and self.topic != OVERVIEW

    def watch(self, watch: Watch, ids: frozenset[int]) -> None:
        """Show another topic or other queues: the next frame is a whole one."""
        self.topic, self.ids, self.grow, self._gone = watch.topic, ids, watch.grow, frozenset()
        self.resync()

    def resync(self) -> None:
        """Owe a whole frame."""
        self._full = self.topic is not None
        self._dirty.clear()

    def show(self, visible: bool) -> None:
        """Suspend a hidden tab, or wake it with a whole frame."""
        if self.hidden and visible:
            self.resync()
        self.hidden = not visible

    def add(self, ids: AbstractSet[int]) -> None:
        """Put new queues on an overview's screen, as far as there is room; queues that are gone make it."""
        fresh = sorted(ids - self.ids)
        if len(self.ids) + len(fresh) > MAX_SCREEN:
            self.ids -= self._gone
            self._gone = frozenset()
        fresh = fresh[: max(0, MAX_SCREEN - len(self.ids))]
        self.ids |= frozenset(fresh)
        self._dirty.update(fresh)

    def mark(self, changed: AbstractSet[int]) -> None:
        """Note that queues changed."""
        self._dirty |= changed & self.ids

    def ack(self, seq: int) -> bool:
        """Note that the client has shown everything up to a frame; say whether that frame was under way."""
        under_way = any(flying == seq for flying, _ in self._flying)
        while self._flying and self._flying[0][0] <= seq:
            self._flying.popleft()
        return under_way

    def sent(self, seq: int) -> bool:
        """Say whether a frame of this number was ever sent."""
        return seq <= self._seq

    def too_slow(self, now: float) -> bool:
        """Say whether the oldest frame under way has waited too long for its acknowledgement."""
        return bool(self._flying) and now - self._flying[0][1] > PATIENCE

    def fail(self, since: float, message: str) -> None:
        """Owe the news that the store can not be read since `since` (seconds since the epoch)."""
        if self._trouble != (since, message):
            self._trouble, self._told_trouble = (since, message), False

    def recover(self) -> None:
        """Owe a whole frame after trouble."""
        if self._trouble is not None:
            self._trouble = None
            self.resync()

    def take(self, tick: Tick | None, *, now: float, wall: float) -> str | None:
        """Return the next frame to send, or None when nothing is due or two are under way already."""
        if len(self._flying) >= IN_FLIGHT:
            return None
        if self._trouble is not None:
            if self._told_trouble and now - self._last < self._interval:
                return None
            self._told_trouble = True
            since, message = self._trouble
            return wire.trouble(self._send(now), now=wall, since=since, message=message)
        if self.topic is None or self.hidden or tick is None:
            return None
        cut = tick.covering(self.ids, ends=self.single)
        if cut is None or not (self._full or self._dirty or self._new_total(tick)):
            return None
        return self._frame(cut, tick, now, wall)

    def beat(
        self, *, now: float, wall: float, checked: float, version: int, ready: int | None, as_of: int
    ) -> str | None:
        """Return the message that nothing changed until `checked`, if one is due."""
        if self.topic is None or self._trouble is not None or now - self._last < self._interval:
            return None
        if len(self._flying) >= IN_FLIGHT:
            return None
        return wire.beat(self._send(now), now=wall, checked=checked, version=version, ready=ready, as_of=as_of)

    @property
    def _interval(self) -> float:
        return BEAT_HIDDEN if self.hidden else BEAT

    def _new_total(self, tick: Tick) -> bool:
        return self.topic == OVERVIEW and tick.total != self._total

    def _frame(self, cut: Cut, tick: Tick, now: float, wall: float) -> str:
        assert self.topic is not None
        full = self._full
        wanted = self.ids if full else frozenset(self._dirty)
        gone = sorted(queue_id for queue_id in wanted if queue_id not in cut.rows)
        self._gone = (self._gone - wanted).union(gone)
        self._full = False
        self._dirty.clear()
        self._total = tick.total
        return wire.frame(
            self._send(now),
            full=full,
            topic=self.topic,
            version=cut.version,
            at=cut.at,
            now=wall,
            rows=cut.pick(wanted),
            gone=gone,
            total=tick.total,
            as_of=tick.as_of,
            ends=next((cut.ends[i] for i in self.ids if i in cut.ends), None) if self.single else None,
        )

    def _send(self, now: float) -> int:
        self._seq += 1
        self._flying.append((self._seq, now))
        self._last = now
        return self._seq
