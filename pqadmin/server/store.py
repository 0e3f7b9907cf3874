"""The process's one queue store, opened when it is first asked for."""

import threading

from django.conf import settings

from queues import Store, open_store

_lock = threading.Lock()
_store: Store | None = None


def get_store() -> Store:
    """Return the store that PQADMIN_STORE names; raises StoreUnavailable, BadStoreURL or NewerFormat."""
    global _store  # the one per process
    if _store is None:
        with _lock:
            if _store is None:
                _store = open_store(settings.PQADMIN_STORE)
    return _store


def opened_store() -> Store | None:
    """Return the store if it is open, without opening it."""
    return _store


def close_store() -> None:
    """Close the store if it is open; the next `get_store` opens it again."""
    global _store  # the one per process
    with _lock:
        store, _store = _store, None
    if store is not None:
        store.close()
