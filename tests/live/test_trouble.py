"""A store that cannot be read is said so, and what comes after is whole again."""

import asyncio
from collections.abc import Iterator

import pytest

from pqadmin.live import monitor as monitors
from pqadmin.live.monitor import Monitor
from pqadmin.live.words import words
from queues import Queue, Store
from queues.errors import StoreFull, StoreUnavailable
from tests.live.conftest import PATIENCE, Join


class Gate:
    """Opens the store, or says that it cannot be reached."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.shut = False
        self.broken = False
        self.full = False

    def __call__(self) -> Store:
        if self.broken:
            raise RuntimeError("a bug")
        if self.shut:
            raise StoreUnavailable("The store's disk does not answer.")
        if self.full:
            raise StoreFull("The disk under the store {path} is full; nothing was written. Make room on it.", path="/v")
        return self.store


@pytest.fixture
def gate(store: Store) -> Gate:
    """The way to the store."""
    return Gate(store)


@pytest.fixture
def monitor(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """The process's monitor, behind the gate."""
    made = Monitor(gate)
    monkeypatch.setattr(monitors, "_monitor", made)
    yield made
    made.shutdown()


async def test_why_a_store_is_away_is_said_in_the_languages_of_the_site(
    store: Store, join: Join, gate: Gate, monitor: Monitor
) -> None:
    viewer = await join()
    await viewer.watch(store.create_queue("jobs").id)
    gate.full = True
    await asyncio.to_thread(store.queue("jobs").push, b"x", priority=1)
    told = await viewer.until(lambda message: message["t"] == "store")
    assert told["message"] == "The disk under the store /v is full; nothing was written. Make room on it."
    assert told["said"] == {"zh-hans": "存储 /v 所在的磁盘已满；没有写入任何内容。请腾出空间。"}


async def test_a_store_that_goes_away_and_comes_back(
    store: Store, jobs: Queue, join: Join, gate: Gate, monitor: Monitor
) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)

    gate.shut = True
    await asyncio.to_thread(jobs.push, b"x", priority=1)
    told = await viewer.until(lambda message: message["t"] == "store")
    assert told["message"] == "The store's disk does not answer."
    assert told["since"] == int(monitor.checked * 1000), "numbers are as old as the last reading, not as the failure"
    late = await join()
    await late.send({"t": "watch", "topic": "overview", "queues": [str(jobs.id)]})
    assert (await late.until(lambda message: message["t"] == "store"))["since"] == told["since"]

    again = await viewer.until(lambda message: message["t"] == "store")
    assert again["since"] == told["since"]
    assert again["now"] > told["now"], "a server in trouble is not silent"

    gate.shut = False
    for each in (viewer, late):
        frame = await each.frame()
        assert frame["full"]
        assert frame["rows"][0]["ready"] == 1


async def test_a_store_that_is_away_from_the_start(store: Store, jobs: Queue, join: Join, gate: Gate) -> None:
    gate.shut = True
    viewer = await join()
    await viewer.send({"t": "watch", "topic": "queue:jobs"})
    answer = await viewer.until(lambda message: message["t"] in ("error", "store"))
    assert "does not answer" in answer["message"]

    gate.shut = False
    assert (await viewer.watch_queue("jobs"))["rows"][0]["id"] == str(jobs.id)


async def test_a_viewer_after_an_outage_is_not_told_of_it(
    jobs: Queue, join: Join, gate: Gate, monitor: Monitor
) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)
    gate.shut = True
    await asyncio.to_thread(jobs.push, b"x", priority=1)
    await viewer.until(lambda message: message["t"] == "store")
    await viewer.leave()
    async with asyncio.timeout(PATIENCE):
        while monitor.running:
            await asyncio.sleep(0.01)
    gate.shut = False
    late = await join()
    await late.send({"t": "watch", "topic": "overview", "queues": [str(jobs.id)]})
    assert (await late.next())["t"] == "frame"


async def test_a_page_gets_the_error(gate: Gate, monitor: Monitor) -> None:
    gate.shut = True
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(monitor.refresh)
    gate.shut = False
    await asyncio.to_thread(monitor.refresh)


async def test_an_error_of_our_own_is_told_as_a_code_that_pages_have_words_for(
    store: Store, jobs: Queue, join: Join, gate: Gate, monitor: Monitor
) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)
    gate.broken = True
    told = await viewer.until(lambda message: message["t"] == "store")
    assert "internal error" in words()[told["message"]]
