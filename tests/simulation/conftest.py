"""What schedules of one thread a process share: nothing runs beside it."""

import pytest

from queues.serving import staging


@pytest.fixture(autouse=True)
def nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every caller take for itself: the scheduler knows no other threads. Tests of crowds differ."""
    monkeypatch.setattr(staging, "CONFLICTS", 1_000_000)
