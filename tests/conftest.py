"""What every suite shares: a store on each engine, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import Store, open_store

ENGINES = ("embedded", "simulated")


class Clock:
    """Seconds since the epoch, moved only by tests."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock; negative seconds step it back."""
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


def store_url(engine: str, folder: Path) -> str:
    """Return the URL of a fresh store on an engine."""
    return f"lmdb:{folder / 'store'}" if engine == "embedded" else "memory:"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine."""
    name: str = request.param
    return name


@pytest.fixture
def store(engine: str, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """A fresh store on each engine."""
    with open_store(store_url(engine, tmp_path), clock=clock) as opened:
        yield opened
