"""What has expired goes from the tables, at the start and again and again; the store is swept as things fall due."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection

from pqadmin.accounts.models import KeptAnswer, LoginAttempt
from pqadmin.server import housekeeping
from pqadmin.server.housekeeping import Housekeeping, sweep
from pqadmin.store import close_store, get_store
from queues import open_store
from queues.background.service import Upkeep
from queues.model.limits import UNSET
from queues.serving.leadership import UPKEEP
from tests.sites import site_store
from tests.waiting import LONG, await_true

DAY = timedelta(days=1)


@pytest.fixture
def rows(db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], dict[str, list[str]]]]:
    """One expired and one current row of each kind; returns which are there."""
    now = datetime.now(UTC)
    for name, shift in (("old", -3 * DAY), ("new", DAY)):
        Session.objects.create(session_key=name, session_data="", expire_date=now + shift)
        LoginAttempt.objects.create(key=name, at=min(now, now + shift))
        KeptAnswer.objects.create(key=name, content="", value=b"", at=now + shift)

    def look() -> dict[str, list[str]]:
        return {
            "sessions": sorted(Session.objects.values_list("session_key", flat=True)),
            "logins": sorted(LoginAttempt.objects.values_list("key", flat=True)),
            "answers": sorted(KeptAnswer.objects.values_list("key", flat=True)),
        }

    with site_store("memory:", settings, monkeypatch):
        yield look


def test_what_has_expired_is_forgotten(rows: Callable[[], dict[str, list[str]]]) -> None:
    sweep()
    assert rows() == {"sessions": ["new"], "logins": ["new"], "answers": ["new"]}


def test_what_cannot_be_forgotten_does_not_stop_the_rest(rows: Callable[[], dict[str, list[str]]]) -> None:
    def full(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("DELETE") and "loginattempt" in sql:
            raise OperationalError("database or disk is full")
        return execute(sql, *rest)

    with connection.execute_wrapper(full):
        sweep()
    assert rows() == {"sessions": ["new"], "logins": ["new", "old"], "answers": ["new"]}


@pytest.fixture
def kept(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Housekeeping]:
    """Housekeeping of a site whose store is not open yet."""
    close_store()
    monkeypatch.setattr(housekeeping, "LOOK_EVERY", 0.001)
    settings.PQADMIN_STORE = f"lmdb:{tmp_path / 'store'}"
    started = Housekeeping(lambda: None)
    yield started
    started.end()
    close_store()


def test_what_falls_due_in_an_idle_queue_is_done_without_any_worker(kept: Housekeeping) -> None:
    store = get_store()
    jobs = store.create_queue("jobs")
    jobs.push(b"delayed", priority=1, delay=timedelta(milliseconds=50))
    jobs.push(b"leased", priority=2)
    jobs.lease(seconds=0.05)
    snapshot = store.snapshot([jobs.id])
    while (totals := snapshot.queues[jobs.id].totals).ready < 2:
        assert store.wait_for_change(snapshot, timeout=LONG), "as boards are told of it"
        snapshot = store.snapshot([jobs.id], previous=snapshot)
    assert (totals.delayed, totals.leased) == (0, 0)


def test_what_operators_wait_for_is_done_at_once(kept: Housekeeping) -> None:
    store = get_store()
    with open_store(store.url, clock=lambda: 1_000_000.0) as long_ago:
        long_ago.create_queue("old").push(b"x", priority=1)
        long_ago.delete_queue("old")
    jobs = store.create_queue("jobs")
    acts = store.actions("ann")
    for n in range(4):
        jobs.push(b"x", priority=n)
        acts.undo(acts.purge("jobs", confirm="jobs").trash_ids[0])
        await_true(lambda: len(store.queue("jobs").config.generations) == 1)
    assert store.queue("jobs").depth() == 4
    await_true(lambda: all(entry.queue != "old" for entry in store.trash.entries(limit=10).entries))


def test_a_site_that_ends_hands_over_to_another_at_once(kept: Housekeeping) -> None:
    store = get_store()
    elected = threading.Event()
    await_true(lambda: store.read(lambda tr: tr.get(store.context.keyspace.elected.key(UPKEEP)).wait()))
    with open_store(store.url) as other:
        standby = Upkeep(other.context, seconds=600.0, on_elected=lambda now: elected.set())
        standby.start()
        assert not standby.elected
        kept.end()
        close_store()
        assert elected.wait(LONG)
        assert standby.elected
        standby.stop()


def test_it_goes_on_with_a_store_that_is_opened_anew(kept: Housekeeping) -> None:
    get_store().create_queue("jobs").push(b"x", priority=1, delay=timedelta(milliseconds=50))
    close_store()
    store = get_store()
    store.transact(
        lambda tr: tr.clear(store.context.keyspace.elected.key(UPKEEP))
    )  # as if it had been closed for some seconds
    store.interrupt()
    await_true(lambda: store.queue("jobs").depth() == 1)


def test_a_site_that_gets_no_thread_sweeps_once_it_gets_one(
    rows: Callable[[], dict[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    started, refused = threading.Thread.start, threading.Event()

    def start(thread: threading.Thread) -> None:
        if thread.name == "pqadmin-sweeper" and not refused.is_set():
            refused.set()
            raise RuntimeError("can't start new thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(housekeeping, "LOOK_EVERY", 0.05)
    get_store().create_queue("jobs").push(b"x", priority=1, delay=timedelta(milliseconds=50))
    keeping = Housekeeping(lambda: None)
    assert refused.wait(LONG)
    await_true(lambda: get_store().queue("jobs").depth() == 1)
    keeping.end()


def test_it_sweeps_at_once_and_again_and_a_failure_does_not_end_it() -> None:
    swept = threading.Semaphore(0)

    def fail() -> None:
        swept.release()
        raise ValueError("a bug")

    keeping = Housekeeping(fail, every=0.001)
    assert all(swept.acquire(timeout=LONG) for _ in range(3))
    keeping.end()


def test_the_sites_environment_becomes_the_default_targets_of_the_store(settings: Any, tmp_path: Path) -> None:
    settings.PQADMIN_STALLED_SECONDS, settings.PQADMIN_GROWING_SECONDS = 30, 5
    settings.PQADMIN_OLDEST_SECONDS, settings.PQADMIN_DEAD_ITEMS = 10**12, 0
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        housekeeping.set_default_targets(store)
        targets = store.targets.rules().targets("any", UNSET)
        assert (targets.no_consumer, targets.growing, targets.dead) == (30, 120, 0)
        assert targets.oldest == 366 * 86_400
        store.targets.set("*", dead=7)
        housekeeping.set_default_targets(store)
        assert len(store.audit.entries().entries) == 1
        assert store.targets.rules().targets("any", UNSET).dead == 7
