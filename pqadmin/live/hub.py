"""The hub: the sockets of this process, and how the monitor's ticks reach them.

The monitor's thread hands a tick to each event loop at most once at a time; what comes in between is merged, so a busy
loop never has a queue of ticks before it. Frames never pass through a channel layer.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.live.frames import Tick
from pqadmin.live.slot import Slot
from pqadmin.live.sockets import Socket, isolate
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Seconds between looks at beats, patience and sessions.
ROUND = 0.5
#: Sockets that are served before the loop does something else.
AT_ONCE = 50
NOTHING_NEW: Mapping[int, str] = MappingProxyType({})
#: The server goes away and is back soon.
RESTARTING = 1012
#: The client does not acknowledge.
TOO_SLOW = 4408


Guard = Callable[[Collection[Socket]], Awaitable[None]]


class Desk:
    """The sockets of one event loop. Everything but `post` runs in that loop."""

    def __init__(self, hub: "Hub", loop: asyncio.AbstractEventLoop, guard: Guard | None) -> None:
        self.loop = loop
        self.watchers: set[Socket] = set()
        self._hub = hub
        self._guard = guard
        self._guarding: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()
        self._new: dict[int, str] = {}
        self._posted = False
        #: Sockets that are still to be woken, the seconds spent so far, and those of the last tick.
        self._turn: list[Socket] = []
        self._spent = 0.0
        self.cost = 0.0

    def post(self, new: Mapping[int, str] = NOTHING_NEW) -> None:
        """Have the loop look at the hub's newest tick soon. From any thread; raises RuntimeError if it is closed."""
        with self._lock:
            self._new.update(new)
            if self._posted:
                return
            self._posted = True
        self.loop.call_soon_threadsafe(self._deliver)

    def begin(self) -> None:
        """Start the rounds with the first socket."""
        if self._timer is None:
            self._timer = self.loop.call_later(ROUND, self._round)

    def end(self) -> None:
        """Stop the rounds after the last socket."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._guarding is not None:
            self._guarding.cancel()
            self._guarding = None

    def close_all(self, code: int) -> None:
        """Close every socket of this loop."""
        for watcher in tuple(self.watchers):
            isolate(watcher, lambda one: one.end(code))

    def _deliver(self) -> None:
        with self._lock:
            new, self._new, self._posted = self._new, {}, False
        trouble = self._hub.trouble
        #: Of the new queues alone, once for all sockets of one sight: all names would take long just when many grow.
        seen: dict[Scope, frozenset[int]] = {}
        grown = False

        def tell(watcher: Socket) -> None:
            nonlocal grown
            slot = watcher.slot
            if trouble is None:
                slot.recover()
            else:
                slot.fail(*trouble)
            if new and slot.grow:
                if slot.sight not in seen:
                    sees = slot.sight.teller(Right.READ)
                    seen[slot.sight] = frozenset(queue_id for queue_id, name in new.items() if sees(name))
                slot.add(seen[slot.sight])
                grown = True

        for watcher in self.watchers:
            isolate(watcher, tell)
        self._turn = list(self.watchers)
        self._spent = 0.0
        self._wake_some()
        if grown:
            self._hub.screens_changed()

    def _wake_some(self) -> None:
        """Wake some sockets and let the loop do other things before the next ones."""
        began = self.loop.time()
        some, self._turn = self._turn[-AT_ONCE:], self._turn[:-AT_ONCE]
        for watcher in some:
            isolate(watcher, lambda one: one.wake())
        self._spent += self.loop.time() - began
        if self._turn:
            self.loop.call_soon(self._wake_some)
        else:
            self.cost = self._spent

    def _round(self) -> None:
        self._timer = self.loop.call_later(ROUND, self._round)
        # First: rights are checked whatever happens to frames.
        if self._guard is not None and (self._guarding is None or self._guarding.done()):
            self._guarding = self.loop.create_task(self._check(self._guard))
        now = self.loop.time()

        def look_at(watcher: Socket) -> None:
            if watcher.slot.too_slow(now):
                watcher.end(TOO_SLOW)
            else:
                watcher.wake()

        for watcher in tuple(self.watchers):
            isolate(watcher, look_at)

    async def _check(self, guard: Guard) -> None:
        try:
            await guard(tuple(self.watchers))
        except Exception as error:  # the next round checks again
            _limited.warn(
                type(error),
                "The rights of sockets were not checked: %s: %s. It is tried again soon.",
                type(error).__name__,
                error,
                exc_info=True,
            )


class Shown(NamedTuple):
    """What one socket has on its screen."""

    ids: frozenset[int]
    single: bool
    sight: Scope
    labels: frozenset[str]


class Hub:
    """All sockets of the process. Thread-safe."""

    def __init__(
        self,
        *,
        on_screens: Callable[[], None],
        guard: Guard | None = None,
    ) -> None:
        self.tick: Tick | None = None
        #: The oldest reading in each sum by now, milliseconds since the epoch; grows though the sum stays.
        self.as_of: Mapping[Scope, int] = {}
        #: (since, message) while the store cannot be read.
        self.trouble: tuple[float, str] | None = None
        self._on_screens = on_screens
        self._guard = guard
        self._lock = threading.Lock()
        self._desks: dict[asyncio.AbstractEventLoop, Desk] = {}
        self._screens: dict[Socket, Shown] = {}

    def __len__(self) -> int:
        """Return the number of sockets."""
        return len(self._screens)

    def join(self, watcher: Socket) -> None:
        """Take in a socket. In its event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            desk = self._desks.get(loop)
            if desk is None:
                desk = self._desks[loop] = Desk(self, loop, self._guard)
            desk.watchers.add(watcher)
            self._screens[watcher] = _shown(watcher.slot)
        if self.trouble is not None:
            watcher.slot.fail(*self.trouble)
        desk.begin()

    def leave(self, watcher: Socket) -> None:
        """Let go of a socket. In its event loop; a second call does nothing."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._screens.pop(watcher, None)
            desk = self._desks.get(loop)
            if desk is None:
                return
            desk.watchers.discard(watcher)
            if not desk.watchers:
                del self._desks[loop]
                desk.end()
        self._on_screens()

    def screens_changed(self, watcher: Socket | None = None) -> None:
        """Note what is on the screens now; the monitor reads it soon. In the socket's event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            desk = self._desks.get(loop)
            for each in desk.watchers if desk and watcher is None else (watcher,):
                if each in self._screens:
                    self._screens[each] = _shown(each.slot)
        self._on_screens()

    def screens(self) -> list[Shown]:
        """Return what is on each screen."""
        with self._lock:
            return list(self._screens.values())

    def publish(self, tick: Tick, new: Mapping[int, str] = NOTHING_NEW) -> None:
        """Hand a tick to every loop, and the names of queues that are new."""
        self.tick, self.trouble = tick, None
        self._post(new)

    @property
    def cost(self) -> float:
        """Return the seconds that serving every socket with the last tick took."""
        with self._lock:
            return sum(desk.cost for desk in self._desks.values())

    def fail(self, since: float, message: str) -> None:
        """Tell every socket that the store cannot be read since `since` (seconds since the epoch)."""
        if self.trouble != (since, message):
            self.trouble = (since, message)
            self._post()

    def close_all(self, code: int) -> None:
        """Close every socket, from any thread; returns before they are closed."""
        for desk in self._all_desks():
            try:
                desk.loop.call_soon_threadsafe(desk.close_all, code)
            except RuntimeError:
                self._drop(desk)

    def _post(self, new: Mapping[int, str] = NOTHING_NEW) -> None:
        for desk in self._all_desks():
            try:
                desk.post(new)
            except RuntimeError:  # the loop was closed with sockets in it
                self._drop(desk)

    def _drop(self, desk: Desk) -> None:
        with self._lock:
            self._desks.pop(desk.loop, None)
            for watcher in desk.watchers:
                self._screens.pop(watcher, None)

    def _all_desks(self) -> list[Desk]:
        with self._lock:
            return list(self._desks.values())


def _shown(slot: Slot) -> Shown:
    return Shown(slot.screen, slot.single, slot.sight, slot.labels)
