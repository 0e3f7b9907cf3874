"""Waits for changes of the store in a thread of its own, beside the monitor.

Arming a watch reads every watched key once. So a watch stays armed for as long as nothing changes; only another screen
makes it begin anew.
"""

import contextlib
import threading
from collections.abc import Callable

from pqadmin.live.threads import Start, start_thread, try_start
from queues import Snapshot, Store
from queues.errors import StoreError

#: Seconds after which a watch is armed anew though nothing happened.
LONGEST = 60.0


class Waiter:
    """Watches one snapshot at a time and reports once that it may have changed."""

    def __init__(self, name: str, fire: Callable[[], None], *, start: Start = start_thread) -> None:
        self._name = name
        self._start = start
        self._fire = fire
        self._condition = threading.Condition()
        self._target: tuple[Store, Snapshot] | None = None
        self._waiting: tuple[Store, Snapshot] | None = None
        self._fired = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def take(self) -> bool:
        """Return whether something changed since the last call."""
        with self._condition:
            fired, self._fired = self._fired, False
            return fired

    def arm(self, store: Store, snapshot: Snapshot) -> None:
        """Watch this snapshot from now on; calling it again with the same one costs nothing.

        Without a thread it reports at once that something may have changed: the caller then looks each time.
        """
        with self._condition:
            if self._target is None or self._target[1] is not snapshot:
                self._fired = not self._begin()
                self._target = None if self._fired else (store, snapshot)
                self._condition.notify()
            self._interrupt()

    def stop(self) -> None:
        """Let the thread end; a later `arm` begins anew."""
        with self._condition:
            self._thread = self._target = None
            self._condition.notify_all()
            self._interrupt()

    def _begin(self) -> bool:
        """Return whether there is a thread. A new one waits for the condition, which the caller holds."""
        if self._thread is None:
            self._thread = try_start(self._start, self._run, self._name)
        return self._thread is not None

    def _interrupt(self) -> None:
        """Wake the thread out of a watch that is no longer wanted."""
        waiting = self._waiting
        if waiting is not None and (self._target is None or waiting[1] is not self._target[1]):
            with contextlib.suppress(StoreError):
                waiting[0].interrupt()

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._condition:
                while self._thread is me and self._target is None:
                    self._condition.wait()
                if self._thread is not me:
                    return
                target = self._waiting = self._target
            changed = target is not None and self._wait(*target)
            with self._condition:
                if self._thread is not me:
                    return
                self._waiting = None
                if not changed or self._target is not target:
                    continue
                self._target, self._fired = None, True
            self._fire()

    def _wait(self, store: Store, snapshot: Snapshot) -> bool:
        try:
            return store.wait_for_change(snapshot, timeout=LONGEST)
        except StoreError:
            return True  # the next reading finds the error
