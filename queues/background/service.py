"""Upkeep: sweeping and recording of histories in the background, by one elected process.

Each process that offers it is a candidate. The elected one sweeps and records; the rest wait. Stopping releases the
role, so that another process takes over at once; when the elected process dies, another one does within seconds.
"""

import logging
import threading
from collections.abc import Callable

from queues.background.leader import SECONDS, Candidate
from queues.background.sweeper import Sweeper, Swept
from queues.context import StoreContext
from queues.errors import ForkedStore, QueueError, StoreClosed, StoreError
from queues.history.recorder import Recorder
from queues.serving.leadership import UPKEEP

log = logging.getLogger("queues.background.service")

#: Seconds to rest after the store failed, and between two calls to a thread that sleeps on.
_AFTER_TROUBLE, _NUDGE = 1.0, 0.02


class Upkeep:
    """One process's offer to sweep a store. Start it once, and stop it before the store is closed."""

    def __init__(
        self,
        context: StoreContext,
        *,
        seconds: float = SECONDS,
        audit_days: int = 0,
        name: str | None = None,
        tell: Callable[[Swept], None] = lambda swept: None,
        on_elected: Callable[[bool], None] = lambda elected: None,
    ) -> None:
        self._kv = context.kv
        self._candidate = Candidate(context, UPKEEP, seconds=seconds, name=name)
        self._sweeper = Sweeper(context, audit_days=audit_days)
        self._recorder = Recorder(context, check=self._candidate.check)
        self._tell, self._on_elected = tell, on_elected
        self._stop = threading.Event()
        self._turn = threading.Event()
        #: Kinds of trouble that last, logged once.
        self._troubles: set[str] = set()
        self._threads = [
            threading.Thread(target=self._stand, name="pqadmin-election", daemon=True),
            threading.Thread(target=self._work, args=("sweep", self._sweep), name="pqadmin-sweeper", daemon=True),
            threading.Thread(target=self._work, args=("history", self._record), name="pqadmin-recorder", daemon=True),
        ]

    @property
    def elected(self) -> bool:
        """Say whether this process sweeps now."""
        return self._candidate.elected

    @property
    def alive(self) -> bool:
        """Say whether it still works; it ends by itself when the store is closed."""
        return any(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Begin, in threads of its own. Raise `RuntimeError`, with none left, where the process gets no thread."""
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout: float = 5.0) -> None:
        """End after the step that is under way, and release the role. Wait for that at most so long."""
        self._stop.set()
        self._turn.set()
        for _ in range(max(1, int(timeout / _NUDGE))):
            self._interrupt()
            for thread in self._threads:
                if thread.ident is not None:  # it was started
                    thread.join(_NUDGE / 2)
            if not self.alive:
                return

    def _interrupt(self) -> None:
        try:
            self._kv.interrupt()
        except StoreError:
            self._stop.set()

    # The election's thread

    def _stand(self) -> None:
        was = False
        try:
            while not self._stop.is_set():
                stepped = self._attempt("election", self._candidate.step)
                if self._candidate.elected != was:
                    was = not was
                    self._changed(was)
                if stepped is None:
                    self._stop.wait(_AFTER_TROUBLE)
                elif stepped:
                    self._stop.wait(self._candidate.rest)
                else:
                    # Until the elected process releases the role, or should have renewed it.
                    self._attempt(
                        "election", lambda: self._kv.watch(self._candidate.known, timeout=self._candidate.rest)
                    )
            self._attempt("election", self._candidate.resign)
        finally:
            self._stop.set()
            self._turn.set()

    def _changed(self, elected: bool) -> None:
        if elected:
            self._turn.set()
        elif not self._stop.is_set():
            self._turn.clear()
            self._interrupt()  # a sweeper that sleeps has to see that it is over
        self._on_elected(elected)

    # The threads that work while this process is elected

    def _work(self, what: str, work: Callable[[], bool]) -> None:
        while not self._stop.is_set():
            self._turn.wait()
            if self._attempt(what, work) is None:
                self._stop.wait(_AFTER_TROUBLE)
            elif not self._may_work():
                self._stop.wait(_NUDGE)  # the role was not renewed in time, and the election has not noticed yet

    def _sweep(self) -> bool:
        self._sweeper.run(self._may_work, self._tell)
        return True

    def _record(self) -> bool:
        self._recorder.run(self._may_work)
        return True

    def _may_work(self) -> bool:
        return self._candidate.elected and not self._stop.is_set()

    def _attempt(self, what: str, work: Callable[[], object]) -> object | None:
        """Run it; None when it failed, which is logged once until it goes well again."""
        try:
            done = work()
        except (StoreClosed, ForkedStore):
            self._stop.set()
            return None
        except Exception as error:
            if what not in self._troubles and not self._stop.is_set():
                known = isinstance(error, StoreError | QueueError)
                log.warning("The %s rests: %s: %s", what, type(error).__name__, error, exc_info=not known)
            self._troubles.add(what)
            return None
        self._troubles.discard(what)
        return done
