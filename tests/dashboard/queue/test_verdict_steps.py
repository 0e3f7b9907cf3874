"""A queue's page says beside each reason of its health what to do next, unless the reason has ended."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from queues import open_store
from tests.conftest import Clock
from tests.dashboard.conftest import Desk
from tests.sites import site_store


@pytest.mark.parametrize("taken", [0, 1])
def test_a_stall_that_has_ended_has_no_next_step(
    operator: Desk, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taken: int
) -> None:
    url, clock = f"lmdb:{tmp_path / 'stalled'}", Clock(time.time() - 210)
    with open_store(url, clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.push_many([(b"x", n) for n in range(100)])
        recorder = store.recorder(count=clock)
        for popped in (2, *[0] * 20, taken):
            if popped:
                jobs.pop_many(popped)
            recorder.look()
            recorder.flush()
            clock.advance(10)
    with site_store(url, settings, monkeypatch):
        page = operator.open("/queues/jobs/").html
    (reason,) = re.findall(r'<li data-reason="no-consumer".*?</li>', page, re.DOTALL)
    assert "no consumer for 3 min" in reason
    assert (", until " in reason, 'class="next" hidden' in reason) == (bool(taken), bool(taken))
