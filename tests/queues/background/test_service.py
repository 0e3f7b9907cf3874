"""Upkeep in threads: one of several sweeps, another goes on when it stops or dies, and trouble ends nothing."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from queues import Queue, Store, open_store
from queues.background.leader import Candidate
from queues.background.service import Upkeep
from queues.background.sweeper import Swept
from queues.errors import StoreUnreachable
from queues.serving.leadership import UPKEEP
from tests.waiting import LONG, await_true

SOON = timedelta(milliseconds=30)


class Kept:
    """An upkeep that can be waited for."""

    def __init__(self, store: Store, *, seconds: float = 60.0) -> None:
        self._changed = threading.Condition()
        self.swept = Swept()
        self.was_elected = 0
        self.keeping = Upkeep(store.context, seconds=seconds, tell=self._told, on_elected=self._elected)
        self.keeping.start()

    def _told(self, swept: Swept) -> None:
        with self._changed:
            self.swept += swept
            self._changed.notify_all()

    def _elected(self, elected: bool) -> None:
        with self._changed:
            self.was_elected += elected
            self._changed.notify_all()

    def until(self, true: "Callable[[Kept], object]") -> bool:
        with self._changed:
            return bool(self._changed.wait_for(lambda: true(self), LONG))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


def test_what_falls_due_while_it_sleeps_is_done_without_pops(store: Store, jobs: Queue) -> None:
    kept = Kept(store)
    assert kept.until(lambda kept: kept.was_elected)
    jobs.push(b"leased", priority=1)
    jobs.lease(seconds=0.04)
    jobs.push(b"delayed", priority=2, delay=SOON)
    due = time.time() + SOON.total_seconds()
    assert kept.until(lambda kept: kept.swept == Swept(promoted=1, expired=1))
    assert time.time() >= due, "never early"
    assert [item.value for item in jobs.items().items] == [b"leased", b"delayed"]
    kept.keeping.stop()
    assert not kept.keeping.alive
    assert not kept.keeping.elected


def test_another_takes_over_at_once_when_the_elected_one_stops(store: Store, jobs: Queue) -> None:
    one = Kept(store)
    assert one.until(lambda kept: kept.was_elected)
    two = Kept(store)
    jobs.push(b"x", priority=1, delay=SOON)
    assert one.until(lambda kept: kept.swept.promoted == 1)
    one.keeping.stop()
    assert two.until(lambda kept: kept.was_elected), "long before the minute that a holding lasts"
    jobs.push(b"y", priority=1, delay=SOON)
    assert two.until(lambda kept: kept.swept.promoted == 1)
    assert one.swept.promoted == 1
    two.keeping.stop()


def test_another_takes_over_when_the_elected_one_dies(url: str, store: Store, jobs: Queue) -> None:
    with open_store(url) as other:
        dead = Candidate(other.context, UPKEEP, seconds=0.2)
        assert dead.step(), "elected, and never heard of again"
        jobs.push(b"x", priority=1, delay=SOON)
        kept = Kept(store, seconds=0.2)
        assert kept.until(lambda kept: kept.swept.promoted == 1)
        assert not dead.elected
        kept.keeping.stop()


def test_trouble_with_the_store_is_told_once_and_ends_nothing(
    store: Store, jobs: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("queues.background.service._AFTER_TROUBLE", 0.001)
    tries = threading.Semaphore(0)
    read = store.context.kv.read

    def away(fn: object, *, background: bool = False) -> None:
        tries.release()
        raise StoreUnreachable("away")

    with caplog.at_level(logging.WARNING):
        store.context.kv.read = away
        kept = Kept(store)
        assert all(tries.acquire(timeout=LONG) for _ in range(5))
        store.context.kv.read = read
        jobs.push(b"x", priority=1, delay=SOON)
        assert kept.until(lambda kept: kept.swept.promoted == 1)
    told = [record.getMessage() for record in caplog.records if record.name == "queues.background.service"]
    assert told == ["The election rests: StoreUnreachable: away"]
    kept.keeping.stop()


def test_closing_the_store_ends_it(store: Store) -> None:
    kept = Kept(store)
    assert kept.until(lambda kept: kept.was_elected)
    store.close()
    await_true(lambda: not kept.keeping.alive)
    kept.keeping.stop()
