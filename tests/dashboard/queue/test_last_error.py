"""The page of a queue on which every attempt fails shows one of the last errors, as cut and redacted as elsewhere."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from queues import Queue, open_store
from tests.conftest import Clock
from tests.dashboard.conftest import Desk
from tests.sites import site_store

Fail = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def failing(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fail:
    """Serve a store with the queue “jobs”, of which `fail` gave items back for three minutes."""

    @contextmanager
    def serve(fail: Callable[[Queue, int], object], **options: Any) -> Iterator[None]:
        url, clock = f"lmdb:{tmp_path / 'failing'}", Clock(time.time() - 200)
        with open_store(url, clock=clock) as store:
            jobs = store.create_queue("jobs")
            jobs.configure(**options)
            jobs.push_many([(b"x", n) for n in range(100)])
            jobs.pop_many(2)
            recorder = store.recorder(count=clock)
            for n in range(20):
                fail(jobs, n)
                clock.advance(10)
                recorder.look()
                recorder.flush()
        with site_store(url, settings, monkeypatch):
            yield

    return serve


def told(desk: Desk) -> str:
    """Return what the page says beside the reason; nothing hidden."""
    (reason,) = re.findall(r'<li data-reason="nothing-done".*?</li>', desk.open("/queues/jobs/").html, re.DOTALL)
    assert "every attempt fails" in reason
    return reason


@pytest.mark.parametrize("delay", [None, 3_000.0])
def test_the_newest_error_is_told_beside_the_reason(operator: Desk, failing: Fail, delay: float | None) -> None:
    """Of items that went back to their places, and of more delayed ones than one page of the list has."""

    def fail(jobs: Queue, n: int) -> None:
        for lease in jobs.lease_many(4):
            jobs.release(lease, delay=delay, reason=f"OSError: no answer to call {n}")

    with failing(fail):
        reason = told(operator)
        (address,) = re.findall(r'data-part="error"\s+href="([^"]+)"', reason)
        assert "OSError: no answer to call 19" in reason
        assert delay is None or "?state=delayed#items" in reason
        assert "OSError: no answer to call 19" in operator.open(address).html


def test_the_newest_error_of_dead_items_is_told_too(operator: Desk, failing: Fail) -> None:
    def fail(jobs: Queue, n: int) -> None:
        for lease in jobs.lease_many(4):
            jobs.release(lease, reason=f"OSError: no answer to call {n}")

    with failing(fail, max_attempts=1):
        reason = told(operator)
    assert "OSError: no answer to call 19" in reason
    assert "?state=dead#items" in reason, "the ready ones have no attempt"


def test_a_hostile_error_is_cut_redacted_and_plain(operator: Desk, failing: Fail) -> None:
    error = "ValueError: <b>no</b> \u202e {'pin': 'hunter2'} " + "x" * 900

    def fail(jobs: Queue, n: int) -> None:
        for lease in jobs.lease_many(3):
            jobs.release(lease, delay=30, reason=error)

    with failing(fail, redact=("pin",)):
        reason = told(operator)
    assert "ValueError: &lt;b&gt;no&lt;/b&gt;" in reason
    assert "hunter2" not in reason
    assert "\u202e" not in reason
    assert "x" * 100 in reason
    assert "x" * 300 not in reason


def test_where_no_attempt_told_an_error_none_is_shown(operator: Desk, failing: Fail) -> None:
    def fail(jobs: Queue, _: int) -> None:
        for lease in jobs.lease_many(3):
            jobs.release(lease)

    with failing(fail):
        reason = told(operator)
    assert 'data-part="error"' not in reason
    assert "?state=ready#items" in reason
