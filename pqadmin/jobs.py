"""The site runs jobs: one thread does what is left of acts on many items, from its start on, a chunk at a time.

With several sites on one store one of them runs a job at a time, and another goes on when it dies.
"""

import logging
import threading
import time
from collections.abc import Callable

from pqadmin.store import opened_store
from queues import Job, Store
from queues.admin import JobRunner

log = logging.getLogger(__name__)

#: Seconds between looks for a store that the site could not open yet, and for a chunk to be finished at the end.
LOOK_EVERY = 1.0
ENDS_WITHIN = 3.0
#: Seconds between the calls that wake the thread at the end: one that it gets on its way to sleep is lost.
_WAKE_EVERY = 0.05

_runner: JobRunner | None = None


class Running:
    """The thread that runs the jobs of the site's store."""

    def __init__(self, find: Callable[[], Store | None] = opened_store) -> None:
        self._find = find
        self._ended = threading.Event()
        self._store: Store | None = None
        self._thread = threading.Thread(target=self._run, name="pqadmin-jobs", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Finish the chunk that is being done, and leave the rest to the next runner."""
        self._ended.set()
        until = time.monotonic() + ENDS_WITHIN
        while self._thread.is_alive() and time.monotonic() < until:
            if self._store is not None:
                self._store.interrupt()
            self._thread.join(_WAKE_EVERY)

    def _run(self) -> None:
        global _runner  # the one per process
        from pqadmin.display.values import what_searchers_see  # needs the settings

        while not self._ended.is_set():
            store = self._find()
            if store is not None:
                self._store = store
                _runner = store.job_runner(shown=what_searchers_see)
                try:
                    _runner.run(self._ended)
                except Exception:  # the next look begins anew
                    log.exception("jobs were not run")
                _runner = None
            self._ended.wait(LOOK_EVERY)


def running() -> tuple[Job, ...] | None:
    """Return the jobs that are running as this process last saw; None when it runs none."""
    return None if _runner is None else _runner.running
