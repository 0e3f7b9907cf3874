"""What a viewer sees is what their scope sees: rows, sums and groups alike, and no longer than it is so."""

import asyncio
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role, grant
from pqadmin.live.monitor import Monitor
from pqadmin.wall.frame_json import row as wall_row
from queues import Store
from tests.live.conftest import Join, SignIn, Viewer


@pytest.fixture
def engine() -> str:
    """One engine: rights are checked above the store."""
    return "embedded"


def give(name: str, *globs: str) -> None:
    """Give a person these queues to see, and nothing else."""
    user = User.objects.get(username=name)
    grant(user, Role.NONE)
    Grant.objects.filter(user=user).delete()
    for glob in globs:
        Grant.objects.create(user=user, glob=glob, role=Role.VIEWER, given_at=timezone.now())


async def seat(sign_in: SignIn, name: str, *globs: str) -> Viewer:
    """Open a socket of a person that sees these queues."""
    cookie = await asyncio.to_thread(sign_in, name)
    await asyncio.to_thread(give, name, *globs)
    viewer = Viewer(cookie)
    await viewer.open()
    return viewer


async def test_rows_and_sums_are_of_what_is_seen(store: Store, sign_in: SignIn, monitor: Monitor) -> None:
    eu = store.create_queue("eu:orders")
    us = store.create_queue("us:orders")
    eu.push(b"x", priority=1)
    us.push_many([(b"x", 1)] * 5)
    viewer = await seat(sign_in, "ed", "eu:*")

    frame = await viewer.watch(eu.id, us.id, groups=["eu:", "us:"])
    assert [row["name"] for row in frame["rows"]] == ["eu:orders"]
    assert frame["gone"] == [str(us.id)], "as if there were no such queue"
    assert (frame["total"]["queues"], frame["total"]["ready"]) == (1, 1)
    assert {group["label"]: group["ready"] for group in frame["groups"]} == {"eu:": 1, "us:": 0}

    await viewer.send({"t": "watch", "topic": "queue:us:orders"})
    refused = await viewer.until(lambda message: message["t"] == "error")
    assert refused["code"] == "unknown-queue"
    await viewer.leave()


async def test_a_renamed_queue_leaves_the_screens_of_people_without_the_right(
    store: Store, sign_in: SignIn, monitor: Monitor
) -> None:
    orders = store.create_queue("eu:orders")
    viewer = await seat(sign_in, "ed", "eu:*")
    await viewer.watch(orders.id)
    await asyncio.to_thread(store.rename_queue, "eu:orders", "us:orders")
    frame = await viewer.frame(lambda frame: bool(frame["gone"]))
    assert (frame["rows"], frame["gone"]) == ([], [str(orders.id)])
    assert "us:orders" not in str(viewer.seen)
    await viewer.leave()


async def test_an_open_socket_loses_what_its_user_loses_and_gets_what_they_get(
    store: Store, sign_in: SignIn, monitor: Monitor
) -> None:
    eu, us = store.create_queue("eu:orders"), store.create_queue("us:orders")
    viewer = await seat(sign_in, "ed", "eu:*", "us:*")
    frame = await viewer.watch(eu.id, us.id, grow=True, complete=True)
    assert frame["total"]["queues"] == 2

    await asyncio.to_thread(give, "ed", "eu:*")
    frame = await viewer.frame(lambda frame: bool(frame["gone"]))
    assert frame["gone"] == [str(us.id)]
    assert frame["total"]["queues"] == 1
    await asyncio.to_thread(give, "ed", "eu:*", "us:*")
    frame = await viewer.frame(lambda frame: any(row["name"] == "us:orders" for row in frame["rows"]))
    assert frame["total"]["queues"] == 2
    await viewer.leave()


async def test_a_new_queue_comes_to_the_screens_of_people_with_the_right(
    store: Store, join: Join, sign_in: SignIn, monitor: Monitor
) -> None:
    first = store.create_queue("eu:orders")
    ed, everything = await seat(sign_in, "ed", "eu:*"), await join()
    for viewer in (ed, everything):
        await viewer.watch(first.id, grow=True)
    us = await asyncio.to_thread(store.create_queue, "us:new")
    await everything.frame(lambda frame: any(row["name"] == "us:new" for row in frame["rows"]))
    await asyncio.to_thread(store.create_queue, "eu:new")
    for viewer in (ed, everything):
        await viewer.frame(lambda frame: any(row["name"] == "eu:new" for row in frame["rows"]))
    assert "us:new" not in str(ed.seen)
    assert str(us.id) not in str([frame["gone"] for frame in ed.seen if frame["t"] == "frame"])
    await ed.leave()


async def test_equal_scopes_share_one_sum(store: Store, join: Join, sign_in: SignIn, monitor: Monitor) -> None:
    eu = store.create_queue("eu:orders")
    one, other = await seat(sign_in, "ed", "eu:*"), await seat(sign_in, "eve", "eu:*")
    everything = await join()
    for viewer in (one, other, everything):
        await viewer.watch(eu.id)
    tick = monitor.hub.tick
    assert len(tick.sums) == 2
    for viewer in (one, other):
        await viewer.leave()


async def test_groups_are_live(store: Store, join: Join, monitor: Monitor) -> None:
    new, old = store.create_queue("eu:new"), store.create_queue("eu:old")
    viewer = await join()
    frame = await viewer.watch(new.id, groups=["eu:"])
    while frame["total"]["unread"]:
        frame = await viewer.frame()
    await asyncio.to_thread(old.push, b"x", priority=1)
    frame = await viewer.frame(lambda frame: any(group["ready"] == 1 for group in frame.get("groups", ())))
    assert frame["groups"][0]["queues"] == 2
    await viewer.raw('{"t":"watch","topic":"overview","queues":[],"groups":[1]}')
    assert (await viewer.until(lambda message: message["t"] == "error"))["code"] == "bad-field"


@pytest.mark.parametrize(
    ("record", "reason", "chinese"),
    [
        (
            b"\x07nonsense",
            "^A record in the store was written by a newer pqadmin; use that release.$",
            "^存储中有一条记录由更新的 pqadmin 写入",
        ),
        (b"\x01\x00\x00\x02[]", r"^Its bytes are damaged \(\w+\).$", r"^它的字节已损坏（\w+）。$"),
    ],
)
async def test_a_queue_that_cannot_be_read_says_so_in_the_languages_of_the_site_and_harms_no_other(
    store: Store, join: Join, monitor: Monitor, record: bytes, reason: str, chinese: str
) -> None:
    good, bad = store.create_queue("good"), store.create_queue("bad")
    good.push(b"x", priority=1)

    def damage(tr: Any) -> None:
        tr.set(store.context.keyspace.configs.key(bad.id), record)
        tr.add(store.context.keyspace.queue(bad.id).change, 1)

    store.transact(damage)
    viewer = await join()
    await viewer.watch(good.id, bad.id)
    assert viewer.rows[str(good.id)]["ready"] == 1
    row = viewer.rows[str(bad.id)]
    assert (row["name"], row["level"], row["mark"], row["ready"]) == ("bad", "unknown", "unreadable", None)
    assert re.search(reason, row["unreadable"])
    assert row["said"].keys() == {"zh-hans"}
    assert re.search(chinese, row["said"]["zh-hans"])
    assert "said" not in viewer.rows[str(good.id)]
    assert json.loads(wall_row(json.dumps(row)))["said"] == row["said"], "a wall has its own language"
    frame = await viewer.watch(good.id, bad.id)
    assert frame["total"]["levels"]["unknown"] == 1
