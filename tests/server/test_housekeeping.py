"""What has expired goes from the tables: at the start, and again and again."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection

from pqadmin.accounts.models import LoginAttempt
from pqadmin.dashboard.models import SentForm
from pqadmin.server import housekeeping
from pqadmin.server.housekeeping import Housekeeping, Tidy, sweep
from pqadmin.server.store import close_store, get_store
from queues import open_store
from queues.kv.slots import Mark, SlotPool

DAY = timedelta(days=1)
LONG = 30.0  # seconds; reached only when something hangs


@pytest.fixture
def rows(db: None) -> Callable[[], dict[str, list[str]]]:
    """One expired and one current row of each kind; returns which are there."""
    now = datetime.now(UTC)
    for name, shift in (("old", -3 * DAY), ("new", DAY / 1440)):
        Session.objects.create(session_key=name, session_data="", expire_date=now + shift)
        SentForm.objects.create(number=name, at=now + shift)
        LoginAttempt.objects.create(key=name, at=now + shift)

    def look() -> dict[str, list[str]]:
        return {
            "sessions": sorted(Session.objects.values_list("session_key", flat=True)),
            "forms": sorted(SentForm.objects.values_list("number", flat=True)),
            "logins": sorted(LoginAttempt.objects.values_list("key", flat=True)),
        }

    return look


def test_what_has_expired_is_forgotten(rows: Callable[[], dict[str, list[str]]]) -> None:
    sweep()
    assert rows() == {"sessions": ["new"], "forms": ["new"], "logins": ["new"]}


def test_what_can_not_be_forgotten_does_not_stop_the_rest(rows: Callable[[], dict[str, list[str]]]) -> None:
    def full(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("DELETE") and "sentform" in sql:
            raise OperationalError("database or disk is full")
        return execute(sql, *rest)

    with connection.execute_wrapper(full):
        sweep()
    assert rows() == {"sessions": ["new"], "forms": ["new", "old"], "logins": ["new"]}


def test_stale_slots_of_the_store_are_swept_too(db: None, settings: Any) -> None:
    close_store()
    sweep()  # no store is open: nothing to sweep, and none is opened for it
    settings.PQADMIN_STORE = "memory:"
    store = get_store()
    key = SlotPool(store._keyspace.slots).take().key
    store.transact(lambda tr: tr.set(key, Mark(sequence=1, attempt=0, ms=0).encode()))
    sweep()
    assert store.read(lambda tr: tr.get(key).wait()) is None
    store.close()
    sweep()  # a store that can not be swept is left for the next time
    close_store()


def test_the_trash_is_swept_beyond_its_deadline(db: None, settings: Any) -> None:
    close_store()
    settings.PQADMIN_STORE = "memory:housekeeping"
    with open_store(settings.PQADMIN_STORE, clock=lambda: 1_000_000.0) as long_ago:
        long_ago.create_queue("old").push(b"x", priority=1)
        long_ago.delete_queue("old")
        store = get_store()
        store.create_queue("new").push(b"x", priority=1)
        store.delete_queue("new")
        sweep()
        (left,) = store.trash.entries(limit=10).entries
        assert left.queue == "new"
    close_store()


def test_an_undone_purge_is_merged_and_the_trash_swept_within_a_minute(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_store()
    monkeypatch.setattr(housekeeping, "sweep", lambda: None)  # the daily round is not what does it
    monkeypatch.setattr(housekeeping, "TIDY_EVERY", 0.001)
    settings.PQADMIN_STORE = "memory:tidy"
    ended = housekeeping.start()  # before the store is open: nothing is done, and it goes on
    try:
        store = get_store()
        with open_store(settings.PQADMIN_STORE, clock=lambda: 1_000_000.0) as long_ago:
            long_ago.create_queue("old").push(b"x", priority=1)
            long_ago.delete_queue("old")
        jobs = store.create_queue("jobs")
        acts = store.acts("ann")
        for n in range(4):
            jobs.push(b"x", priority=n)
            acts.undo(acts.purge("jobs", confirm="jobs").trash_ids[0])
            assert within(lambda: len(store.queue("jobs").config.generations) == 1)
        assert store.queue("jobs").depth() == 4
        assert within(lambda: not store.trash.entries(limit=10).entries)
    finally:
        ended.set()
        close_store()


def within(true: Callable[[], bool]) -> bool:
    """Wait for it."""
    deadline = time.monotonic() + LONG
    while not true():
        if time.monotonic() > deadline:
            return False
    return True


def test_a_round_with_nothing_to_do_reads_three_times_and_tells_of_trouble_once(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    close_store()
    settings.PQADMIN_STORE = "memory:"
    store = get_store()
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(10)])
    tidy = Tidy(threading.Event())
    before = store._kv.reads()
    tidy()
    assert store._kv.reads() - before == 3
    store.close()
    with caplog.at_level(logging.WARNING):
        tidy()
        tidy()
    assert [record.getMessage().split(" were")[0] for record in caplog.records] == ["undone purges", "trash"]
    close_store()


def test_it_sweeps_at_once_and_again_and_a_failure_does_not_end_it() -> None:
    swept = threading.Semaphore(0)

    def fail() -> None:
        swept.release()
        raise ValueError("a bug")

    keeping = Housekeeping(fail, every=0.001)
    assert all(swept.acquire(timeout=LONG) for _ in range(3))
    keeping.end()
    keeping._thread.join(LONG)
    assert not keeping._thread.is_alive()
