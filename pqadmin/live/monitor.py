"""The monitor: the one reader of the store in this process, for all screens and pages.

Its thread starts with the first viewer and ends after the last. It sleeps until the store says that something on a
screen changed, reads all screens in one transaction (a consistent cut), at most `frame_rate` times a second, and reads
nothing while nothing changes. Only attached queues on a screen are polled, because no watch reports writes of other
programs. Pages ask the monitor for what was last known.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from pqadmin.accounts.scope import Scope
from pqadmin.live import guard
from pqadmin.live.board.board import Board
from pqadmin.live.board.overviews import EVERYTHING, Overview
from pqadmin.live.change_waiter import Waiter
from pqadmin.live.hub import RESTARTING, Hub
from pqadmin.live.off_screen_reads import OffScreenReads
from pqadmin.live.screens import Screens
from pqadmin.live.threads import Start, start_thread, try_start
from pqadmin.store import get_store, store_now
from queues import Store
from queues.errors import StoreError

logger = logging.getLogger(__name__)

#: Frames a second at most.
FRAME_RATE = 10.0
#: Seconds between frames at most, and how many times what serving every socket with one took.
SLOWEST, SERVING_SHARE = 0.2, 2.0
#: Seconds the thread sleeps at most: rates fall and ages are checked even when nothing changes.
NAP = 1.0
#: Seconds between two looks at attached queues on a screen: no watch reports writes of other programs.
POLL_EVERY = 0.1
#: Seconds between chunks of a round, and between tries while the store cannot be read.
SWEEP_STEP, RETRY = 0.05, 0.5
#: A page reads the store again only after this many times what the last reading took (seconds, at most).
PAGE_SHARE, PAGE_PAUSE = 10.0, 5.0
#: Seconds that the very first page waits for readings, and that a reading behind a page's back rests after each chunk.
FIRST_PAGE, BEHIND_REST = 0.8, 0.01
#: The message for what is no error of the store.
OUR_OWN = "fresh-internal"
#: More queues than this are read and added up for a page behind its back; it shows what was last known.
PAGE_QUEUES = 2_000


class Follower(Protocol):
    """Observer of the board after each turn of the monitor, such as the feed of the API's events."""

    @property
    def wanted(self) -> bool:
        """Whether the monitor has to run for it."""

    def look(self, store: Store, now: float, *, whole: bool = True) -> bool:
        """Look at the board, in the monitor's thread, and return whether to look again at once.

        `now` is in seconds of the monitor's clock. `whole` says that no round over all queues is under way.
        """


class Monitor:
    """Reads the store for all screens and pages. Thread-safe."""

    def __init__(
        self,
        open_store: Callable[[], Store] = get_store,
        *,
        frame_rate: float = FRAME_RATE,
        clock: Callable[[], float] = time.monotonic,
        start: Start = start_thread,
    ) -> None:
        self._open = open_store
        self._pause = 1.0 / frame_rate
        self._clock = clock
        self._start = start
        self._state = threading.Lock()
        self._reading = threading.Lock()
        self._page = threading.Lock()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        #: Every queue was read once.
        self._complete = threading.Event()
        self._signal = threading.Event()
        self._checked = 0.0
        self._refreshed, self._refresh_pause = float("-inf"), 0.0
        #: How many acts there were, and how many before the last reading began.
        self._acts = self._acts_read = 0
        #: What follows the first whole reading.
        self._then: Callable[[], object] | None = None
        self.board = Board()
        self.hub = Hub(on_screens=self._look_again, on_round=self.keep_running, guard=guard.check)
        self._screens = Screens(self.board, clock)
        self._off_screen = OffScreenReads(self.board, clock)
        self._follower: Follower | None = None
        self._seen = Waiter("pqadmin-watch-screens", self._signal.set, start=start)
        self._unseen = Waiter("pqadmin-watch-rest", self._signal.set, start=start)

    # For pages

    def overview(self, scope: Scope = EVERYTHING) -> Overview:
        """Return every queue that a scope sees as last known, at once.

        Of very many queues it is worked out behind the page's back, which gets what was there before.
        """
        last, due = self.board.last(self._clock(), scope)
        if last is None or len(last.rows) <= PAGE_QUEUES:
            return self.board.overview(self._clock(), store_now(), scope)
        if due and self._working.acquire(blocking=False):
            self._start_behind(partial(self._work_out, scope), "pqadmin-overview", self._working)
        return last

    def _start_behind(self, work: Callable[[], None], name: str, held: threading.Lock) -> None:
        """Start a thread that releases a lock at its end; without a thread it is released here."""
        if try_start(self._start, work, name) is None:
            held.release()

    def _work_out(self, scope: Scope) -> None:
        try:
            self.board.overview(self._clock(), store_now(), scope)
        finally:
            self._working.release()

    def refresh(self) -> None:
        """Read what changed, unless that was done a moment ago; raises the store's errors.

        The first call of all waits for a while: what was not read by then is missing, and said to be. Later ones take
        a share of the time at most, and with very many queues the reading is done behind the page's back.
        """
        acted, few = self._acts != self._acts_read, len(self.board.ids) <= PAGE_QUEUES
        if not self._page.acquire(timeout=FIRST_PAGE if acted and few else 0.0):
            # Another thread reads already; only the first reading is waited for, as nothing else can be shown.
            if self._complete.wait(FIRST_PAGE) or not self.board.empty:
                return
            self._page.acquire()
        try:
            recent = self._acts == self._acts_read and self._clock() - self._refreshed < self._refresh_pause
            done = recent or (few and self._refresh(within=FIRST_PAGE if self.board.empty else float("inf")))
        except BaseException:
            self._page.release()
            raise
        if done:
            self._page.release()
        else:
            self._start_behind(self._refresh_behind, "pqadmin-refresh", self._page)

    def outdated(self) -> None:
        """Have the next page read what changed, because of an action."""
        self._acts += 1

    def warm_up(self, then: Callable[[], object] | None = None) -> None:
        """Read every queue in the background, at the server's start.

        `then` is called once, after the first such reading that is finished: a store that is away now is read later.
        """
        self._then = then
        if self._page.acquire(blocking=False):
            self._start_behind(self._refresh_behind, "pqadmin-warm-up", self._page)

    # For sockets

    def read_directory(self) -> None:
        """Read the list of all queues if it changed; raises the store's errors."""
        with self._reading:
            self._screens.read_directory(self._open())

    def follow(self, follower: Follower) -> None:
        """Have a follower look at the board for as long as it is wanted."""
        self._follower = follower
        self._look_again()

    def keep_running(self) -> None:
        """Try again to start the thread where that failed before; costs nothing while it runs."""
        if self._thread is None and self._wanted:
            self._look_again()

    @property
    def closed(self) -> bool:
        """Return whether the process is going down: no new viewers."""
        return self._ending.is_set()

    @property
    def running(self) -> bool:
        """Return whether the thread is at work."""
        return self._thread is not None

    @property
    def checked(self) -> float:
        """When the screens were last known to be up to date, seconds since the epoch."""
        return self._checked

    def shutdown(self, timeout: float = 5.0) -> None:
        """Close every socket, interrupt the store's waits and end the thread. No way back."""
        self._ending.set()
        self.hub.close_all(RESTARTING)
        thread = self._thread
        self._signal.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _look_again(self) -> None:
        with self._state:
            if self._thread is None and self._wanted and not self.closed:
                self._thread = try_start(self._start, self._run, "pqadmin-monitor")
                if self._thread is None and self.hub.trouble is None:
                    self.hub.fail(store_now().timestamp(), OUR_OWN)
        self._signal.set()

    @property
    def _wanted(self) -> bool:
        return bool(len(self.hub)) or (self._follower is not None and self._follower.wanted)

    # The thread

    def _run(self) -> None:
        began = store_now().timestamp()
        failing_since: float | None = None
        while self._go_on():
            try:
                self._turn()
                failing_since = None
            except Exception as error:
                # A code, where it is our own mistake: each reader's page has it in the reader's language.
                message = error.words if isinstance(error, StoreError) else OUR_OWN
                if failing_since is None:
                    failing_since = max(
                        began, self._checked
                    )  # numbers are as old as that, however long it took to fail
                    logger.warning(
                        "live frames stopped: %s", error, exc_info=None if isinstance(error, StoreError) else error
                    )
                self._screens.forget()
                self.hub.fail(failing_since, message)
                self._rest(RETRY)

    def _go_on(self) -> bool:
        with self._state:
            if self.closed or not self._wanted:
                # The next viewer shall not get an old frame, nor the word of an outage that may be over.
                self._thread = self.hub.tick = self.hub.trouble = None
                self._screens.forget()
                self._off_screen.forget()
                self._seen.stop()
                self._unseen.stop()
                return False
            return True

    def _turn(self) -> None:
        """Read and publish what changed, then wait for the next change, viewer or second."""
        began = self._clock()
        self._signal.clear()
        with self._reading:
            store = self._open()
            if self._seen.take():
                self._screens.changed()
            else:
                self._screens.held(store.now())
            if self._unseen.take():
                self._off_screen.changed()
            self._screens.poll(store)
            tick = self._screens.read(store, self.hub.screens())
            self._checked = store_now().timestamp()
            self.hub.as_of = self._screens.as_of
            if tick is not None:
                self.hub.publish(tick)
            self._off_screen.step(store, self._screens.ids)
            whole = not self._off_screen.busy
            unfinished = self._follower is not None and self._follower.look(store, self._clock(), whole=whole)
            for waiter, watched in ((self._seen, self._screens.watched), (self._unseen, self._off_screen.watched)):
                if watched is not None:
                    waiter.arm(store, watched)
        nap = SWEEP_STEP if self._off_screen.busy or unfinished else NAP
        polls = bool(self._screens.attached)
        # A look that found nothing is no frame: the next one may come sooner.
        if tick is not None or not polls:
            # More, up to a limit, where serving all sockets with one takes long.
            between = max(self._pause, min(SLOWEST, SERVING_SHARE * self.hub.cost))
            self._rest(between - (self._clock() - began))
        self._signal.wait(max(0.0, min(nap, POLL_EVERY - (self._clock() - began))) if polls else nap)

    def _rest(self, seconds: float) -> None:
        """Sleep, but not through the end."""
        if seconds > 0:
            self._ending.wait(seconds)

    # Reading for pages

    def _refresh(self, *, within: float = float("inf"), rest: float = 0.0) -> bool:
        """Read what changed; return False if that was not done `within` so many seconds.

        Between chunks it rests, in favor of frames and pages.
        """
        began, acts = self._clock(), self._acts
        self.read_directory()
        for chunk in self._off_screen.everything():
            if self._clock() - began >= within:
                return False
            with self._reading:
                self._off_screen.read(self._open(), chunk)
            self._rest(rest)
        self._complete.set()
        if acts != self._acts_read:
            self._acts_read = acts
            self.board.hurry()
        took = self._clock() - began
        self._refreshed, self._refresh_pause = self._clock(), min(PAGE_PAUSE, PAGE_SHARE * took)
        return True

    def _refresh_behind(self) -> None:
        try:
            self._refresh(rest=BEHIND_REST)
            self.board.overview(self._clock(), store_now())
            then, self._then = self._then, None
            if then is not None:
                then()
        except StoreError as error:
            if not self.closed:
                logger.warning("the store cannot be read: %s", error)
        finally:
            self._page.release()


_monitor: Monitor | None = None
_making = threading.Lock()


def get_monitor() -> Monitor:
    """Return the process's one monitor."""
    global _monitor
    with _making:
        if _monitor is None:
            _monitor = Monitor()
        return _monitor


def shutdown() -> None:
    """Close every live socket and stop the monitor, if there is one. For the server's way down."""
    if _monitor is not None:
        _monitor.shutdown()
