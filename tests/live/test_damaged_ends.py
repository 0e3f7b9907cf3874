"""A damaged item at the end of one queue is that queue's matter: all other pages go on."""

import asyncio
from collections.abc import Callable

import pytest

from queues import Queue, Store
from queues.kv.port import Transaction
from queues.model.tuples import pack
from tests.live.conftest import Join

Damage = Callable[[bytes], bytes]
CUT: Damage = lambda suffix: suffix[:4]  # noqa: E731
LONGER: Damage = lambda suffix: suffix + b"\x01"  # noqa: E731


def damage(store: Store, queue: Queue, number: int, how: Damage) -> tuple[bytes, bytes]:
    """Damage the key of a ready item, and return what it was and is."""
    keys = queue.opened.keys
    ready = keys.generation(1).ready

    def write(tr: Transaction) -> tuple[bytes, bytes]:
        key, value = tr.get_range(*ready.all, limit=number + 1).wait()[number]
        damaged = ready.prefix + how(key[len(ready.prefix) :])
        tr.clear(key)
        tr.set(damaged, value)
        tr.add(keys.change, 1)
        return key, damaged

    return store.transact(write)


def repair(store: Store, queue: Queue, key: bytes, damaged: bytes) -> None:
    def write(tr: Transaction) -> None:
        tr.set(key, tr.get(damaged).wait() or b"")
        tr.clear(damaged)
        tr.add(queue.opened.keys.change, 1)

    store.transact(write)


@pytest.mark.parametrize("how", [CUT, LONGER])
@pytest.mark.parametrize("number", [0, 2])
async def test_a_damaged_key_is_told_on_its_page_and_all_other_pages_go_on(
    store: Store, join: Join, how: Damage, number: int
) -> None:
    good, bad = store.create_queue("good"), store.create_queue("bad")
    bad.push_many([(b"v%d" % n, n) for n in range(20)])
    viewer, other = await join(), await join()
    await viewer.watch(good.id, bad.id)
    was = await asyncio.to_thread(damage, store, bad, number, how)
    frame = await other.watch_queue("bad")
    assert (frame["ends"]["min"], frame["ends"]["max"]) == ([], [])
    assert frame["ends"]["unreadable"].startswith("Its bytes are damaged")
    for depth in (1, 2):
        await asyncio.to_thread(good.push, b"x", priority=1)
        await viewer.frame(lambda frame: any(row["ready"] == depth for row in frame["rows"]))  # noqa: B023
    await asyncio.to_thread(repair, store, bad, *was)
    frame = await other.frame(lambda frame: frame["ends"]["min"] != [])
    assert [item["text"] for item in frame["ends"]["min"]] == ["v0", "v1", "v2", "v3", "v4"]
    assert "unreadable" not in frame["ends"]
    assert not [message for each in (viewer, other) for message in each.seen if message["t"] == "store"]


@pytest.mark.parametrize("priority", [b"\xff\x00", (1, 2)])
async def test_a_key_with_a_priority_that_is_none_is_shown_as_it_is(
    store: Store, jobs: Queue, join: Join, priority: object
) -> None:
    jobs.push(b"v", priority=1)
    await asyncio.to_thread(damage, store, jobs, 0, lambda _: pack(priority, 1, b"r" * 20))
    viewer = await join()
    frame = await viewer.watch_queue("jobs")
    assert frame["ends"]["min"][0]["text"] == "v"
    assert frame["rows"][0]["min"]["priority"] == frame["ends"]["min"][0]["priority"] != ""


async def test_the_page_of_a_queue_that_cannot_be_read_gets_its_frame(store: Store, jobs: Queue, join: Join) -> None:
    viewer = await join()
    await viewer.watch_queue("jobs")

    def break_config(tr: Transaction) -> None:
        tr.set(jobs.opened.config_key, b"\x01\x00\x00\x02[]")
        tr.add(jobs.opened.keys.change, 1)

    await asyncio.to_thread(store.transact, break_config)
    frame = await viewer.frame(lambda frame: any(row["unreadable"] for row in frame["rows"]))
    assert frame["ends"]["unreadable"] == frame["rows"][0]["unreadable"]
