"""Server-sent events: what changes, for those that may see it, without a gap, and no longer than they may."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.accounts.roles import grant
from pqadmin.api import limits, request_caller
from pqadmin.api.events import feed as feeds
from pqadmin.api.events import stream as streams
from pqadmin.api.events.feed import Feed
from pqadmin.limits.concurrency import Places
from pqadmin.live import monitor as monitors
from pqadmin.live.board.board import Board
from queues import PriorityQueue, Store
from tests.api.conftest import Program, cheap_passwords, granted, in_thread, person, program, site, token
from tests.api.streams import PATIENCE, Stream

__all__ = ["cheap_passwords", "granted", "person", "program", "site", "token"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def jobs(site: Store) -> PriorityQueue:
    queue = site.create_queue("jobs")
    queue.configure(max_attempts=1)
    return queue


def die(queue: PriorityQueue, reason: str = "failed") -> str:
    """Have an item die; return its id."""
    queue.push(b"x", priority=1)
    lease = queue.lease()
    queue.release(lease, reason=reason)
    return lease.item.id


async def test_a_stream_begins_with_the_state_and_goes_on_with_changes(token: Any, jobs: PriorityQueue) -> None:
    secret = await in_thread(token)
    async with Stream(secret) as stream:
        assert stream.status == 200
        begun = await stream.until("complete")
        assert begun[0] == ("begin", {"queues": ["jobs"]})
        assert (begun[1][0], begun[1][1]["queue"], begun[1][1]["ready"]) == ("queue", "jobs", 0)
        await in_thread(jobs.push, b"x", priority=7)
        (*_, (_, shown)) = await stream.until("queue", lambda data: data["ready"] == 1)
        assert (shown["queue"], shown["min_priority"], shown["verdict"]["level"]) == ("jobs", 7, "ok")
        died = await in_thread(die, jobs, '{"password": "secret", "why": "late"}')
        (*_, (_, dead)) = await stream.until("dead")
        assert (dead["queue"], dead["id"], dead["attempts"]) == ("jobs", died, 1)
        assert "late" in dead["reason"]
        assert "secret" not in dead["reason"]


async def test_a_stream_after_a_time_without_any_begins_with_the_state_of_now(token: Any, jobs: PriorityQueue) -> None:
    secret = await in_thread(token)
    async with Stream(secret) as stream:
        await stream.until("complete")
    async with asyncio.timeout(PATIENCE):
        while monitors.get_monitor().running:
            await asyncio.sleep(0.001)
    await in_thread(jobs.push, b"x", priority=7)
    async with Stream(secret) as stream:
        begun = await stream.until("complete")
    assert [data["ready"] for kind, data in begun if kind == "queue"] == [1]


async def test_a_verdict_is_told_when_it_changes(token: Any, jobs: PriorityQueue) -> None:
    async with Stream(await in_thread(token)) as stream:
        await stream.until("complete")
        await in_thread(jobs.pause, reason="maintenance")
        (*_, (_, judged)) = await stream.until("verdict")
        assert (judged["queue"], judged["verdict"]["level"]) == ("jobs", "warning")
        assert [reason["code"] for reason in judged["verdict"]["reasons"]] == ["paused"]


async def test_new_renamed_and_deleted_queues_are_told(token: Any, site: Store, jobs: PriorityQueue) -> None:
    async with Stream(await in_thread(token)) as stream:
        await stream.until("complete")
        await in_thread(site.create_queue, "mail")
        await stream.until("queue", lambda data: data["queue"] == "mail")
        await in_thread(site.rename_queue, "mail", "post")
        found = await stream.until("queue", lambda data: data["queue"] == "post")
        assert ("queue", {"queue": "mail", "gone": True}) in found
        await in_thread(site.delete_queue, "post")
        await stream.until("queue", lambda data: data == {"queue": "post", "gone": True})


async def test_only_what_the_caller_sees_and_asks_for_is_told(
    token: Any, site: Store, jobs: PriorityQueue, granted: Callable[..., User]
) -> None:
    for name in ("orders:eu", "orders:us", "mail"):
        await in_thread(site.create_queue, name)
    owner = await in_thread(granted, Role.NONE, {"orders:*": Role.VIEWER, "jobs": Role.VIEWER}, "ann")
    secret = await in_thread(token, owner, queues=["orders:*", "mail"])
    async with Stream(secret) as all_of_them, Stream(secret, "queues=*:eu") as some:
        assert (await all_of_them.event())[1] == {"queues": ["orders:eu", "orders:us"]}
        assert (await some.event())[1] == {"queues": ["orders:eu"]}
        await all_of_them.until("complete")
        await some.until("complete")
        for name in ("jobs", "mail", "orders:us"):
            await in_thread(lambda name=name: site.queue(name).push(b"x", priority=1))
        await all_of_them.until("queue", lambda data: data["queue"] == "orders:us" and data["ready"] == 1)
        await in_thread(lambda: site.queue("orders:eu").push(b"x", priority=1))
        told = await all_of_them.until("queue", lambda data: data["queue"] == "orders:eu")
        assert {data["queue"] for _, data in told} <= {"orders:eu", "orders:us"}
        assert {data["queue"] for _, data in await some.until("queue")} == {"orders:eu"}


async def test_a_stream_goes_on_behind_the_last_event_without_a_gap(token: Any, jobs: PriorityQueue) -> None:
    secret = await in_thread(token)
    async with Stream(secret) as first:
        await first.until("complete")
        await in_thread(jobs.push, b"x", priority=1)
        await first.until("queue")
    died = await in_thread(die, jobs)  # while no stream is open
    async with Stream(secret, last=first.last) as second:
        found = await second.until("dead")
        assert "begin" not in [kind for kind, _ in found]
        assert found[-1][1]["id"] == died
        assert next(data for kind, data in found if kind == "queue")["dead"] == 1
    async with Stream(secret, last=second.last) as third:
        await in_thread(jobs.push, b"y", priority=2)
        (kind, data) = await third.event()
        assert (kind, data["ready"]) == ("queue", 2)


async def test_a_stream_of_another_process_begins_anew_and_tells_what_died_since(
    token: Any, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await in_thread(token)
    async with Stream(secret) as first:
        await first.until("complete")
    early = await in_thread(die, jobs)
    monkeypatch.setattr(monitors, "_monitor", None)  # as after a restart
    async with Stream(secret, last=first.last) as second:
        found = await second.until("complete")
        assert found[0][0] == "begin"
        assert [data["id"] for kind, data in found if kind == "dead"] == [early]
        late = await in_thread(die, jobs)
        assert (await second.until("dead"))[-1][1]["id"] == late
    async with Stream(secret, last="nonsense") as third:
        assert "dead" not in [kind for kind, _ in await third.until("complete")]


async def change(what: str, owner: User) -> None:
    match what:
        case "revoked":
            await Token.objects.filter(owner=owner).aupdate(revoked_at=timezone.now())
        case "expired":
            await Token.objects.filter(owner=owner).aupdate(expires_at=timezone.now() - timedelta(days=1))
        case "deactivated":
            await User.objects.filter(pk=owner.pk).aupdate(is_active=False)
        case "no rights":
            await in_thread(grant, owner, Role.NONE)
        case "no verb":
            await Token.objects.filter(owner=owner).aupdate(verbs=[Verb.PUSH])


async def test_a_quiet_stream_goes_on_from_where_it_is(
    token: Any, site: Store, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BEAT", 0.0)
    secret = await in_thread(token)
    await in_thread(site.create_queue, "mail")
    async with Stream(secret, "queues=mail") as quiet:
        await quiet.until("complete")
        begun = int(quiet.last.split(".")[1])
        await in_thread(jobs.push, b"x", priority=1)
        while int(quiet.last.split(".")[1]) == begun:
            fields = await quiet.block()
            assert "event" not in fields


async def test_a_store_that_cannot_be_read_is_told(token: Any, site: Store, jobs: PriorityQueue) -> None:
    async with Stream(await in_thread(token)) as stream:
        await stream.until("complete")
        await in_thread(site.close)
        (*_, (_, trouble)) = await stream.until("trouble")
        assert trouble["since"]
        assert "closed" in trouble["message"]


@pytest.mark.parametrize("what", ["revoked", "expired", "deactivated", "no rights", "no verb"])
async def test_a_stream_ends_with_the_right_to_it(
    what: str, token: Any, jobs: PriorityQueue, person: Callable[..., User]
) -> None:
    owner = await in_thread(person, Role.VIEWER, "ann")
    async with Stream(await in_thread(token, owner)) as stream:
        await stream.until("complete")
        await change(what, owner)
        await in_thread(jobs.push, b"x", priority=1)
        kind, problem = await stream.event()
        assert kind == "end"
        assert problem["code"] == ("Forbidden" if what.startswith("no ") else "Unauthenticated")
        assert await stream.event() == ("", None)


async def test_a_stream_ends_when_its_token_expires_by_the_clock(
    token: Any, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    time = [now]
    monkeypatch.setattr(request_caller, "credentials", request_caller.Credentials(clock=lambda: time[0]))
    secret = await in_thread(token)
    await Token.objects.aupdate(expires_at=now + timedelta(days=1))
    async with Stream(secret) as stream:
        await stream.until("complete")
        time[0] = now + timedelta(days=1)
        assert (await stream.event())[1]["detail"] == "The token has expired."


async def test_other_rights_are_followed_by_the_state_that_they_show(
    token: Any, site: Store, jobs: PriorityQueue, granted: Callable[..., User]
) -> None:
    await in_thread(site.create_queue, "mail")
    owner = await in_thread(granted, Role.NONE, {"jobs": Role.VIEWER}, "ann")
    async with Stream(await in_thread(token, owner)) as stream:
        assert (await stream.until("complete"))[0][1] == {"queues": ["jobs"]}
        await owner.grants.aupdate(glob="mail")
        assert await stream.event() == ("begin", {"queues": ["mail"]})


async def test_streams_at_once_are_limited_and_give_their_places_back(
    token: Any, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_of_tokens", Places(1))
    secret = await in_thread(token)
    async with Stream(secret) as first:
        await first.until("complete")
        async with Stream(secret) as second:
            assert second.status == 429
    async with Stream(secret) as third:
        assert third.status == 200


async def test_without_the_right_to_read_there_is_no_stream(token: Any, jobs: PriorityQueue, program: Program) -> None:
    async with Stream(await in_thread(token, verbs=[Verb.PUSH])) as stream:
        assert stream.status == 403
    async with Stream("pq_unknown") as stream:
        assert stream.status == 401
    assert (await program.get("events", params={"queues": "a/b"})).status_code == 422


def test_a_log_that_does_not_reach_back_says_so(site: Store) -> None:
    board, clock = Board(), [0.0]
    feed = Feed(board, most=3)
    queue = site.create_queue("jobs")

    def look() -> None:
        clock[0] += 1.0
        board.put_directory(site.directory(), site.snapshot(()).directory_change)
        board.apply(site.snapshot([queue.id], previous=board.previous([queue.id])), clock[0])
        feed.look(site, clock[0])

    feed.join(None, lambda: None)
    look()
    number, ((status, _),) = feed.state()
    assert (number, status.name) == (0, "jobs")
    for n in range(5):
        queue.push(b"x", priority=n)
        look()
    last, _ = feed.state()
    assert feed.after(number) is None
    assert feed.after(last + 1) is None
    assert [event.number for event in feed.after(last - 3) or ()] == [last - 2, last - 1, last]
    assert feed.after(last) == []
    look()
    assert feed.state()[0] == last  # nothing changed


def test_between_streams_the_board_keeps_no_changes_and_the_next_stream_is_told_them_all(site: Store) -> None:
    board, clock = Board(), [0.0]
    feed = Feed(board)
    queues = [site.create_queue(name) for name in ("kept", "lost", "rest")]

    def look() -> None:
        clock[0] += 1.0
        board.put_directory(site.directory(), site.snapshot(()).directory_change)
        ids = sorted(board.ids)
        board.apply(site.snapshot(ids, previous=board.previous(ids)), clock[0])
        feed.look(site, clock[0])

    feed.join("first", lambda: None)
    look()
    feed.leave("first")
    queues[0].push(b"x", priority=1)
    site.delete_queue("lost")
    look()
    assert board.take_touched() is None, "no stream is open"
    feed.leave("first")
    number, _ = feed.state()
    feed.join("second", lambda: None)
    look()
    told = [(event.kind, event.queue, "gone" in json.loads(event.text)) for event in feed.after(number) or ()]
    assert ("queue", "kept", False) in told
    assert ("queue", "lost", True) in told
    assert "rest" not in [queue for _, queue, _ in told]


def test_each_of_many_items_that_die_is_told_once(site: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_DEAD_AT_ONCE", 3)
    monkeypatch.setattr(feeds, "_DEAD_KEPT", 2)
    board, now = Board(), 0.0
    feed = Feed(board)
    queue = site.create_queue("jobs")
    queue.configure(max_attempts=1)
    feed.join(None, lambda: None)
    died: set[str] = {die(queue)}  # before the first look: not told
    for n in range(30):
        now += 1.0
        board.put_directory(site.directory(), site.snapshot(()).directory_change)
        board.apply(site.snapshot([queue.id], previous=board.previous([queue.id])), now)
        feed.look(site, now)
        if n % 10 == 0:
            queue.push_many([(b"x", 1)] * 8)
            leases = queue.lease_many(8)
            site.transact(lambda tr, leases=leases: [queue.release(lease, tr=tr) for lease in leases])  # at once
            died |= {lease.item.id for lease in leases}
    told = [json.loads(event.text)["id"] for event in feed.after(0) or () if event.kind == "dead"]
    assert len(told) == len(set(told)) == 24
    assert set(told) < died


async def test_a_stream_that_fell_behind_begins_anew_and_misses_no_death(
    token: Any, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "Feed", partial(Feed, most=2))
    async with Stream(await in_thread(token)) as stream:
        await stream.until("complete")
        died = {await in_thread(die, jobs) for _ in range(5)}
        begun = False
        while died or not begun:
            kind, data = await stream.event()
            begun = begun or kind == "begin"
            if kind == "dead":
                died.discard(data["id"])


def test_very_many_queues_are_told_in_turns(site: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_QUEUES_AT_ONCE", 2)
    board = Board()
    feed = Feed(board)
    queues = [site.create_queue(f"q{n}") for n in range(5)]
    feed.join(None, lambda: None)

    def look(now: float) -> int:
        board.put_directory(site.directory(), site.snapshot(()).directory_change)
        ids = [queue.id for queue in queues]
        board.apply(site.snapshot(ids, previous=board.previous(ids)), now)
        looks = 1
        while feed.look(site, now):
            looks += 1
        return looks

    assert (look(0.0), len(feed.state()[1]), feed.after(0)) == (3, 5, [])
    for queue in queues:
        queue.push(b"x", priority=1)
    assert look(1.0) == 3
    assert sorted(event.queue for event in feed.after(0) or () if event.kind == "queue") == [f"q{n}" for n in range(5)]


def test_a_busy_queue_is_told_by_its_newest_state(site: Store) -> None:
    board, now = Board(), 0.0
    feed = Feed(board)
    queue = site.create_queue("jobs")
    feed.join(None, lambda: None)
    ready = []
    for n in range(41):
        now += 0.05
        board.put_directory(site.directory(), site.snapshot(()).directory_change)
        board.apply(site.snapshot([queue.id], previous=board.previous([queue.id])), now)
        feed.look(site, now)
        ready.append(len([event for event in feed.after(0) or () if event.kind == "queue"]))
        if n < 30:
            queue.push(b"x", priority=n)
    assert ready[-1] == 3
    assert '"ready": 30' in feed.state()[1][0][1]
