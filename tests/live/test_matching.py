"""A filtered overview is told which queues match, and the filter looks at each change once."""

import asyncio
from collections import Counter
from datetime import datetime

import pytest

from pqadmin.live.board import filters, totals
from pqadmin.live.board.filters import Filter
from pqadmin.live.board.rows import Row
from pqadmin.live.monitor import Monitor
from queues import Store
from tests.live.conftest import Join, Viewer
from tests.schemas import Message


@pytest.fixture
def engine() -> str:
    """One engine: filters look at rows, which are the same on each."""
    return "embedded"


def matching(count: int) -> object:
    return lambda frame: frame.get("matches") is not None and frame["matches"]["count"] == count


async def test_what_matches_joins_the_screen_and_what_does_not_is_named(store: Store, join: Join) -> None:
    first, second = store.create_queue("zz:a"), store.create_queue("zz:b")
    store.create_queue("other").push(b"x", priority=1)
    first.push(b"x", priority=1)
    viewer = await join()
    frame = await viewer.watch(first.id, grow=True, complete=True, filter="depth>0 zz")
    assert frame["matches"] == {"count": 1, "out": []}
    assert frame["total"]["queues"] == 3

    await asyncio.to_thread(second.push, b"x", priority=1)
    await until(viewer, lambda: names(viewer) == {"zz:a", "zz:b"})
    await asyncio.to_thread(lambda: store.create_queue("zz:c").push(b"x", priority=1))
    await until(viewer, lambda: names(viewer) == {"zz:a", "zz:b", "zz:c"})
    await asyncio.to_thread(first.pop_min)
    frame = await viewer.frame(lambda frame: bool((frame.get("matches") or {}).get("out")))
    assert frame["matches"] == {"count": 2, "out": [str(first.id)]}
    await asyncio.to_thread(first.push, b"x", priority=1)
    frame = await viewer.frame(lambda frame: "matches" in frame)
    assert frame["matches"] == {"count": 3, "out": []}


async def test_a_deleted_queue_matches_no_more(store: Store, join: Join) -> None:
    jobs = store.create_queue("jobs")
    viewer = await join()
    assert (await viewer.watch(jobs.id, filter="jobs"))["matches"]["count"] == 1
    await asyncio.to_thread(store.delete_queue, "jobs")
    frame = await viewer.frame(lambda frame: "matches" in frame)
    assert frame["matches"] == {"count": 0, "out": [str(jobs.id)]}


async def test_a_second_viewer_of_the_same_filter_gets_the_same(store: Store, join: Join) -> None:
    queues = [store.create_queue(f"zz:{n}") for n in range(3)]
    viewers = [await join(), await join()]
    for viewer in viewers:
        await viewer.watch(grow=True, complete=True, filter="zz")
        await until(viewer, lambda viewer=viewer: len(viewer.rows) == len(queues))


async def test_a_filter_by_favorites_is_not_followed(store: Store, join: Join) -> None:
    jobs = store.create_queue("jobs")
    frame = await (await join()).watch(jobs.id, grow=True, complete=True, filter="is:favorite")
    assert frame["matches"] is None


async def test_filters_beyond_the_bound_are_not_followed(
    store: Store, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "MAX_FILTERS", 1)
    jobs = store.create_queue("jobs")
    first, second = await join(), await join()
    assert (await first.watch(jobs.id, filter="jobs"))["matches"] == {"count": 1, "out": []}
    assert (await second.watch(jobs.id, filter="job"))["matches"] is None


async def test_a_filter_looks_once_at_each_change_for_any_number_of_sockets(
    store: Store, monitor: Monitor, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    passes = Filter.passes

    def counted(self: Filter, row: Row, now: datetime) -> bool:
        looks[row.status.name] += 1
        return passes(self, row, now)

    monkeypatch.setattr(filters.Filter, "passes", counted)
    queues = [store.create_queue(f"q{n}") for n in range(20)]
    queues[0].push(b"x", priority=1)
    viewers = [await join() for _ in range(5)]
    for viewer in viewers:
        await viewer.watch(queues[0].id, grow=True, complete=True, filter="depth>0")
    before = sum(looks.values())
    for n in range(1, 4):
        await asyncio.to_thread(queues[n].push, b"x", priority=1)
        for viewer in viewers:
            await until(viewer, lambda viewer=viewer, n=n: f"q{n}" in names(viewer))
    # A push changes a row twice or so: its depth, then its rate; not once for each socket.
    assert sum(looks.values()) - before < 100


def names(viewer: Viewer) -> set[str]:
    return {row["name"] for row in viewer.rows.values()}


async def until(viewer: Viewer, true: object) -> Message | None:
    message = None
    while not true():
        message = await viewer.frame()
    return message
