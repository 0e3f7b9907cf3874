"""Stores of sites that tests of several files share: each test begins without queues, in whatever order they run."""

from collections.abc import Iterator
from contextlib import contextmanager

from queues import Store, open_store


@contextmanager
def emptied(url: str) -> Iterator[Store]:
    """Open a store without queues and targets of patterns, and leave it so."""
    with open_store(url) as store:
        _empty(store)
        yield store
        _empty(store)


def _empty(store: Store) -> None:
    for name in store.directory():
        queue = store.queue(name)
        store.detach(name) if queue.attached else store.delete_queue(name)
    for pattern in store.targets.patterns():
        store.targets.remove(pattern)
