"""Who is watching: the sockets of this process, and how the monitor's ticks reach them.

The monitor's thread hands a tick to each event loop at most once at a time; what comes in between is merged, so a busy
loop never has a queue of ticks before it. Frames never pass through a channel layer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Protocol

from pqadmin.live.cuts import Tick
from pqadmin.live.guard import Pass
from pqadmin.live.slot import Slot

#: Seconds between looks at beats, patience and sessions.
ROUND = 0.5
#: The server goes away and is back soon.
RESTARTING = 1012
#: The client does not acknowledge.
TOO_SLOW = 4408


class Watcher(Protocol):
    """One open socket, as the hub sees it. Used in its own event loop only."""

    slot: Slot
    badge: Pass

    def wake(self) -> None:
        """Look at the slot and send what is due."""

    def end(self, code: int) -> None:
        """Close the socket with this code."""


Guard = Callable[[Collection[Watcher]], Awaitable[None]]


class Desk:
    """The sockets of one event loop. Everything but `post` runs in that loop."""

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop, guard: Guard | None) -> None:
        self.loop = loop
        self.watchers: set[Watcher] = set()
        self._hub = hub
        self._guard = guard
        self._guarding: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()
        self._changed: set[int] = set()
        self._new: set[int] = set()
        self._posted = False

    def post(self, changed: Collection[int] = (), new: Collection[int] = ()) -> None:
        """Have the loop look at the hub's newest tick soon. From any thread; raises RuntimeError if it is closed."""
        with self._lock:
            self._changed.update(changed)
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
            watcher.end(code)

    def _deliver(self) -> None:
        with self._lock:
            changed, new = self._changed, self._new
            self._changed, self._new, self._posted = set(), set(), False
        trouble = self._hub.trouble
        grown = False
        for watcher in self.watchers:
            slot = watcher.slot
            if trouble is None:
                slot.recover()
            else:
                slot.fail(*trouble)
            if new and slot.grow:
                slot.add(new)
                grown = True
            if changed:
                slot.mark(changed)
            watcher.wake()
        if grown:
            self._hub.screens_changed()

    def _round(self) -> None:
        self._timer = self.loop.call_later(ROUND, self._round)
        now = self.loop.time()
        for watcher in tuple(self.watchers):
            if watcher.slot.too_slow(now):
                watcher.end(TOO_SLOW)
            else:
                watcher.wake()
        if self._guard is not None and (self._guarding is None or self._guarding.done()):
            self._guarding = self.loop.create_task(self._check(self._guard))

    async def _check(self, guard: Guard) -> None:
        await guard(tuple(self.watchers))


class Hub:
    """All sockets of the process. Thread-safe."""

    def __init__(self, *, on_screens: Callable[[], None], guard: Guard | None = None) -> None:
        self.tick: Tick | None = None
        #: (since, message) while the store can not be read.
        self.trouble: tuple[float, str] | None = None
        self._on_screens = on_screens
        self._guard = guard
        self._lock = threading.Lock()
        self._desks: dict[asyncio.AbstractEventLoop, Desk] = {}
        self._screens: dict[Watcher, tuple[frozenset[int], bool]] = {}

    def __len__(self) -> int:
        """Return the number of sockets."""
        return len(self._screens)

    def join(self, watcher: Watcher) -> None:
        """Take in a socket. In its event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            desk = self._desks.get(loop)
            if desk is None:
                desk = self._desks[loop] = Desk(self, loop, self._guard)
            desk.watchers.add(watcher)
            self._screens[watcher] = (frozenset(), False)
        if self.trouble is not None:
            watcher.slot.fail(*self.trouble)
        desk.begin()

    def leave(self, watcher: Watcher) -> None:
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

    def screens_changed(self, watcher: Watcher | None = None) -> None:
        """Note what is on the screens now; the monitor reads it soon. In the socket's event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            desk = self._desks.get(loop)
            for each in desk.watchers if desk and watcher is None else (watcher,):
                if each in self._screens:
                    self._screens[each] = (each.slot.screen, each.slot.single)
        self._on_screens()

    def screens(self) -> list[frozenset[int]]:
        """Return the queues on each screen."""
        with self._lock:
            return [ids for ids, _ in self._screens.values()]

    def single(self) -> frozenset[int]:
        """Return the queues whose own page is open."""
        with self._lock:
            return frozenset().union(*(ids for ids, single in self._screens.values() if single))

    def publish(self, tick: Tick, changed: Collection[int], new: Collection[int] = ()) -> None:
        """Hand a tick to every loop."""
        self.tick, self.trouble = tick, None
        self._post(changed, new)

    def hold(self, as_of: int) -> None:
        """Note how old the sum of the newest tick is by now; the next frame or beat tells it."""
        if self.tick is not None and self.tick.as_of != as_of:
            self.tick = replace(self.tick, as_of=as_of)

    def fail(self, since: float, message: str) -> None:
        """Tell every socket that the store can not be read since `since` (seconds since the epoch)."""
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

    def _post(self, changed: Collection[int] = (), new: Collection[int] = ()) -> None:
        for desk in self._all_desks():
            try:
                desk.post(changed, new)
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
