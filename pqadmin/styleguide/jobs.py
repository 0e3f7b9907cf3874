"""Jobs for the styleguide: running, waiting, of unknown length, ended in every way, with hostile and extreme data."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from pqadmin.dashboard.jobs.words import Told, tell
from queues import Job
from queues.admin import BULK_HELD_MS, to_ms


def sample_jobs(now: datetime) -> list[Told]:
    """Return jobs as pages show them."""
    ms = to_ms(now)
    running = Job(
        id=(ms - 90_000).to_bytes(6, "big").hex() + "0" * 28,
        act="move",
        queue_id=1,
        queue="orders:eu:refunds",
        state="ready",
        status="running",
        by="ada",
        reason="",
        query={"state": "ready", "text": "<script>alert(1)</script>"},
        to="review",
        total=4_200_000,
        met=1_234_567,
        done=1_234_000,
        skipped=567,
        held_ms=ms + BULK_HELD_MS,
        started_ms=ms - 90_000,
        seen=((ms - 10_000, 1_100_000),) * 2,
    )
    jobs = [
        running,
        replace(running, act="delete", to=None, held_ms=0, by="\u202eevil"),
        replace(running, act="retry", state="dead", total=None, queue="<b>" + "x" * 190),
        replace(running, act="reprioritize", priority=10**30, total=10**12, met=0, done=0, skipped=0, seen=()),
        replace(running, status="done", ended_ms=ms, met=4_200_000),
        replace(running, status="canceled", ended_ms=ms - int(timedelta(days=2) / timedelta(milliseconds=1))),
        replace(running, status="failed", ended_ms=ms, failure="no float holds it", failed_at="0" * 40),
    ]
    return [tell(job, now) for job in jobs]
