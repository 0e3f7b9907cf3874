"""At start and once a day the site forgets what has expired in its tables: sessions, sent forms, failed logins.

The store is kept by one process among all that serve it or run `sweep --watch`: what is due there is done at once.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module

from django.conf import settings
from django.db import DatabaseError, connections, transaction

from pqadmin.store import opened_store
from queues.admin import Upkeep

log = logging.getLogger(__name__)

EVERY = 24 * 3600.0  # seconds
LOOK_EVERY = 0.5  # seconds; for the store, which may be opened later than the site, and anew


class Housekeeping:
    """A thread that sweeps now and every so often, until it is told to end."""

    def __init__(
        self, sweep: Callable[[], None], *, every: float = EVERY, ended: threading.Event | None = None
    ) -> None:
        self._sweep = sweep
        self._every = every
        self._ended = ended or threading.Event()
        self._thread = threading.Thread(target=self._run, name="pqadmin-housekeeping", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Sweep no more; one that is under way goes on."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._sweep()
            except Exception:  # tomorrow is another day
                log.exception("what has expired was not swept")
            self._ended.wait(self._every)


def sweep() -> None:
    """Forget what has expired; what cannot be forgotten now is left for the next time."""
    from pqadmin.accounts import throttle
    from pqadmin.pages import once

    now = datetime.now(UTC)
    sessions = import_module(settings.SESSION_ENGINE).SessionStore
    swept: dict[str, Callable[[], object]] = {
        "sessions": sessions.clear_expired,
        "sent forms": lambda: once.sweep(now),
        "failed logins": lambda: throttle.sweep(now),
    }
    for what, forget in swept.items():
        try:
            with transaction.atomic():
                forget()
        except DatabaseError as error:
            log.warning("%s were not swept: %s: %s", what, type(error).__name__, error)


class Keeping:
    """The site's offer to sweep its store, for as long as it has it open."""

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._thread = threading.Thread(target=self._run, name="pqadmin-keeping", daemon=True)
        self._thread.start()

    def end(self, timeout: float = 5.0) -> None:
        """Give the role up, so that another process takes it at once; call it before the store is closed."""
        self._ended.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        upkeep: Upkeep | None = None
        while not self._ended.is_set():
            store = opened_store()
            if store is not None and (upkeep is None or not upkeep.alive):
                upkeep = store.upkeep(audit_days=settings.PQADMIN_AUDIT_DAYS)
                upkeep.start()
            self._ended.wait(LOOK_EVERY)
        if upkeep is not None:
            upkeep.stop()


class Kept:
    """All that `start` began."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._keeping = Keeping(self._ended)

        def alone() -> None:
            try:
                sweep()
            finally:
                connections.close_all()  # this thread's own; the next sweep is a day away

        Housekeeping(alone, ended=self._ended)

    def end(self) -> None:
        """Sweep no more; call it before the store is closed."""
        self._ended.set()
        self._keeping.end()


def start() -> Kept:
    """Begin to keep house beside the server."""
    return Kept()
