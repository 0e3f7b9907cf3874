"""Subscription of one socket: what is on its screen. The newest state wins, at most two frames are under way.

Pure bookkeeping in a single event loop; time is passed in. Whatever a client does, a subscription holds no more than
the ids of one screen and two sequence numbers.
"""

from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pqadmin.accounts.scope import Scope
from pqadmin.live import frame_json
from pqadmin.live.board.overviews import EVERYTHING, sight_of
from pqadmin.live.requests import MAX_SCREEN, OVERVIEW, Watch
from pqadmin.live.ticks import NEVER, Tick, view_of

#: Frames sent and not yet acknowledged.
IN_FLIGHT = 2
#: Seconds without a frame after which a beat says that nothing changed; the same for a hidden tab.
BEAT, BEAT_HIDDEN = 2.0, 10.0
#: Seconds that a client may take to acknowledge before its socket is given up.
PATIENCE = 30.0


class Shown(NamedTuple):
    """What one socket has on its screen."""

    ids: frozenset[int]
    single: bool
    sight: Scope
    labels: frozenset[str]
    #: The filter of an overview.
    wanted: str = ""


class Subscription:
    """The queues on one socket's screen, and what it must still receive."""

    def __init__(self, now: float, scope: Scope = EVERYTHING) -> None:
        self.topic: str | None = None
        self.grow = False
        self.hidden = False
        self.sight = sight_of(scope)
        self._view = view_of("", frozenset(), frozenset(), self.sight)
        #: The tick of the last frame.
        self._since = NEVER
        #: To be told in the next frame, changed or not.
        self._owed: frozenset[int] = frozenset()
        self._gone: frozenset[int] = frozenset()
        #: What passed the filter when that was looked at last.
        self._matching: frozenset[int] | None = None
        self._seq = 0
        self._flying: deque[tuple[int, float]] = deque()
        self._last = now
        self._trouble: tuple[float, str] | None = None
        self._told_trouble = False

    @property
    def ids(self) -> frozenset[int]:
        """Return the queues on the screen."""
        return self._view.ids

    @property
    def shown(self) -> Shown:
        """What must be read for this socket now: nothing for a hidden tab."""
        view = self._view
        if self.hidden:
            return Shown(frozenset(), self.single, self.sight, frozenset())
        return Shown(view.ids, self.single, self.sight, view.labels, view.wanted)

    @property
    def single(self) -> bool:
        """Return whether the screen is one queue's page, with the items of both its ends."""
        return self.topic is not None and self.topic != OVERVIEW

    @property
    def filtered(self) -> bool:
        """Return whether the screen shows the queues that pass a filter."""
        return bool(self._view.wanted)

    def watch(self, watch: Watch, ids: frozenset[int], lost: frozenset[int] = frozenset()) -> None:
        """Show another topic or other queues: the next frame is a whole one, which tells that `lost` ones are gone."""
        self.topic, self.grow, self._gone, self._matching = watch.topic, watch.grow, frozenset(), None
        self._view = view_of(watch.topic, ids, frozenset(watch.groups), self.sight, watch.filter)
        self.resync()
        self._owed = lost

    def see(self, scope: Scope, in_sight: frozenset[int]) -> None:
        """Go on with another scope, which sees these queues: what it does not see is gone."""
        if sight_of(scope) == self.sight:
            return
        self.sight, view = sight_of(scope), self._view
        lost = view.ids - in_sight - self._gone
        self._view = view_of(view.topic, view.ids & in_sight, view.labels, self.sight, view.wanted)
        self.resync()
        self._owed, self._matching = lost, None
        if self.grow and not self.filtered:
            self.add(in_sight)

    def resync(self) -> None:
        """Owe a whole frame."""
        self._since = NEVER

    def show(self, visible: bool) -> None:
        """Suspend a hidden tab, or wake it with a whole frame."""
        if self.hidden and visible:
            self.resync()
        self.hidden = not visible

    def add(self, ids: AbstractSet[int]) -> None:
        """Put new queues on an overview's screen, as far as there is room. Queues that are gone make it."""
        shown = self._view.ids
        fresh = sorted(ids - shown)
        if len(shown) + len(fresh) > MAX_SCREEN:
            shown -= self._gone
            self._gone = frozenset()
        fresh = fresh[: max(0, MAX_SCREEN - len(shown))]
        view = self._view
        self._view = view_of(view.topic, shown.union(fresh), view.labels, self.sight, view.wanted)
        self._owed |= frozenset(fresh)

    def match(self, tick: Tick | None) -> bool:
        """Put the queues that pass the screen's filter on it, unless they are too many. Return whether some came."""
        if tick is None or not (self.grow and self.filtered) or self.hidden:
            return False
        found = tick.matching(self._view)
        if found is None or found is self._matching:
            return False
        self._matching = found
        fresh = found - self._view.ids if len(found) <= MAX_SCREEN else frozenset()
        if fresh:
            self.add(fresh)
        return bool(fresh)

    @property
    def waits(self) -> bool:
        """Return whether nothing may be sent before something is acknowledged."""
        return len(self._flying) >= IN_FLIGHT

    def ack(self, seq: int) -> bool:
        """Note that the client has shown everything up to a frame. Return whether that frame was under way."""
        if self._flying and self._flying[0][0] == seq:
            self._flying.popleft()
            return True
        under_way = any(flying == seq for flying, _ in self._flying)
        while self._flying and self._flying[0][0] <= seq:
            self._flying.popleft()
        return under_way

    def sent(self, seq: int) -> bool:
        """Return whether a frame of this number was ever sent."""
        return seq <= self._seq

    def too_slow(self, now: float) -> bool:
        """Return whether the oldest frame under way has waited too long for its acknowledgement."""
        return bool(self._flying) and now - self._flying[0][1] > PATIENCE

    def fail(self, since: float, message: str) -> None:
        """Owe a message that the store cannot be read since `since` (seconds since the epoch)."""
        if self._trouble != (since, message):
            self._trouble, self._told_trouble = (since, message), False

    def recover(self) -> None:
        """Owe a whole frame after trouble."""
        if self._trouble is not None:
            self._trouble = None
            self.resync()

    def take(self, tick: Tick | None, *, now: float, wall: float, as_of: int = 0) -> tuple[bytes, bytes] | None:
        """Return the next message to send, in two parts, the second shared by many.

        `as_of` (ms) is the oldest reading in the sums. None when nothing is due or two are under way already.
        """
        if self.waits:
            return None
        if self._trouble is not None:
            if self._told_trouble and now - self._last < self._interval:
                return None
            self._told_trouble = True
            since, message = self._trouble
            return frame_json.trouble(self._send(now), now=wall, since=since, message=message).encode(), b""
        if self.topic is None or self.hidden or tick is None or (tick.number == self._since and not self._owed):
            return None
        told = tick.tell(self._view, self._since, self._owed)
        if told is None:
            return None
        self._since = tick.number
        if not told.body:
            return None
        if told.gone or self._gone:
            self._gone = (self._gone - told.rows) | told.gone
        self._owed = frozenset()
        return frame_json.head(self._send(now), now=wall, as_of=as_of), told.body

    def beat(
        self,
        *,
        now: float,
        wall: float,
        checked: float,
        version: int,
        standing: Callable[[], frame_json.Standing],
        as_of: int,
    ) -> bytes | None:
        """Return the message that nothing changed until `checked`, if one is due; `standing` is asked only then."""
        if self.waits or self.topic is None or self._trouble is not None or now - self._last < self._interval:
            return None
        seq = self._send(now)
        return frame_json.beat(
            seq, now=wall, checked=checked, version=version, standing=standing(), as_of=as_of
        ).encode()

    @property
    def _interval(self) -> float:
        return BEAT_HIDDEN if self.hidden else BEAT

    def _send(self, now: float) -> int:
        self._seq += 1
        self._flying.append((self._seq, now))
        self._last = now
        return self._seq
