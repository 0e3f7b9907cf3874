"""At start and once a day the site forgets what has expired: sessions, numbers of sent forms, failed logins, slots.

Every minute it clears what is in the trash beyond its deadline, and merges undone purges: operators wait for those.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module

from django.conf import settings
from django.db import DatabaseError, connections, transaction

from pqadmin.server.store import opened_store
from queues.errors import QueueError, StoreError

log = logging.getLogger(__name__)

EVERY = 24 * 3600.0  # seconds
TIDY_EVERY = 60.0  # seconds


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
    """Forget what has expired; what can not be forgotten now is left for the next time."""
    from pqadmin.accounts import throttle
    from pqadmin.dashboard import once

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
    _sweep_store()


def _sweep_store() -> None:
    """Sweep the store if the site has it open: one that could not be reached yet is swept tomorrow."""
    store = opened_store()
    if store is None:
        return
    steps: dict[str, Callable[[], int]] = {
        "slots": store.sweep_slots,
        "trash": store.sweep_trash,
        "undone purges": store.merge_generations,
    }
    for what, step in steps.items():
        try:
            while step():
                pass
        except (StoreError, QueueError) as error:
            log.warning("%s were not swept: %s: %s", what, type(error).__name__, error)


class Tidy:
    """The round of every minute.

    Where nothing is to do it costs three key-value reads, two more for each act on many items that is kept, no write.
    What goes wrong is logged once, until it goes well again.
    """

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._failing: set[str] = set()

    def __call__(self) -> None:
        """Finish what operators wait for, in a store that the site has open."""
        store = opened_store()
        if store is None:
            return
        steps: dict[str, Callable[[], int]] = {"undone purges": store.merge_generations, "trash": store.sweep_trash}
        for what, step in steps.items():
            try:
                while not self._ended.is_set() and step():
                    pass
                self._failing.discard(what)
            except Exception as error:
                if what not in self._failing and not self._ended.is_set():
                    known = isinstance(error, StoreError | QueueError)
                    log.warning("%s were not swept: %s: %s", what, type(error).__name__, error, exc_info=not known)
                self._failing.add(what)


def start() -> threading.Event:
    """Start both rounds beside the server; they end when what is returned is set."""
    ended = threading.Event()

    def alone() -> None:
        try:
            sweep()
        finally:
            connections.close_all()  # this thread's own; the next sweep is a day away

    Housekeeping(alone, ended=ended)
    Housekeeping(Tidy(ended), every=TIDY_EVERY, ended=ended)
    return ended
