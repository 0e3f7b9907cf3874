"""What viewers receive: whole frames, changes, both ends, new and gone queues."""

import asyncio
import json
from typing import Any

import pytest

from pqadmin.live.monitor import Monitor
from queues import Queue, Store
from tests.live.conftest import PATIENCE, Join


@pytest.fixture
def engine() -> str:
    """One engine: frames are made of statuses, which `tests/conformance` compares on each."""
    return "embedded"


async def test_the_first_frame_holds_every_queue_of_the_screen(store: Store, join: Join) -> None:
    jobs = store.create_queue("orders:eu:jobs")
    mail = store.create_queue("mail", kind="fifo")
    jobs.push_many([(b"low", 1), (b"high", 9)])
    mail.enqueue(b"\xff\xfe\x00")

    frame = await (await join()).watch(jobs.id, mail.id)

    rows = {row["name"]: row for row in frame["rows"]}
    assert rows["orders:eu:jobs"]["ready"] == 2
    assert rows["orders:eu:jobs"]["min"]["text"] == "low"
    assert rows["orders:eu:jobs"]["max"]["priority"] == "9"
    assert rows["orders:eu:jobs"]["url"] == "/queues/orders:eu:jobs/"
    assert rows["mail"]["kind"] == "fifo"
    assert rows["mail"]["min"]["text"] == "ff fe 00"
    assert rows["mail"]["mix"] == []
    assert frame["total"]["ready"] == 3
    assert frame["total"]["queues"] == 2


async def test_a_change_arrives_as_a_frame_with_that_queue_alone(store: Store, join: Join) -> None:
    jobs, other = store.create_queue("jobs"), store.create_queue("other")
    viewer = await join()
    await viewer.watch(jobs.id, other.id)
    while any(row["in"] is None for row in viewer.rows.values()):  # a rate that becomes known is a change too
        await viewer.frame()

    await asyncio.to_thread(jobs.push, b"x", priority=3)

    frame = await viewer.frame(lambda frame: bool(frame["rows"]))
    assert [(row["name"], row["ready"]) for row in frame["rows"]] == [("jobs", 1)]
    assert not frame["full"]


async def test_a_queue_page_shows_five_items_of_both_ends(jobs: Queue, join: Join) -> None:
    jobs.push_many([(b"v%d" % n, n) for n in range(8)])
    viewer = await join()

    frame = await viewer.watch_queue("jobs")
    assert [item["text"] for item in frame["ends"]["min"]] == ["v0", "v1", "v2", "v3", "v4"]
    assert [item["text"] for item in frame["ends"]["max"]] == ["v7", "v6", "v5", "v4", "v3"]

    await asyncio.to_thread(jobs.pop_max)
    frame = await viewer.frame(lambda frame: any(row["ready"] == 7 for row in frame["rows"]))
    assert [item["priority"] for item in frame["ends"]["max"]] == ["6", "5", "4", "3", "2"]


async def test_a_queue_page_shows_consumers_and_what_their_heartbeats_tell(
    store: Store, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqadmin.live.screens.CONSUMERS_EVERY", 0.05)
    jobs, presence = store.create_queue("jobs"), store.context.presence
    viewer = await join()
    assert (await viewer.watch_queue("jobs"))["ends"]["consumers"]["none"] == "unknown"

    await asyncio.to_thread(jobs.pop_min)
    await asyncio.to_thread(presence.beat)
    frame = await viewer.frame(lambda frame: frame["ends"]["consumers"]["count"] == 1)
    (consumer,) = frame["ends"]["consumers"]["live"]
    assert (consumer["holds"], consumer["waiting"]) == (0, 0)

    with jobs.opened.consumption.waits(3):
        await asyncio.to_thread(presence.beat)
        change = frame["rows"][0]["change"]
        frame = await viewer.frame(lambda frame: frame["ends"]["consumers"]["live"][0]["waiting"] == 3)
    assert frame["rows"][0]["change"] == change

    await asyncio.to_thread(presence.stop)
    frame = await viewer.frame(lambda frame: frame["ends"]["consumers"]["none"] == "closed")
    assert frame["ends"]["consumers"]["ended"]["id"] == consumer["id"]


async def test_a_queue_page_shows_the_queue_that_has_its_name_now(
    store: Store, join: Join, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqadmin.live.monitor.PAGE_PAUSE", 60.0)
    monkeypatch.setattr("pqadmin.live.monitor.PAGE_SHARE", 1e9)
    store.create_queue("jobs").push(b"old", priority=1)
    await asyncio.to_thread(monitor.refresh)
    await asyncio.to_thread(store.actions("ann").delete_queue, "jobs", confirm="jobs")
    jobs = await asyncio.to_thread(store.create_queue, "jobs")
    jobs.push(b"x", priority=1)
    store.create_queue("mail").push(b"y", priority=1)

    for name, text in (("jobs", "x"), ("mail", "y")):
        frame = await (await join()).watch_queue(name)
        assert [row["name"] for row in frame["rows"]] == [name]
        assert [item["text"] for item in frame["ends"]["min"]] == [text]


async def test_an_overview_and_a_queue_page_show_the_same_queue(jobs: Queue, join: Join) -> None:
    jobs.push(b"x", priority=1)
    one, two = await join(), await join()
    await one.watch(jobs.id)

    frame = await two.watch_queue("jobs")

    assert [item["text"] for item in frame["ends"]["min"]] == ["x"]


async def test_new_queues_join_a_screen_that_grows(store: Store, join: Join) -> None:
    viewer = await join()
    frame = await viewer.watch(grow=True, complete=True)
    assert frame["rows"] == []

    made = await asyncio.to_thread(store.create_queue, "new")

    frame = await viewer.frame(lambda frame: bool(frame["rows"]))
    assert [(row["id"], row["name"]) for row in frame["rows"]] == [(str(made.id), "new")]
    await asyncio.to_thread(made.push, b"x", priority=1)
    await viewer.frame(lambda frame: any(row["ready"] == 1 for row in frame["rows"]))


@pytest.mark.slow
async def test_the_age_of_the_sum_is_told_though_nothing_changes(store: Store, join: Join) -> None:
    seen, _ = store.create_queue("seen"), store.create_queue("unseen")
    viewer = await join()
    first = await viewer.watch(seen.id)
    told = first["as_of"]
    for _ in range(2):  # a queue that holds still is known to do so
        beat = await viewer.until(lambda message, told=told: message["t"] == "beat" and message["as_of"] != told)
        assert told < beat["as_of"] <= beat["now"]
        told = beat["as_of"]


async def test_a_complete_screen_learns_of_queues_made_before_it_watched(store: Store, join: Join) -> None:
    first, second = store.create_queue("first"), store.create_queue("second")

    frame = await (await join()).watch(first.id, grow=True, complete=True)

    assert {row["id"] for row in frame["rows"]} == {str(first.id), str(second.id)}


async def test_a_deleted_queue_is_gone_and_a_restored_one_is_back(store: Store, jobs: Queue, join: Join) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)

    trash_id = await asyncio.to_thread(store.delete_queue, "jobs")
    frame = await viewer.frame(lambda frame: bool(frame["gone"]))
    assert frame["gone"] == [str(jobs.id)]

    await asyncio.to_thread(store.restore, trash_id)
    frame = await viewer.frame(lambda frame: bool(frame["rows"]))
    assert frame["rows"][0]["name"] == "jobs"


async def test_a_renamed_queue_keeps_its_row(store: Store, jobs: Queue, join: Join) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)

    await asyncio.to_thread(store.rename_queue, "jobs", "tasks")

    frame = await viewer.frame(lambda frame: any(row["name"] == "tasks" for row in frame["rows"]))
    assert frame["rows"][0]["id"] == str(jobs.id)
    assert frame["rows"][0]["url"] == "/queues/tasks/"


async def test_pause_and_resume_show(jobs: Queue, join: Join) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)

    await asyncio.to_thread(jobs.pause, reason="ledger \u202eclosing", by="ops")
    frame = await viewer.frame(lambda frame: any(row["pause"] for row in frame["rows"]))
    assert frame["rows"][0]["mark"] == "paused"
    assert frame["rows"][0]["pause"]["reason"] == "ledger ⟨202E⟩closing"

    await asyncio.to_thread(jobs.resume)
    await viewer.frame(lambda frame: any(row["pause"] is None for row in frame["rows"]))


async def test_hostile_and_huge_values_are_safe_text(jobs: Queue, join: Join) -> None:
    jobs.push(b"<script>alert(1)</script>\n\x1b[31m" + "\u202e".encode() + b"x" * 80_000, priority=-(10**600))
    jobs.push(b"", priority=2**200)

    frame = await (await join()).watch(jobs.id)

    row = frame["rows"][0]
    assert row["min"]["size"] > 80_000
    assert row["min"]["cut"]
    assert len(json.dumps(row)) < 4_000
    assert "\x1b" not in row["min"]["text"]
    assert "\u202e" not in row["min"]["text"]
    assert len(row["min"]["priority"]) < 20
    assert row["max"]["text"] == ""


async def test_two_viewers_share_one_serialization(store: Store, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    from pqadmin.live import frame_json

    jobs = store.create_queue("jobs")
    viewers = [await join() for _ in range(5)]
    for viewer in viewers:
        await viewer.watch(jobs.id)
    written: list[dict[str, Any]] = []
    real = frame_json.row

    def counted(row: object) -> str:
        text = real(row)
        written.append(json.loads(text))
        return text

    monkeypatch.setattr(frame_json, "row", counted)
    await asyncio.to_thread(jobs.push, b"x", priority=1)
    for viewer in viewers:
        (row,) = (await viewer.frame(lambda f: any(row["ready"] == 1 for row in f["rows"])))["rows"]
        assert written.count(row) == 1, "what changed is written once, however many see it"


async def test_more_screens_than_one_transaction_reads_stay_whole(store: Store, join: Join) -> None:
    ids = [store.create_queue(f"q{n}").id for n in range(620)]
    one, two, three = await join(), await join(), await join()
    assert len((await one.watch(*ids[:400]))["rows"]) == 400
    assert len((await two.watch(*ids[220:]))["rows"]) == 400
    assert len((await three.watch(*ids[300:310]))["rows"]) == 10

    await asyncio.to_thread(store.queue("q300").push, b"x", priority=1)

    for viewer in (one, two, three):
        await viewer.frame(lambda frame: any(row["ready"] == 1 for row in frame["rows"]))


async def test_the_monitor_runs_only_while_a_person_looks(jobs: Queue, join: Join, monitor: Monitor) -> None:
    assert not monitor.running
    one, two = await join(), await join()
    await one.watch(jobs.id)
    assert monitor.running
    await one.leave()
    assert monitor.running
    await two.leave()
    async with asyncio.timeout(PATIENCE):
        while monitor.running:
            await asyncio.sleep(0)

    await asyncio.to_thread(jobs.push, b"no viewers", priority=1)
    again = await join()
    frame = await again.watch(jobs.id)
    assert frame["rows"][0]["ready"] == 1, "never an old frame"
    await asyncio.to_thread(jobs.push, b"x", priority=1)
    await again.frame(lambda frame: any(row["ready"] == 2 for row in frame["rows"]))


async def test_a_row_tells_that_its_name_looks_like_another_one(store: Store, join: Join) -> None:
    queues = [store.create_queue("orders"), store.create_queue("\u043erders")]
    frame = await (await join()).watch(*(queue.id for queue in queues))
    rows = {row["name"]: row for row in frame["rows"]}
    assert "alike" not in rows["orders"]
    assert rows["\u043erders"]["alike"] == "\u043e U+043E CYRILLIC SMALL LETTER O"
