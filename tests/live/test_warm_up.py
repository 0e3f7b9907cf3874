"""Every queue is read at the server's start, before any person asks; a page that comes meanwhile gets what is read."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from pqadmin.live import monitor as monitors
from pqadmin.live import off_screen_reads
from pqadmin.live.monitor import Monitor
from queues import Store
from queues.errors import StoreUnavailable
from tests.live.conftest import PATIENCE


class Gated:
    """A store of which the first queues are read at once, and the rest when the gate is open."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read = 0
        self.held, self.open = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def snapshot(self, ids: Sequence[int], **options: Any) -> Any:
        if ids and self._read:
            self.held.set()
            assert self.open.wait(PATIENCE)
        self._read += len(ids)
        return self._store.snapshot(ids, **options)


@pytest.fixture
def gated(store: Store) -> Iterator[Gated]:
    """The store behind a gate, which opens in the end."""
    made = Gated(store)
    yield made
    made.open.set()


async def test_a_page_that_comes_while_all_is_read_at_the_start_gets_what_is_read_by_then(
    store: Store, gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "FIRST_PAGE", 0.0)
    monkeypatch.setattr(off_screen_reads, "MAX_SNAPSHOT", 10)
    for n in range(30):
        store.create_queue(f"q{n}").push(b"x", priority=n)
    monitor = Monitor(lambda: cast("Store", gated))
    read = threading.Event()
    monitor.warm_up(then=read.set)
    assert await asyncio.to_thread(gated.held.wait, PATIENCE)

    await asyncio.wait_for(asyncio.to_thread(monitor.refresh), PATIENCE)
    assert (len(monitor.overview().rows), len(monitor.board.unread())) == (10, 20)
    assert not read.is_set()

    gated.open.set()
    assert await asyncio.to_thread(read.wait, PATIENCE)
    assert sum(row.status.totals.ready for row in monitor.overview().rows) == 30
    assert monitor.board.unread() == frozenset()


async def test_what_follows_the_first_reading_waits_for_a_store_that_is_away(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "FIRST_PAGE", 0.0)
    for n in range(30):
        store.create_queue(f"q{n}")
    tried, done, known = threading.Event(), threading.Event(), []

    def away_at_first() -> Store:
        if tried.is_set():
            return store
        tried.set()
        raise StoreUnavailable("The store's disk does not answer.")

    def then() -> None:
        known.append(len(monitor.overview().rows))
        done.set()

    monitor = Monitor(away_at_first)
    monitor.warm_up(then=then)
    assert await asyncio.to_thread(tried.wait, PATIENCE)
    await asyncio.wait_for(asyncio.to_thread(monitor.refresh), PATIENCE)
    assert await asyncio.to_thread(done.wait, PATIENCE)
    assert known == [30]
