"""Holds the writer of an embedded store up, so that what waits meanwhile is one batch."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queues.kv.embedded import EmbeddedStore
from queues.kv.port import Transaction
from tests.waiting import LONG


@contextmanager
def held_up(kv: EmbeddedStore) -> Iterator[Callable[[int], None]]:
    """Hold the writer up, so that all that is handed in meanwhile is one batch; give a way to wait for so many."""
    held, go = threading.Event(), threading.Event()

    def hold(tr: Transaction) -> None:
        held.set()
        assert go.wait(LONG)

    holder = threading.Thread(target=kv.transact, args=(hold,))
    holder.start()
    assert held.wait(LONG)
    waiting = kv.engine.combiner

    def until(count: int) -> None:
        while len(waiting) < count:
            pass

    try:
        yield until
    finally:
        go.set()
        holder.join(LONG)
