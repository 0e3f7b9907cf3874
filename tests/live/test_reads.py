"""What watching costs the store: the same for one viewer and for many, and nothing while nothing changes."""

import asyncio
from itertools import count

import pytest

from pqadmin.live import subscription
from pqadmin.live.board import consistent_cuts, rates
from pqadmin.live.monitor import Monitor
from queues import Store
from tests.live.conftest import PATIENCE, Join, Viewer


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates fall and beats come sooner, so that quiet comes sooner."""
    monkeypatch.setattr(rates, "WINDOW", 1.5)
    monkeypatch.setattr(subscription, "BEAT", 0.4)


def reads(store: Store) -> int:
    """Count the key-value reads of this process so far."""
    return store.context.kv.reads()


async def settle(store: Store, viewers: list[Viewer]) -> None:
    """Wait until every viewer was told that nothing changes."""
    await asyncio.gather(*(viewer.until(lambda message: message["t"] == "beat") for viewer in viewers))


async def cost_of_a_push(store: Store, viewers: list[Viewer], name: str, depth: int) -> int:
    """Count the reads from a push until every viewer has seen it and all is quiet again."""
    queue = store.queue(name)
    before = reads(store)
    await asyncio.to_thread(queue.push, b"x", priority=1)
    for viewer in viewers:
        await viewer.frame(lambda frame: any(row["ready"] == depth for row in frame["rows"]))
    await settle(store, viewers)
    return reads(store) - before


async def test_one_viewer_and_many_cost_the_same(store: Store, join: Join, monitor: Monitor) -> None:
    ids = [store.create_queue(f"q{n}").id for n in range(20)]
    viewers = [await join()]
    await viewers[0].watch(*ids)
    await settle(store, viewers)
    alone = await cost_of_a_push(store, viewers, "q3", 1)

    before = reads(store)
    for _ in range(15):
        viewers.append(await join())
        await viewers[-1].watch(*ids)
    assert reads(store) == before, "a screen that is watched already is not read again"

    await settle(store, viewers)
    assert await cost_of_a_push(store, viewers, "q3", 2) == alone


async def test_a_rate_that_rose_is_told_to_be_zero_again_though_nothing_changes(
    store: Store, join: Join, monitor: Monitor
) -> None:
    jobs = store.create_queue("jobs")
    viewer = await join()
    await viewer.watch(jobs.id)
    await settle(store, [viewer])
    await asyncio.to_thread(jobs.push, b"x", priority=1)
    await viewer.frame(lambda frame: any(row["in"] for row in frame["rows"]))
    await viewer.frame(lambda frame: any(row["in"] == 0 for row in frame["rows"]))


async def test_an_idle_monitor_reads_nothing(store: Store, join: Join, monitor: Monitor) -> None:
    ids = [store.create_queue(f"q{n}").id for n in range(20)]
    on_screen, unseen = ids[:10], ids[10:]
    viewer = await join()
    frame = await viewer.watch(*on_screen)
    while frame["total"]["unread"]:
        frame = await viewer.frame()
    assert all(monitor.board.ready(i) == 0 for i in unseen)
    await settle(store, [viewer])

    before = reads(store)
    first = await viewer.until(lambda message: message["t"] == "beat")
    # It still vouches for what is on the screen.
    await viewer.until(lambda message: message["t"] == "beat" and message["checked"] > first["checked"])

    assert reads(store) == before


async def test_queues_on_no_screen_are_swept(store: Store, join: Join, monitor: Monitor) -> None:
    seen, unseen = store.create_queue("seen"), store.create_queue("unseen")
    viewer = await join()
    await viewer.watch(seen.id)

    await asyncio.to_thread(unseen.push, b"x", priority=1)

    frame = await viewer.frame(lambda frame: frame["total"]["ready"] == 1)
    assert all(row["name"] == "seen" for row in frame["rows"])  # a rate that becomes known rides along
    assert frame["total"]["queues"] == 2


async def test_pages_read_at_most_once_for_a_burst(store: Store) -> None:
    moments = count()
    monitor = Monitor(lambda: store, clock=lambda: next(moments) / 1_000)  # each look at the clock takes a millisecond
    for n in range(30):
        store.create_queue(f"q{n}")
    await asyncio.to_thread(monitor.refresh)
    assert len(monitor.overview().rows) == 30

    before = reads(store)
    await asyncio.gather(*(asyncio.to_thread(monitor.refresh) for _ in range(20)))
    assert reads(store) - before <= 32, "one reading serves many pages"

    await asyncio.to_thread(store.queue("q7").push, b"x", priority=1)
    async with asyncio.timeout(PATIENCE):
        while sum(row.status.totals.ready for row in monitor.overview().rows) != 1:
            await asyncio.to_thread(monitor.refresh)


def test_what_a_screen_has_read_the_recorder_of_histories_does_not_read_again(store: Store) -> None:
    jobs, recorder = store.create_queue("jobs"), store.recorder()
    for _ in range(2):
        jobs.push(b"x", priority=1)
        screen = consistent_cuts.read(store, [jobs.id], previous=None, ends_of=[], known_ends=[])
        before = reads(store)
        recorder.look()
    assert reads(store) - before <= 4, "whether there are other queues, the change of this one, waits of a new minute"
    assert screen.snapshot.queues[jobs.id].totals.ready == 2
