"""Upkeep beside the server: expired rows of the site's tables, and the sweeper of the store.

Sessions, failed logins, revoked tokens and answers of requests are removed at start and once a day. The store is swept
by one process among all that serve it or run `sweep --watch`, as soon as something is due.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module

from django.conf import settings
from django.db import DatabaseError, connections, transaction

from pqadmin import site_audit, token_lifecycle
from pqadmin.accounts import throttle
from pqadmin.store import opened_store
from queues import Store
from queues.admin import LONGEST_TARGET, MOST_ITEMS, SHORTEST_GROWTH, LogLimit, Upkeep
from queues.errors import StoreError

log = logging.getLogger(__name__)
_limited = LogLimit(log)

EVERY = 24 * 3600.0  # seconds
LOOK_EVERY = 0.5  # seconds; for the store, which may be opened later than the site, and again


def sweep() -> None:
    """Forget what has expired; what cannot be forgotten now is left for the next time.

    Tokens and answers are dated by the store's clock, so they wait for an open store: a machine with a wrong clock
    would forget those of all sites.
    """
    now, store = datetime.now(UTC), opened_store()
    sessions = import_module(settings.SESSION_ENGINE).SessionStore
    swept: dict[str, Callable[[], object]] = {
        "sessions": sessions.clear_expired,
        "failed logins": lambda: throttle.sweep(now),
    }
    if store is not None:
        swept |= {"tokens": lambda: token_lifecycle.sweep(store.now()), "answers": site_audit.sweep}
    for what, remove in swept.items():
        try:
            with transaction.atomic():
                remove()
        except DatabaseError as error:
            log.warning("%s were not swept: %s: %s", what, type(error).__name__, error)


def set_default_targets(store: Store) -> None:
    """Make this site's environment the default targets of the store, for all processes that judge its queues."""

    def seconds(value: int, least: float = 0.0) -> float:
        return min(max(value, least), LONGEST_TARGET) if value else 0.0

    try:
        store.actions("pqadmin", via="serve").set_default_targets(
            no_consumer=seconds(settings.PQADMIN_STALLED_SECONDS),
            growing=seconds(settings.PQADMIN_GROWING_SECONDS, SHORTEST_GROWTH),
            oldest=seconds(settings.PQADMIN_OLDEST_SECONDS),
            dead=min(settings.PQADMIN_DEAD_ITEMS, MOST_ITEMS),
        )
    except StoreError as error:  # those of before stay
        log.warning("The default targets were not set: %s: %s", type(error).__name__, error)


class Housekeeping:
    """Two threads: one sweeps the tables now and then, one offers to sweep the store while it is open."""

    def __init__(self, sweep: Callable[[], None] = sweep, *, every: float = EVERY) -> None:
        self._sweep = sweep
        self._every = every
        self._ended = threading.Event()
        self._tables = threading.Thread(target=self._sweep_tables, name="pqadmin-housekeeping", daemon=True)
        self._store = threading.Thread(target=self._sweep_store, name="pqadmin-keeping", daemon=True)
        self._tables.start()
        self._store.start()

    def end(self, timeout: float = 5.0) -> None:
        """Stop, so that another process takes the role over at once. Call it before the store is closed.

        A sweep of the tables that is under way continues.
        """
        self._ended.set()
        self._store.join(timeout)

    def _sweep_tables(self) -> None:
        while not self._ended.is_set():
            try:
                self._sweep()
            except Exception:  # it is tried again the next time
                log.exception("what has expired was not swept")
            finally:
                connections.close_all()  # this thread's own; the next sweep is a day away
            self._ended.wait(self._every)

    def _sweep_store(self) -> None:
        upkeep: Upkeep | None = None
        while not self._ended.is_set():
            store = opened_store()
            if store is not None and (upkeep is None or not upkeep.alive):
                set_default_targets(store)
                upkeep = store.upkeep(audit_days=settings.PQADMIN_AUDIT_DAYS)
                try:
                    upkeep.start()
                except RuntimeError as error:  # a limit of threads; it is tried again at the next look
                    _limited.warn("threads", "Nothing is swept here until threads can be started: %s", error)
                    upkeep = None
            self._ended.wait(LOOK_EVERY)
        if upkeep is not None:
            upkeep.stop()
