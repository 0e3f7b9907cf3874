"""What schedules of one thread a process share: nothing runs beside it."""

import pytest

from queues.serving import staging
from queues.serving.background import BackgroundThreads


@pytest.fixture(autouse=True)
def nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every caller take for itself, without heartbeats: the scheduler knows no other threads. Crowds differ."""
    monkeypatch.setattr(BackgroundThreads, "start", lambda threads, work, name: None)
    monkeypatch.setattr(staging, "CONFLICTS", 1_000_000)
