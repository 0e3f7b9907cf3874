"""The process's one queue store, opened when it is first asked for."""

import threading
import time
from datetime import UTC, datetime

from django.conf import settings

from queues import Store, open_store
from queues.errors import StoreDamaged, StoreUnreachable

#: Seconds for which an unreachable store is not tried again: callers meanwhile get the error at once, instead of each
#: waiting in turn for a cluster that does not answer.
TRY_AGAIN_AFTER = 2.0
#: The same for a damaged one, which may have been restored: it is read whole before it is opened.
TRY_DAMAGED_AFTER = 30.0

_lock = threading.Lock()
_store: Store | None = None
#: When it was refused last, and how.
_refused: tuple[float, StoreUnreachable | StoreDamaged] | None = None


def get_store() -> Store:
    """Return the store that PQADMIN_STORE names; raises a StoreError: away, of another format …"""
    global _store, _refused  # the one per process
    if _store is None:
        with _lock:
            if _store is None:
                if _refused is not None and time.monotonic() - _refused[0] < _rest(_refused[1]):
                    raise type(_refused[1])(_refused[1].words)
                try:
                    _store = open_store(settings.PQADMIN_STORE)
                    _refused = None
                except (StoreUnreachable, StoreDamaged) as error:
                    _refused = (time.monotonic(), error)
                    raise
    return _store


def _rest(refusal: StoreUnreachable | StoreDamaged) -> float:
    return TRY_DAMAGED_AFTER if isinstance(refusal, StoreDamaged) else TRY_AGAIN_AFTER


def opened_store() -> Store | None:
    """Return the store if it is open, without opening it."""
    return _store


def store_now() -> datetime:
    """Return the time by the store's clock, UTC; by this process's own while no store is open."""
    store = _store
    return datetime.now(UTC) if store is None else store.now()


def store_skew() -> float:
    """Return the seconds by which this process's clock is ahead of the store's; 0 while no store is open."""
    store = _store
    return 0.0 if store is None else store.skew


def close_store() -> None:
    """Close the store if it is open; the next `get_store` opens it again."""
    global _store, _refused  # the one per process
    with _lock:
        store, _store = _store, None
        _refused = None
    if store is not None:
        store.close()
