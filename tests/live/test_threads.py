"""A process that gets no thread for a while, at its limit of pids, goes on when it gets one."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from pqadmin.live import monitor as monitors
from pqadmin.live.monitor import Monitor
from pqadmin.live.threads import start_thread
from queues import Queue, Store
from tests.live.conftest import PATIENCE, Join


@pytest.fixture
def engine() -> str:
    """One engine: threads have nothing to do with it."""
    return "simulated"


class Threads:
    """Starts threads, but for those of some names."""

    def __init__(self) -> None:
        self.none_for: set[str] = set()
        self.asked: list[str] = []

    def __call__(self, work: Callable[[], None], name: str) -> threading.Thread:
        self.asked.append(name)
        if name in self.none_for:
            raise RuntimeError("can't start new thread")
        return start_thread(work, name)


@pytest.fixture
def threads() -> Threads:
    """The process's threads."""
    return Threads()


@pytest.fixture
def monitor(store: Store, threads: Threads, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """The process's monitor, with these threads."""
    made = Monitor(lambda: store, start=threads)
    monkeypatch.setattr(monitors, "_monitor", made)
    yield made
    made.shutdown()


async def test_viewers_are_told_that_the_monitor_does_not_run_until_it_does(
    jobs: Queue, join: Join, threads: Threads
) -> None:
    threads.none_for = {"pqadmin-monitor"}
    viewer = await join()
    await viewer.send({"t": "watch", "topic": "overview", "queues": [str(jobs.id)]})
    await viewer.until(lambda message: message["t"] == "store")
    threads.none_for = set()
    frame = await viewer.frame()
    assert [row["name"] for row in frame["rows"]] == ["jobs"]


async def test_without_a_thread_that_waits_for_changes_they_are_looked_for(
    jobs: Queue, join: Join, threads: Threads
) -> None:
    threads.none_for = {"pqadmin-watch-screens", "pqadmin-watch-rest"}
    viewer = await join()
    await viewer.watch(jobs.id)
    for depth in (1, 2):
        await asyncio.to_thread(jobs.push, b"x", priority=1)
        await viewer.frame(lambda frame: any(row["ready"] == depth for row in frame["rows"]))  # noqa: B023
    threads.none_for = set()
    await asyncio.to_thread(jobs.push, b"x", priority=1)
    await viewer.frame(lambda frame: any(row["ready"] == 3 for row in frame["rows"]))
    assert not [message for message in viewer.seen if message["t"] == "store"]


def test_pages_are_read_again_after_a_thread_was_refused(
    store: Store, monitor: Monitor, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        store.create_queue(name)
    threads.none_for = {"pqadmin-warm-up", "pqadmin-refresh", "pqadmin-overview"}
    read = threading.Event()
    monitor.warm_up(read.set)
    monitor.refresh()
    assert len(monitor.overview().rows) == 2
    monkeypatch.setattr(monitors, "PAGE_QUEUES", 1)
    store.queue("a").push(b"x", priority=1)

    def ask() -> None:
        monitor.outdated()
        monitor.refresh()
        monitor.board.put_directory(store.directory(), monitor.board.directory_change)
        monitor.board.hurry()
        monitor.overview()

    for _ in range(3):
        ask()
    threads.none_for = set()
    ask()
    assert read.wait(PATIENCE)
    assert [threads.asked.count(f"pqadmin-{name}") for name in ("refresh", "overview")] == [4, 4]
