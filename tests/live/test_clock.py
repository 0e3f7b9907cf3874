"""What a site tells its live pages on a machine whose clock is wrong: the time by the store's clock."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pqadmin.live.monitor import Monitor
from queues import Store, open_store
from tests.live.conftest import SignIn, Viewer
from tests.sites import site_store

HOUR = 3_600.0


@pytest.fixture
def store(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The site's store, which a process on another machine's clock can open too."""
    with site_store(f"lmdb:{tmp_path / 'store'}", settings, monkeypatch) as opened:
        yield opened


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
async def test_messages_have_the_stores_time(store: Store, monitor: Monitor, sign_in: SignIn, ahead: float) -> None:
    with open_store(store.url, wall=lambda: time.time() + ahead) as other:
        await asyncio.to_thread(other.set_clock, by="boss")
    await asyncio.to_thread(store.clock.calibrate)
    queue = await asyncio.to_thread(store.create_queue, "jobs")
    await asyncio.to_thread(queue.push, b"value", priority=1)
    viewer = Viewer(await asyncio.to_thread(sign_in, "vera"))
    greeting = await viewer.open()
    frame = await viewer.watch(queue.id)
    await viewer.leave()
    for message in (greeting, frame):
        assert message["now"] / 1000 == pytest.approx(store.now().timestamp(), abs=60)
    (row,) = frame["rows"]
    assert 0 <= frame["now"] - row["oldest"] < 60_000
