"""The site's own runner: it does what is begun, goes on with what is left, and ends within a chunk."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template import Context, Template

from pqadmin import jobs
from queues import Store
from tests.sites import site_store
from tests.waiting import LONG, await_true


@pytest.fixture
def store(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with site_store("memory:", settings, monkeypatch) as opened:
        yield opened


def test_jobs_are_run_from_the_start_on_and_when_they_begin(store: Store) -> None:
    queue, ann = store.create_queue("jobs"), store.actions("ann")
    queue.push_many([(b"x", n) for n in range(100)])
    left = ann.begin_bulk("delete", "jobs", high=49)
    running = jobs.Running()
    try:
        await_true(lambda: ann.job(left.id).status == "done")
        await_true(lambda: jobs.running() == ())
        begun = ann.begin_bulk("delete", "jobs")
        await_true(lambda: ann.job(begun.id).status == "done")  # nothing else wakes it
        assert queue.depth() == 0
    finally:
        running.end()
    assert jobs.running() is None


def test_a_runner_that_ends_leaves_the_rest_to_the_next_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, ann = store.create_queue("jobs"), store.actions("ann")
    queue.push_many([(b"x", n) for n in range(1_000)])
    begun = ann.begin_bulk("delete", "jobs", rate=20)
    one = jobs.Running()
    await_true(lambda: ann.job(begun.id).done)
    badge = Template("{% load dashboard %}{% running_jobs %}").render(Context({"user": User(is_superuser=True)}))
    assert "1 running" in badge
    one.end()
    stopped = ann.job(begun.id)
    assert (stopped.status, stopped.held_ms) == ("running", 0)
    assert 0 < stopped.done < 1_000
    two = jobs.Running()
    try:
        await_true(lambda: ann.job(begun.id).done > stopped.done)
        assert ann.job(begun.id).runner != stopped.runner
        ann.cancel_bulk(begun.id)
        done = ann.job(begun.id).done
        await_true(lambda: jobs.running() == ())
        assert ann.job(begun.id).done == done == 1_000 - queue.depth()
    finally:
        two.end()


def test_a_runner_that_comes_to_sleep_while_it_is_ended_is_woken_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = store.context.kv
    watch, interrupt = kv.watch, kv.interrupt
    about_to_sleep, first_call_is_over = threading.Event(), threading.Event()

    def late(*args: Any, **options: Any) -> bool:
        if threading.current_thread().name == "pqadmin-jobs":
            about_to_sleep.set()
            assert first_call_is_over.wait(LONG)
        return watch(*args, **options)

    def heard_too_early() -> None:
        interrupt()
        first_call_is_over.set()

    monkeypatch.setattr(kv, "watch", late)
    monkeypatch.setattr(kv, "interrupt", heard_too_early)
    running = jobs.Running()
    assert about_to_sleep.wait(LONG)
    running.end()
    assert not any(thread.name == "pqadmin-jobs" for thread in threading.enumerate())


def test_a_runner_of_a_closed_store_ends_without_a_word(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()
    runner = store.job_runner()
    store.close()
    runner.run(ended)  # a closed store has nothing more to do
    assert not [record for record in caplog.records if record.name.startswith(("pqadmin", "queues"))]
