"""The hub: the sockets of this process, and how the monitor's ticks reach them.

One event loop serves them all. The monitor's thread hands it a tick at most once at a time; what comes in between is
merged, so a busy loop never has a queue of ticks before it. Frames never pass through a channel layer.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import MappingProxyType

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.live.sockets import Socket, isolate
from pqadmin.live.subscription import Shown
from pqadmin.live.ticks import Tick
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Seconds between looks at beats, patience and sessions.
ROUND = 0.5
#: Sockets that are served before the loop does something else.
AT_ONCE = 50
#: The server goes away and is back soon.
RESTARTING = 1012
#: The client does not acknowledge.
TOO_SLOW = 4408


Guard = Callable[[Collection[Socket]], Awaitable[None]]


class Hub:
    """All sockets of the process. Thread-safe but for `join`, `leave` and `screens_changed`, which are the loop's."""

    def __init__(
        self, *, on_screens: Callable[[], None], on_round: Callable[[], None], guard: Guard | None = None
    ) -> None:
        self.tick: Tick | None = None
        #: The oldest reading in each sum by now, milliseconds since the epoch; grows though the sum stays.
        self.as_of: Mapping[Scope, int] = {}
        #: (since, message) while the store cannot be read.
        self.trouble: tuple[float, str] | None = None
        #: The seconds that serving every socket with the last tick took.
        self.cost = 0.0
        self._on_screens = on_screens
        self._on_round = on_round
        self._guard = guard
        self._guarding: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()
        self._screens: dict[Socket, Shown] = {}
        self._new: dict[int, str] = {}
        self._posted = False
        #: Sockets that are still to be woken for this tick, and the seconds spent so far.
        self._turn: list[Socket] = []
        self._spent = 0.0

    def __len__(self) -> int:
        """Return the number of sockets."""
        return len(self._screens)

    def join(self, watcher: Socket) -> None:
        """Take in a socket; the first one begins the rounds."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._loop is not loop:
                self._loop, self._timer = loop, None
                self._new, self._posted = {}, False
            self._screens[watcher] = watcher.subscription.shown
        if self.trouble is not None:
            watcher.subscription.fail(*self.trouble)
        if self._timer is None:
            self._timer = loop.call_later(ROUND, self._round)

    def leave(self, watcher: Socket) -> None:
        """Let go of a socket; the last one ends the rounds. A second call does nothing."""
        with self._lock:
            self._screens.pop(watcher, None)
        if not self._screens:
            for running in (self._timer, self._guarding):
                if running is not None:
                    running.cancel()
            self._timer = self._guarding = None
        self._on_screens()

    def screens_changed(self, watcher: Socket | None = None) -> None:
        """Note what is on the screens now; the monitor reads it soon."""
        with self._lock:
            for each in self._screens if watcher is None else (watcher,):
                if each in self._screens:
                    self._screens[each] = each.subscription.shown
        self._on_screens()

    def screens(self) -> list[Shown]:
        """Return what is on each screen."""
        with self._lock:
            return list(self._screens.values())

    def publish(self, tick: Tick) -> None:
        """Hand out a tick."""
        self.tick, self.trouble = tick, None
        self._post(tick.new)

    def fail(self, since: float, message: str) -> None:
        """Tell every socket that the store cannot be read since `since` (seconds since the epoch)."""
        if self.trouble != (since, message):
            self.trouble = (since, message)
            self._post()

    def close_all(self, code: int) -> None:
        """Close every socket; returns before they are closed."""
        self._call(lambda: self._each(lambda watcher: watcher.end(code)))

    def _post(self, new: Mapping[int, str] = MappingProxyType({})) -> None:
        """Have the loop look at the newest tick soon."""
        with self._lock:
            if not self._screens:  # there is no socket to tell; the next one reads the whole list of queues
                return
            self._new.update(new)
            if self._posted:
                return
            self._posted = True
        self._call(self._deliver)

    def _call(self, do: Callable[[], None]) -> None:
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(do)
        except RuntimeError:  # the loop was closed with sockets in it
            with self._lock:
                self._screens.clear()
                self._new, self._posted = {}, False

    def _each(self, do: Callable[[Socket], object]) -> None:
        for watcher in tuple(self._screens):
            isolate(watcher, do)

    def _deliver(self) -> None:
        with self._lock:
            new, self._new, self._posted = self._new, {}, False
        trouble = self.trouble
        #: Of the new queues alone, once for all sockets of one sight: all names would take long just when many grow.
        seen: dict[Scope, frozenset[int]] = {}

        def tell(watcher: Socket) -> None:
            subscription = watcher.subscription
            if trouble is None:
                subscription.recover()
            else:
                subscription.fail(*trouble)
            if new and subscription.grow and not subscription.filtered:
                if subscription.sight not in seen:
                    sees = subscription.sight.teller(Right.READ)
                    seen[subscription.sight] = frozenset(queue_id for queue_id, name in new.items() if sees(name))
                subscription.add(seen[subscription.sight])

        self._each(tell)
        self._turn, self._spent = list(self._screens), 0.0
        self._wake_some()
        if seen:
            self.screens_changed()

    def _wake_some(self) -> None:
        """Wake some sockets and let the loop do other things before the next ones."""
        began = time.monotonic()
        some, self._turn = self._turn[-AT_ONCE:], self._turn[:-AT_ONCE]
        for watcher in some:
            isolate(watcher, lambda one: one.wake())
        self._spent += time.monotonic() - began
        if self._turn:
            asyncio.get_running_loop().call_soon(self._wake_some)
        else:
            self.cost = self._spent

    def _round(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(ROUND, self._round)
        # First: rights are checked whatever happens to frames.
        if self._guard is not None and (self._guarding is None or self._guarding.done()):
            self._guarding = loop.create_task(self._check(self._guard))
        self._on_round()
        now = loop.time()
        self._each(lambda one: one.end(TOO_SLOW) if one.subscription.too_slow(now) else one.wake())

    async def _check(self, guard: Guard) -> None:
        try:
            await guard(tuple(self._screens))
        except Exception as error:  # the next round checks again
            _limited.warn(
                type(error),
                "The rights of sockets were not checked: %s: %s. It is tried again soon.",
                type(error).__name__,
                error,
                exc_info=True,
            )
