"""Attached queues on live screens: other programs' writes show without notice, and depths say when they counted."""

import asyncio

import fdb.tuple
import pytest

from pqadmin.live import subscription
from pqadmin.live.monitor import Monitor
from queues import Queue, Store
from tests.live.conftest import PATIENCE, Join
from tests.live.test_reads import reads
from tests.others import PREFIX, Others


@pytest.fixture
def engine() -> str:
    """One engine: statuses of attached queues are compared in `tests/conformance/attached` on each."""
    return "embedded"


@pytest.fixture
def others(store: Store) -> Others:
    """A program that pushed three items long before us."""
    program = Others(store)
    program.push((5, b"five"), (1, b"one"), (9, b"nine"))
    return program


@pytest.fixture
def legacy(store: Store, others: Others) -> Queue:
    """Its items as a queue."""
    return store.attach("legacy", prefix=PREFIX)


@pytest.mark.slow
async def test_a_row_is_marked_and_counting_before_it_has_a_depth(legacy: Queue, join: Join) -> None:
    viewer = await join()
    frame = await viewer.watch(legacy.id)
    (row,) = frame["rows"]
    assert row["attached"]["prefix"] == "('legacy', 'jobs')"
    assert (row["level"], row["mark"], row["trend"]) == ("unknown", "attached", "attached")
    assert (row["in"], row["out"], row["oldest"], row["mix"]) == (None, None, None, [])
    assert (row["min"]["text"], row["max"]["text"]) == ("one", "nine")
    assert row["min"]["since"] is None
    if row["ready"] is None:  # never a zero for what was not counted
        assert row["attached"]["counted"] is None
        assert frame["total"]["attached"] == {"queues": 1, "ready": 0, "counted": None, "uncounted": 1}

    frame = await viewer.frame(lambda frame: viewer.rows[str(legacy.id)]["ready"] == 3)
    counted = viewer.rows[str(legacy.id)]["attached"]["counted"]
    assert 0 <= frame["now"] - counted < 60_000
    assert frame["total"]["attached"] == {"queues": 1, "ready": 3, "counted": counted, "uncounted": 0}


async def test_what_other_programs_push_and_take_shows_at_both_ends(legacy: Queue, others: Others, join: Join) -> None:
    viewer = await join()
    await viewer.watch(legacy.id)
    await asyncio.to_thread(others.push, (-3, b"first of all"), (40, b"last of all"))
    await viewer.frame(
        lambda frame: any(
            (row["min"]["priority"], row["max"]["text"]) == ("-3", "last of all") for row in frame["rows"]
        )
    )
    assert await asyncio.to_thread(others.take) == b"first of all"
    await viewer.frame(lambda frame: any(row["min"]["text"] == "one" for row in frame["rows"]))
    await viewer.frame(lambda frame: viewer.rows[str(legacy.id)]["ready"] == 4)


async def test_an_attached_queue_may_be_empty_and_says_so_at_once(store: Store, join: Join) -> None:
    empty = store.attach("empty", prefix=b"\x01nothing here\x00", kind="fifo")
    (row,) = (await (await join()).watch(empty.id))["rows"]
    assert row["ready"] == 0
    assert row["attached"]["counted"] is not None
    assert row["attached"]["prefix"] == "(b'nothing here',)"
    assert row["min"] is row["max"] is None


@pytest.mark.slow
async def test_items_between_the_ends_are_live_on_the_queues_own_page(
    legacy: Queue, others: Others, join: Join
) -> None:
    viewer = await join()
    await viewer.watch_queue("legacy")
    await viewer.frame(lambda frame: viewer.rows[str(legacy.id)]["ready"] == 3)

    await asyncio.to_thread(others.push, (2, b"second"))

    frame = await viewer.frame(lambda frame: len(frame.get("ends", {}).get("min", ())) == 4)
    assert [item["text"] for item in frame["ends"]["min"]] == ["one", "second", "five", "nine"]
    assert [item["priority"] for item in frame["ends"]["max"]] == ["9", "5", "2", "1"]
    await viewer.frame(lambda frame: viewer.rows[str(legacy.id)]["ready"] == 4)


async def test_any_key_and_any_value_is_bounded_text(store: Store, others: Others, join: Join) -> None:
    others.write(
        (fdb.tuple.pack(("<b>\u202e" * 20, 1, b"r")), fdb.tuple.pack(("dispatch", 71, 4.5))),
        (b"\xfe\xfdno tuple", b"<script>\x00\x1b"),
    )
    legacy = store.attach("legacy", prefix=PREFIX, priority_type="str")
    (row,) = (await (await join()).watch(legacy.id))["rows"]
    assert row["min"]["text"] == "('dispatch', 71, 4.5)"
    assert row["min"]["priority"].startswith("'<b>\\u202e")
    assert len(row["min"]["priority"]) < 20
    assert row["max"]["priority"] == "fefd6e6f20…06c65"
    assert "\x1b" not in row["max"]["text"]
    assert row["max"]["id"] == "key-" + b"\xfe\xfdno tuple".hex()


async def test_a_sum_says_what_of_it_is_counted(store: Store, legacy: Queue, join: Join) -> None:
    ours = store.create_queue("ours")
    ours.push_many([(b"x", 1)] * 4)
    viewer = await join()
    await viewer.watch(legacy.id, ours.id)
    frame = await viewer.frame(lambda frame: frame["total"]["ready"] == 7)
    assert frame["total"]["attached"]["ready"] == 3

    await asyncio.to_thread(ours.pop_min)
    frame = await viewer.frame(lambda frame: frame["total"]["ready"] == 6)
    assert (frame["total"]["attached"]["ready"], viewer.rows[str(ours.id)]["ready"]) == (3, 3)


async def test_an_attached_queue_on_nobodys_screen_is_not_read_again(
    store: Store, legacy: Queue, join: Join, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "BEAT", 0.4)
    monkeypatch.setattr("queues.status.attached_counts.LINGER", 0.2)
    seen = store.create_queue("seen")
    viewer = await join()
    frame = await viewer.watch(seen.id)
    while frame["total"]["unread"] or frame["total"]["attached"]["uncounted"]:
        frame = await viewer.frame()
    assert frame["total"]["attached"]["ready"] == 3, "it is counted once, for the sum"
    async with asyncio.timeout(PATIENCE):
        before = -1
        while before != (before := reads(store)):
            await viewer.until(lambda message: message["t"] == "beat")

    for _ in range(2):
        await viewer.until(lambda message: message["t"] == "beat")
    assert reads(store) == before


async def test_a_detached_queue_is_gone(store: Store, legacy: Queue, others: Others, join: Join) -> None:
    viewer = await join()
    await viewer.watch(legacy.id)
    await asyncio.to_thread(store.detach, "legacy")
    frame = await viewer.frame(lambda frame: bool(frame["gone"]))
    assert frame["gone"] == [str(legacy.id)]
    assert others.depth() == 3
