"""A store of bare keys on each engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.port import KeyValueStore
from tests.conftest import Clock, store_url


@pytest.fixture
def kv(engine: str, tmp_path: Path, clock: Clock) -> Iterator[KeyValueStore]:
    """A fresh store on each engine."""
    opened = open_kv(store_url(engine, tmp_path), clock=clock)
    yield opened
    opened.close()
