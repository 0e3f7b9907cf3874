"""Remote stores: the same verbs and errors, with the rights of a token and nothing beside."""

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.api.handler import ApiHandler
from queues import AsyncStore, FifoQueue, PriorityQueue, Query, Store, open_store
from queues.admin import item_digest
from queues.consumers.presence import IDLE, program
from queues.errors import (
    AnswerLost,
    BadStoreURL,
    DepthChanged,
    ItemNotFound,
    KeyReused,
    LocalStoreOnly,
    NotAuthenticated,
    NotPermitted,
    QueueClosed,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    RateLimited,
    RequestRefused,
    ServerUnreachable,
    StaleLease,
    StoreClosed,
    StoreUnreachable,
    TrashNotFound,
    ValueChanged,
)
from queues.remote.delivery import outlook_calls
from queues.remote.store import open_remote
from queues.workers import Job, Pool, Worker
from tests.conftest import Clock
from tests.waiting import LONG, await_true, begin


def opened(secret: str | None, app: Any = None, *, timeout: float = 5) -> Store:
    transport = httpx.ASGITransport(app=app or ApiHandler())
    return open_remote("http://localhost", token=secret, timeout=timeout, transport=transport)


def test_what_one_pushes_remotely_is_taken_locally(local: Store, remote: Store) -> None:
    jobs = remote.create_queue("jobs", codec="json")
    pushed = jobs.push({"a": [1, None]}, 2**70)
    delayed = jobs.push("later", 1, delay=90)
    assert jobs.depth() == 1
    assert local.priority_queue("jobs").delayed().items == (delayed,)
    popped = local.priority_queue("jobs").pop_min()
    assert popped == pushed
    assert popped.value == {"a": [1, None]}


def test_a_lease_is_held_extended_released_and_acknowledged(local: Store, remote: Store, clock: Clock) -> None:
    line = remote.create_queue("line", kind="fifo")
    assert isinstance(line, FifoQueue)
    line.enqueue_many([b"\xff", b"b"])
    first, second = line.lease_many(5, seconds=30, worker="w")
    assert [lease.item.value for lease in (first, second)] == [b"\xff", b"b"]
    assert local.queue("line").leased().items == (first.item, second.item)
    clock.advance(10)
    assert line.extend(first, seconds=60).expires_at == local.now() + timedelta(seconds=60)
    back = line.release(second, delay=5, reason="no", traceback="t")
    assert (back.state, back.reason, back.attempts) == ("delayed", "no", 1)
    assert local.queue("line").find(back.id) == back
    assert line.ack_many([first, second.token]) == [second.token]
    with pytest.raises(StaleLease):
        line.release(first)
    with pytest.raises(StaleLease):
        line.ack(second)


def test_errors_are_those_of_the_store(remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    with pytest.raises(QueueNotFound) as missing:
        remote.queue("jobz")
    assert missing.value.suggestions == ("jobs",)
    jobs.configure(max_depth=1)
    assert jobs.config.max_depth == 1
    jobs.push(b"x", 1)
    with pytest.raises(QueueFull, match="at most 1"):
        jobs.push(b"y", 1)
    jobs.configure(closed=True, max_depth=None)
    with pytest.raises(QueueClosed):
        jobs.push(b"y", 1)
    jobs.pause(reason="repair")
    with pytest.raises(QueuePaused, match="repair"):
        jobs.pop_min()
    jobs.resume()
    assert jobs.pop_min() is not None
    remote.delete_queue("jobs")
    with pytest.raises(QueueNotFound):
        jobs.pop_min()


def test_queues_are_listed_and_brought_back(remote: Store) -> None:
    for name in ("a:1", "a:2", "b"):
        remote.create_queue(name)
    assert [queue.name for queue in remote.queues("a")] == ["a:1", "a:2"]
    assert [queue.name for queue in remote.queues(after="a:1", limit=1)] == ["a:2"]
    assert list(remote.directory()) == ["a:1", "a:2", "b"]
    handle = remote.priority_queue("b")
    handle.push(b"x", 1)
    trash_id = remote.delete_queue("b")
    restored = remote.restore(trash_id)
    assert isinstance(restored, PriorityQueue)
    assert restored.id == handle.id
    assert handle.depth() == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.transact(lambda tr: None),
        lambda store: store.read(lambda tr: None),
        lambda store: store.space("mine").get("key"),
        lambda store: store.once("key", lambda tr: b""),
        lambda store: store.sweep(),
        lambda store: store.size(),
        lambda store: store.doctor.examine(),
        lambda store: store.queue("jobs").push(b"x", 1, tr=object()),
        lambda store: store.queue("jobs").peek_min(tr=object()),
        lambda store: store.queue("jobs").expire(),
    ],
)
def test_what_needs_the_store_itself_is_refused(remote: Store, act: Callable[[Store], Any]) -> None:
    remote.create_queue("jobs")
    with pytest.raises(LocalStoreOnly, match="through a server"):
        act(remote)


@pytest.mark.parametrize(
    "act",
    [
        lambda acts: acts.configure("jobs", note="x", expect={"note": "seen"}),
        lambda acts: acts.pop_many("jobs", 1, expect="id"),
        lambda acts: acts.remove_targets("jobs", expect={"max_depth": 1}),
    ],
)
def test_a_condition_that_a_server_does_not_compare_is_refused(remote: Store, act: Callable[[Any], Any]) -> None:
    jobs = remote.create_queue("jobs")
    jobs.push(b"x", 1)
    with pytest.raises(LocalStoreOnly, match="condition"):
        act(remote.actions("ann"))
    assert [item.value for item in jobs.peek_many(5)] == [b"x"]
    assert jobs.config.note == ""


#: Actions on the queue `jobs` and its item, each of the queue with the id alone.
OF_ONE_QUEUE: dict[str, Callable[[Any, str, int], Any]] = {
    "configure": lambda acts, item, id: acts.configure("jobs", note="x", expect_id=id),
    "pause": lambda acts, item, id: acts.pause("jobs", reason="repair", expect_id=id),
    "resume": lambda acts, item, id: acts.resume("jobs", expect_id=id),
    "push": lambda acts, item, id: acts.push("jobs", b"y", priority=1, expect_id=id),
    "pop_many": lambda acts, item, id: acts.pop_many("jobs", 1, expect_id=id),
    "pick": lambda acts, item, id: acts.pick("jobs", [item], expect_id=id),
    "edit_item": lambda acts, item, id: acts.edit_item("jobs", item, b"y", expect=b"x", expect_id=id),
    "delete_items": lambda acts, item, id: acts.delete_items("jobs", [item], expect_id=id),
    "reprioritize": lambda acts, item, id: acts.reprioritize("jobs", [item], priority=2, expect_id=id),
    "begin_bulk": lambda acts, item, id: acts.begin_bulk("delete", "jobs", expect_id=id),
    "purge": lambda acts, item, id: acts.purge("jobs", confirm="jobs", expect_id=id),
    "rename_queue": lambda acts, item, id: acts.rename_queue("jobs", "more", expect_id=id),
    "delete_queue": lambda acts, item, id: acts.delete_queue("jobs", confirm="jobs", expect_id=id),
}


@pytest.mark.parametrize("act", OF_ONE_QUEUE.values(), ids=OF_ONE_QUEUE)
def test_an_action_is_of_the_queue_that_was_seen(remote: Store, act: Callable[[Any, str, int], Any]) -> None:
    jobs, acts = remote.create_queue("jobs"), remote.actions("ann")
    item = jobs.push(b"x", 1)
    with pytest.raises(QueueNotFound):
        act(acts, item.id, jobs.id + 1)
    assert remote.directory() == {"jobs": jobs.id}
    assert [(item.value, item.priority) for item in jobs.peek_many(5)] == [(b"x", 1)]
    assert (jobs.pause_state, jobs.config.note) == (None, "")
    act(acts, item.id, jobs.id)


def test_the_trash_keeps_a_deleted_queue_for_as_long_as_the_actions_say(remote: Store, local: Store) -> None:
    remote.create_queue("jobs")
    deleted = remote.actions("ann", keep=3_600).delete_queue("jobs", confirm="jobs")
    entry = local.trash.get(deleted)
    assert entry.deadline - entry.at == timedelta(hours=1)


def test_a_depth_that_was_confirmed_is_compared(remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 30)
    acts = remote.actions("ann")
    with pytest.raises(DepthChanged):
        acts.purge("jobs", confirm="jobs", expect_depth=5)
    with pytest.raises(DepthChanged):
        acts.delete_queue("jobs", confirm="jobs", expect_depth=5)
    assert jobs.depth() == 30
    assert acts.purge("jobs", confirm="jobs", expect_depth=30).count == 30
    acts.delete_queue("jobs", confirm="jobs", expect_depth=0)
    assert remote.directory() == {}


def test_priority_0_is_a_bound_of_searches_and_bulk_jobs(local: Store, remote: Store) -> None:
    jobs, none = remote.create_queue("jobs"), Query(low=0, high=0)
    jobs.push_many([(b"", n) for n in (-1, 0, 1)])
    assert [item.priority for item in jobs.search(none).items] == [0]
    job = remote.actions("").begin_bulk("delete", "jobs", query=none)
    assert local.actions("ann").run_bulk(job.id).done == 1
    assert [item.priority for item in jobs.peek_many(5)] == [-1, 1]


def test_the_empty_text_is_a_bound_of_searches_and_bulk_jobs(local: Store, remote: Store) -> None:
    texts, none = remote.create_queue("texts", priority_type="str"), Query(high="")
    texts.push_many([(b"", text) for text in ("", "a")])
    assert [item.priority for item in texts.search(none).items] == [""]
    job = remote.actions("").begin_bulk("delete", "texts", query=none)
    assert local.actions("ann").run_bulk(job.id).done == 1
    assert [item.priority for item in texts.peek_many(5)] == ["a"]


def test_a_bulk_job_of_a_state_and_of_bounds_is_begun_as_at_the_store_itself(local: Store, remote: Store) -> None:
    jobs, acts, ann = remote.create_queue("jobs"), remote.actions(""), local.actions("ann")
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"", n) for n in range(4)])
    jobs.release(jobs.lease())
    job = acts.begin_bulk("retry", "jobs", state="dead", total=1, concerned=1)
    assert (ann.run_bulk(job.id).done, jobs.depth("dead"), jobs.depth()) == (1, 0, 4)
    job = acts.begin_bulk("delete", "jobs", low=1, high=2)
    assert ann.run_bulk(job.id).done == 2
    assert [item.priority for item in jobs.peek_many(5)] == [0, 3]


def test_what_a_worker_holds_is_found_and_taken_back_by_its_name(local: Store, remote: Store) -> None:
    jobs, acts = remote.create_queue("jobs"), remote.actions("")
    jobs.push_many([(b"", n) for n in range(4)])
    held = {lease.item.id for lease in jobs.lease_many(2, worker="w")}
    jobs.lease(worker="w2")
    query = Query(state="leased", worker="w")
    assert {item.id for item in jobs.search(query).items} == held
    job = acts.begin_bulk("release", "jobs", query=query)
    assert local.actions("ann").run_bulk(job.id).done == 2
    assert [item.worker for item in jobs.leased().items] == ["w2"]


def test_a_token_does_what_it_is_for(local: Store, transactional_db: None, token: Callable[..., str]) -> None:
    local.create_queue("jobs", codec="text")
    with opened(token(verbs=[Verb.PUSH])) as pusher:
        pusher.priority_queue("jobs").push("x", 1)
        with pytest.raises(NotPermitted, match="verb take"):
            pusher.priority_queue("jobs").pop_min()
    with opened(token(verbs=[Verb.TAKE])) as taker:
        worked = []
        worker = Worker()

        @worker.handles("jobs")
        def work(job: Job) -> None:
            worked.append(job.item.value)

        pool = Pool(taker, worker, ["jobs"], once=True)
        pool.start()
        pool.wait()
        assert worked == ["x"]
        with pytest.raises(NotPermitted):
            taker.create_queue("more")
    assert local.queue("jobs").depth() == 0


def test_a_worker_of_a_revoked_token_says_so_in_short_and_ever_more_seldom(
    local: Store, transactional_db: None, token: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    item = local.create_queue("jobs", codec="text").push("x", 1)
    worker = Worker()

    @worker.handles("jobs", seconds=6)
    def work(job: Job) -> None:
        Token.objects.update(revoked_at=timezone.now())
        await_true(lambda: "not extended" in caplog.text)

    with opened(token(verbs=[Verb.TAKE])) as store:
        pool = Pool(store, worker, ["jobs"], threads=1)
        pool.start()
        await_true(lambda: "rest for 4 s" in caplog.text)
        pool.stop(0)
    revoked = "localhost answers: The token is revoked."
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == [
        f"jobs: the lease of item {item.id} was not extended: {revoked}",
        f"jobs: item {item.id} was not acknowledged: {revoked}",
        *(f"Workers rest for {n} s: {revoked}" for n in (1, 2, 4)),
    ]
    assert not any(record.exc_info for record in caplog.records)


def test_a_queue_that_may_not_be_seen_is_not_there(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    for name in ("seen", "hidden"):
        local.create_queue(name)
    with opened(token(queues=["seen"])) as store:
        assert list(store.directory()) == ["seen"]
        with pytest.raises(QueueNotFound) as error:
            store.queue("hidden")
        assert error.value.suggestions == ()
        seen = store.queue("seen")
        local.rename_queue("seen", "secret")
        with pytest.raises(QueueNotFound):
            seen.depth()
        with pytest.raises(QueueNotFound, match="^No queue is named “seen”.$"):  # it is hidden, not gone
            seen.wait(5)


def test_a_token_that_ends_is_told(local: Store, transactional_db: None, person: Callable[..., User]) -> None:
    for secret in (None, "pq_wrong"):
        with pytest.raises(NotAuthenticated, match="localhost answers: "):
            opened(secret)
    assert person(Role.NONE)


async def answering(status: int, body: bytes, headers: list[tuple[bytes, bytes]], send: Any) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def refusing(times: int, status: int, *, headers: list[tuple[bytes, bytes]] | None = None, body: bytes = b"") -> Any:
    """Return the API behind what refuses so many writes first."""
    api, left = ApiHandler(), [times]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST" and left[0]:
            left[0] -= 1
            await answering(status, body, headers or [], send)
        else:
            await api(scope, receive, send)

    return app


def written_once() -> Any:
    """Return the API that refuses all that comes after the first write."""
    api, written = ApiHandler(), [False]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if written[0]:
            await answering(401, b"", [], send)
            return
        written[0] = scope["method"] != "GET"
        await api(scope, receive, send)

    return app


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda store: [each.item.value for each in store.actions("").pop_many("jobs", 2)], ["a", "b"]),
        (lambda store: store.actions("").configure("jobs", note="x").config.note, "x"),
        (lambda store: store.actions("").rename_queue("jobs", "work").name, "work"),
        (lambda store: store.rename_queue("jobs", "work").name, "work"),
        (lambda store: store.create_queue("more", bands=[3, 5]).config.edges, (3, 5)),
        (lambda store: store.attach("theirs", prefix=("app", 1), kind="fifo").config.prefix, b"\x02app\x00\x15\x01"),
    ],
    ids=["pop_many", "configure", "rename_queue", "rename_queue of the store", "create_queue", "attach"],
)
def test_what_was_written_is_told_though_nothing_can_be_read_after_it(
    local: Store, transactional_db: None, token: Callable[..., str], act: Callable[[Store], Any], told: Any
) -> None:
    local.create_queue("jobs", codec="text").push_many([("a", 1), ("b", 2)])
    with opened(token(), written_once()) as store:
        assert act(store) == told
        with pytest.raises(NotAuthenticated):
            store.directory()


def test_a_queue_is_made_as_it_is_found(local: Store, remote: Store) -> None:
    made = [
        remote.create_queue("a"),
        remote.create_queue("b", priority_type="str", codec="json", bands=["x"]),
        remote.create_queue("c", kind="fifo"),
        remote.attach("d", prefix=("app", 1)),
    ]
    for queue in made:
        assert (queue.id, queue.config) == (local.queue(queue.name).id, remote.queue(queue.name).config)


def test_what_is_restored_and_cannot_be_read_is_not_said_to_be_left_alone(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    jobs = local.create_queue("jobs")
    item = jobs.push(b"x", 1)
    trash_id = local.actions("ann").delete_item("jobs", item.id).trash_id
    with opened(token(), written_once()) as store, pytest.raises(AnswerLost, match="was undone"):
        store.restore(trash_id)
    assert jobs.depth() == 1
    for undo in (
        lambda store, trash_id: store.restore(trash_id).id == jobs.id,
        lambda store, trash_id: store.actions("").undo(trash_id).item is None,
    ):
        trash_id = local.actions("ann").delete_item("jobs", item.id).trash_id
        with opened(token(verbs=[Verb.MANAGE])) as store:
            assert undo(store, trash_id)
        assert jobs.depth() == 1


def test_the_reason_of_an_attach_is_in_the_audit(local: Store, remote: Store) -> None:
    remote.actions("ann").attach("theirs", prefix=("app", 1), reason="their jobs")
    (entry,) = local.audit.entries(limit=1).entries
    assert (entry.verb, entry.reason) == ("attach", "their jobs")


def test_an_undo_returns_the_item_that_is_back(local: Store, remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    item = jobs.push(b"x", 1)
    for undo in (remote.restore, lambda trash_id: remote.actions("").undo(trash_id).item):
        trash_id = local.actions("ann").delete_item("jobs", item.id).trash_id
        assert undo(trash_id).id == item.id


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(
    local: Store, transactional_db: None, token: Callable[..., str], status: int
) -> None:
    local.create_queue("jobs")
    with opened(token(), refusing(3, status, headers=[(b"retry-after", b"0")])) as store:
        store.priority_queue("jobs").push(b"x", 1)
    assert local.queue("jobs").depth() == 1


def test_a_server_that_stays_busy_is_told(local: Store, transactional_db: None, token: Callable[..., str]) -> None:
    local.create_queue("jobs")
    busy, moved = (
        refusing(9, 429, headers=[(b"retry-after", b"60")]),
        refusing(9, 301, headers=[(b"location", b"https://elsewhere/")]),
    )
    with opened(token(), busy, timeout=1) as store, pytest.raises(RateLimited, match="429"):
        store.priority_queue("jobs").push(b"x", 1)
    with opened(token(), moved) as store, pytest.raises(RequestRefused, match="301 .* to https://elsewhere/"):
        store.priority_queue("jobs").push(b"x", 1)
    assert local.queue("jobs").depth() == 0


def losing(then: Callable[[Any], Any] | None = None, *, executed: bool = True) -> Any:
    """Return the API without the answer to the first write: the next one is answered by `then`."""
    api, writes = ApiHandler(), [0]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def lose(message: Any) -> None:
            """Send nothing."""

        writes[0] += scope["method"] == "POST"
        if scope["method"] != "POST" or (writes[0] > 1 and then is None):
            await api(scope, receive, send)
        elif writes[0] > 1 and then is not None:
            await then(send)
        else:
            if executed:
                await api(scope, receive, lose)
            raise httpx.ReadError("cut off")

    return app


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    [
        (429, "TooManyRequests", RateLimited),
        (503, "StoreUnreachable", StoreUnreachable),
        (401, "Unauthenticated", NotAuthenticated),
        (403, "Forbidden", NotPermitted),
        (404, "QueueNotFound", QueueNotFound),
        (422, "KeyReused", KeyReused),
        (500, "InternalError", RequestRefused),
    ],
)
def test_an_error_after_a_lost_answer_does_not_say_that_nothing_was_done(
    local: Store, transactional_db: None, token: Callable[..., str], status: int, code: str, cause: type[Exception]
) -> None:
    local.create_queue("jobs")

    async def refuse(send: Any) -> None:
        problem = json.dumps({"code": code, "detail": "Nothing was done.", "status": status}).encode()
        await answering(status, problem, [(b"retry-after", b"60")], send)

    with opened(token(), losing(refuse)) as store, pytest.raises(AnswerLost, match="may have been executed") as lost:
        store.priority_queue("jobs").push(b"x", 1)
    assert isinstance(lost.value.__cause__, cause)
    assert local.queue("jobs").depth() == 1


def test_a_push_before_a_rename_gets_its_lost_answer_under_the_new_name(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    local.create_queue("jobs")
    api = ApiHandler()
    renamed = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def lose(message: Any) -> None:
            """Send nothing."""

        if scope["method"] != "POST" or renamed:
            await api(scope, receive, send)
            return
        await api(scope, receive, lose)
        renamed.append(local.rename_queue("jobs", "work"))
        raise httpx.ReadError("cut off")

    with opened(token(), app) as store:
        pushed = store.priority_queue("jobs").push(b"x", 1)
    assert [item.id for item in local.queue("work").peek_many(5)] == [pushed.id]


def test_what_the_store_refuses_after_a_lost_request_was_not_done(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    local.create_queue("jobs").configure(closed=True)
    with opened(token(), losing(executed=False)) as store, pytest.raises(QueueClosed):
        store.priority_queue("jobs").push(b"x", 1)
    local.queue("jobs").configure(closed=False)
    with opened(token(), losing()) as store:
        store.priority_queue("jobs").push(b"x", 1)
    assert local.queue("jobs").depth() == 1


def test_a_server_that_accepts_and_is_silent_is_left_in_time(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        opening = begin(lambda: open_store(f"http://127.0.0.1:{silent.getsockname()[1]}", token="x", timeout=1))
        with pytest.raises(ServerUnreachable, match=r"did not answer within 1 s\.$"):
            opening.result(10)
    local.create_queue("jobs")

    async def say_nothing(send: Any) -> None:
        raise httpx.ReadTimeout("")

    with (
        opened(token(), losing(say_nothing), timeout=1) as store,
        pytest.raises(AnswerLost, match=r"did not answer within 1 s\. The request may have been executed"),
    ):
        store.priority_queue("jobs").push(b"x", 1)


def test_the_time_of_the_store_goes_on_while_this_machine_sleeps(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    elapsed = [100.0]
    transport = httpx.ASGITransport(app=ApiHandler())
    with open_remote(
        "http://localhost", token=token(), timeout=5, transport=transport, elapsed=lambda: elapsed[0]
    ) as store:
        assert abs(store.now() - local.now()) < timedelta(seconds=1)
        elapsed[0] += 3600
        assert abs(store.now() - local.now() - timedelta(hours=1)) < timedelta(seconds=1)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_calls_that_meet_a_close_end() -> None:
    async def site(scope: Any, receive: Any, send: Any) -> None:
        told = {"id": "x", "verbs": [], "caller": "x", "queues": [], "next": None}
        await answering(200, json.dumps(told).encode(), [], send)

    for _ in range(300):
        store, started = opened(None, site), threading.Barrier(5)

        def call(store: Store = store, started: threading.Barrier = started) -> None:
            started.wait()
            with pytest.raises(StoreClosed):
                while True:
                    store.directory()

        calls = [begin(call) for _ in range(4)]
        started.wait()
        store.close()
        for each in calls:
            each.result(10)


def test_a_server_that_is_no_site_is_told() -> None:
    async def hello(scope: Any, receive: Any, send: Any) -> None:
        await answering(200, b"<html>", [], send)

    with pytest.raises(RequestRefused, match="no pqadmin site"):
        opened(None, hello)


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(ServerUnreachable, match="^127.0.0.1:1 cannot be reached: Connection refused.$"):
        open_store("http://127.0.0.1:1", token="x", timeout=0.1)


def test_a_server_of_plain_http_under_https_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=refuse)
        answering.start()
        with pytest.raises(ServerUnreachable, match=r"TLS fails \(wrong version number\)\.$"):
            open_store(f"https://127.0.0.1:{plain.getsockname()[1]}", token="x", timeout=0)
        answering.join()


@pytest.mark.parametrize("url", ["http://", "http://[::1", "https://user:pw@host", "https://host?x=1"])
def test_a_bad_address_is_refused(url: str) -> None:
    with pytest.raises(BadStoreURL):
        open_store(url)


@pytest.mark.parametrize("url", ["http://queues.example.org", "http://192.0.2.1:8000", "http://localhost.example.org"])
def test_a_token_is_not_sent_in_the_clear(url: str) -> None:
    with pytest.raises(BadStoreURL, match="write https://"):
        open_store(url, token="x", timeout=0)


@pytest.mark.parametrize("url", ["http://127.0.0.2:1", "http://[::1]:1", "http://localhost:1"])
def test_a_token_is_sent_to_this_machine_by_plain_http(url: str) -> None:
    with pytest.raises(ServerUnreachable):
        open_store(url, token="x", timeout=0)


@pytest.mark.parametrize("token", ["", "pq_a b", "pq_ü", "a\nb", 5, b"pq_"])
def test_what_is_no_token_is_refused_before_it_is_sent(token: Any) -> None:
    with pytest.raises(BadStoreURL, match="as the token is none"):
        open_store("http://127.0.0.1:1", token=token, timeout=0)


def test_a_token_is_for_a_site() -> None:
    with pytest.raises(BadStoreURL, match="token"):
        open_store("memory:", token="x")


def test_a_closed_store_is_told(remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    remote.close()
    remote.close()
    with pytest.raises(StoreClosed):
        jobs.push(b"x", 1)


def test_a_local_store_needs_no_http_client() -> None:
    program = "import sys, queues, queues.workers; queues.open_store('memory:').close(); print('httpx' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


async def test_coroutines_push_pop_and_lease(local: Store, remote: Store) -> None:
    store = AsyncStore(remote)
    jobs = await store.create_queue("jobs")
    await jobs.push_many([(b"a", 1), (b"b", 2)])
    assert (await jobs.pop_min(wait=1)).value == b"a"
    async with await jobs.lease(seconds=30, keep=True) as lease:
        assert lease.item.value == b"b"
    assert await jobs.pop_many(2, wait=0.01) == []
    assert await jobs.pop_min() is None
    with pytest.raises(LocalStoreOnly):
        await store.transact(lambda tr: None)


async def test_a_coroutine_that_is_canceled_before_its_request_is_sent_takes_nothing(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    local.create_queue("jobs")
    api, asked, busy, go_on = ApiHandler(), list[str](), threading.Event(), threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"].rpartition("/")[2])
        if asked[-1] == "queues":  # the thread that sends is busy
            busy.set()
            assert go_on.wait(LONG)
        await api(scope, receive, send)

    with opened(await asyncio.to_thread(token), app) as store:
        jobs = await AsyncStore(store).queue("jobs")
        listing = begin(store.directory)
        busy.wait()
        taking = asyncio.create_task(jobs.pop_min(wait=1))
        await asyncio.sleep(0)
        taking.cancel()
        go_on.set()
        await asyncio.wait([taking])
        assert taking.cancelled()
        listing.result(LONG)
    assert "pop" not in asked


async def test_a_coroutine_under_way_is_told_of_the_close(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    local.create_queue("jobs")
    api, asked = ApiHandler(), threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await api(scope, receive, send)
        if scope["method"] == "POST":  # executed, and not answered yet
            asked.set()
            await asyncio.sleep(LONG)

    for act in (lambda queue: queue.push(b"x", 1), lambda queue: queue.pop_min(wait=60)):
        asked.clear()
        with opened(await asyncio.to_thread(token), app) as store:
            acting = asyncio.create_task(act(await AsyncStore(store).queue("jobs")))
            await asyncio.to_thread(asked.wait)
            await asyncio.to_thread(store.close)
            with pytest.raises(StoreClosed, match="may have been executed"):
                await acting


def test_a_thread_under_way_is_told_of_the_close() -> None:
    asked = threading.Event()

    async def site(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].endswith("/queues"):
            asked.set()
            await asyncio.sleep(LONG)
        told = {"id": "x", "verbs": [], "caller": "x", "queues": [], "next": None}
        await answering(200, json.dumps(told).encode(), [], send)

    store = opened(None, site)
    creating = begin(store.create_queue, "jobs")
    asked.wait()
    store.close()
    with pytest.raises(StoreClosed, match="may have been executed"):
        creating.result(LONG)


def test_a_program_is_told_as_the_consumer_that_it_is(
    remote: Store, local: Store, clock: Clock, token: Callable[..., str]
) -> None:
    jobs = remote.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(5)])
    held = jobs.lease_many(2, seconds=600, worker="press")
    jobs.pop_min()
    transport = httpx.ASGITransport(app=ApiHandler())
    with open_remote("http://localhost", token=token(), timeout=5, transport=transport, clock=clock) as other:
        other.queue("jobs").pop_max()
        local.context.presence.beat()
        told = local.queue("jobs").consumers().live
    here = (socket.gethostname(), os.getpid(), program())
    assert [(one.host, one.pid, one.program) for one in told] == [here, here]
    assert sorted((one.worker, one.takes, one.holds) for one in told) == [("", 1, 0), ("press", 3, 2)]
    assert [one.worker for one in jobs.consumers().live] == [one.worker for one in told]
    for lease in held:
        jobs.ack(lease)
    clock.advance(10)
    local.context.presence.beat()
    assert [one.holds for one in local.queue("jobs").consumers().live] == [0, 0]
    clock.advance(IDLE)
    local.context.presence.beat()
    assert local.queue("jobs").consumers().live == ()


def test_finished_items_are_told_of_by_the_program_that_took_them(remote: Store, local: Store) -> None:
    jobs = remote.create_queue("jobs")
    jobs.configure(keep_finished=timedelta(days=1))
    assert local.queue("jobs").config.keep_finished == 86_400
    items = jobs.push_many([(b"%d" % n, n) for n in range(3)])
    jobs.pop_min()
    lease, other = jobs.lease_many(2, seconds=60, worker="press")
    jobs.ack_many([lease, other])
    me = f"{socket.gethostname()}:{os.getpid()}"
    assert [(item.state, item.worker) for item in map(jobs.find_finished, [one.id for one in items])] == [
        ("popped", me),
        ("acknowledged", "press"),
        ("acknowledged", "press"),
    ]
    assert [jobs.find(item.id) for item in items] == [None, None, None]
    assert jobs.find_finished("0" * 40) is None
    first = jobs.finished(limit=2)
    page = jobs.finished(limit=2, after=first.cursor)
    assert [*first.items, *page.items] == [*local.queue("jobs").finished().items]


@pytest.mark.parametrize("header", ["", "x", "0" * 16 + " 1 host", "0" * 16 + " x host worker", "zz 1 host worker"])
async def test_a_client_without_a_name_takes_in_the_name_of_the_site(
    local: Store, token: Callable[..., str], transactional_db: None, header: str
) -> None:
    local.create_queue("jobs").push(b"x", 1)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=ApiHandler()), base_url="http://localhost"
    ) as client:
        headers = {"Authorization": f"Bearer {await asyncio.to_thread(token)}", "PQ-Client": header}
        assert (await client.post("/api/v1/queues/jobs/pop", headers=headers)).json()["items"]
    local.context.presence.beat()
    (told,) = local.queue("jobs").consumers().live
    assert (told.host, told.pid, told.takes) == (socket.gethostname(), os.getpid(), 1)


def test_the_proxy_of_the_environment_is_asked_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "near.invalid")

        def first_line() -> bytes:
            asking, _ = proxy.accept()
            with asking:
                line: bytes = asking.makefile("rb").readline()
                asking.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return line

        asked = begin(first_line)
        for address in ("http://localhost:1", "http://near.invalid"):
            with pytest.raises(ServerUnreachable):
                open_store(address, timeout=1)
        with pytest.raises(NotAuthenticated):
            open_store("http://far.invalid", timeout=5)
        assert asked.result(60) == b"GET http://far.invalid/api/v1/store HTTP/1.1\r\n"


def test_an_item_is_edited_if_its_value_is_as_it_was_seen(remote: Store) -> None:
    words, acts = remote.create_queue("words", codec="text"), remote.actions("ann")
    item = words.push("old", 1)
    assert acts.edit_item("words", item.id, "new", expect=item.raw).count == 1
    for seen in (item.raw, item_digest(item.raw)):
        with pytest.raises(ValueChanged):
            acts.edit_item("words", item.id, "newer", expect=seen)
    assert acts.edit_item("words", item.id, b"newer", expect=item_digest(b"new")).count == 1
    with pytest.raises(ItemNotFound):
        acts.edit_item("words", "0" * 40, "x", expect=b"")
    assert words.pop_min().value == "newer"


def test_an_action_takes_the_names_of_its_arguments_on_both_kinds_of_stores(local: Store, remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    for store in (local, remote):
        actions = store.actions("ann")
        actions.pause(queue_name="jobs", reason="repair")
        actions.resume(queue_name="jobs")
        actions.configure(queue_name="jobs", note="mail")
        pushed = actions.push(queue_name="jobs", value=b"a", priority=1)
        actions.edit_item(queue_name="jobs", item_id=pushed.id, value=b"b", expect=b"a")
        actions.reprioritize(queue_name="jobs", item_ids=[pushed.id], priority=2)
        assert [popped.item.raw for popped in actions.pop_many(queue_name="jobs", n=9)] == [b"b"]
        other = actions.push(queue_name="jobs", value=b"c", priority=1)
        assert actions.delete_items(queue_name="jobs", item_ids=[other.id]).count == 1
    assert jobs.depth() == 0


def test_the_empty_text_is_a_priority_of_what_is_moved(local: Store, remote: Store) -> None:
    for store, to in ((local, "near"), (remote, "far")):
        words, moved = (store.create_queue(f"{to}-{name}", priority_type="str") for name in "ab")
        item = words.push(b"x", "z")
        store.actions("ann").move_items(words.name, [item.id], moved.name, priority="")
        assert moved.peek_min().priority == ""
        other = words.push(b"y", "z")
        store.actions("ann").reprioritize(words.name, [other.id], priority="")
        assert words.peek_min().priority == ""


def test_a_handle_stays_with_its_queue_when_another_one_takes_its_name(local: Store, remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    jobs.push_many([(b"1", 1), (b"2", 2)])
    held = jobs.lease(seconds=60)
    assert held is not None
    old = local.rename_queue("jobs", "old")
    new = local.create_queue("jobs")
    jobs.ack(held)
    assert old.totals().leased == 0
    jobs.push(b"3", 1)
    assert (old.depth(), new.depth(), jobs.depth(), jobs.name) == (2, 0, 2, "old")


def test_a_handle_of_a_deleted_queue_leaves_a_new_one_of_its_name_alone(local: Store, remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    jobs.push(b"1", 1)
    held = jobs.lease(seconds=60)
    assert held is not None
    local.delete_queue("jobs")
    new = local.create_queue("jobs")
    new.push(b"other", 1)
    for use in (
        lambda: jobs.push(b"2", 1),
        lambda: jobs.pop_min(),
        lambda: jobs.ack(held),
        lambda: jobs.depth(),
        lambda: jobs.wait(5),
        lambda: jobs.configure(note="x"),
    ):
        with pytest.raises(QueueNotFound):
            use()
    assert remote.outlooks([jobs]) == {}
    assert new.depth() == 1


def test_workers_go_on_in_a_queue_that_is_renamed(local: Store, remote: Store) -> None:
    done = []
    worker = Worker()

    @worker.handles("jobs")
    def handle(job: Job) -> None:
        done.append(job.item.value)

    jobs = remote.create_queue("jobs")
    pool = Pool(remote, worker, ["jobs"], threads=1)
    pool.start()
    try:
        jobs.push(b"1", 1)
        await_true(lambda: done == [b"1"])
        local.rename_queue("jobs", "tasks").push(b"2", 1)
        await_true(lambda: done == [b"1", b"2"])
    finally:
        pool.stop(0)


def test_workers_go_on_in_a_queue_that_is_made_anew_by_a_token_that_only_takes(
    local: Store, transactional_db: None, token: Callable[..., str]
) -> None:
    done = []
    worker = Worker()

    @worker.handles("*")
    def handle(job: Job) -> None:
        done.append(job.item.value)

    local.create_queue("jobs")
    mail = local.create_queue("mail")
    with opened(token(verbs=[Verb.TAKE])) as store:
        pool = Pool(store, worker, ["jobs", "mail"], threads=1)
        pool.start()
        try:
            local.delete_queue("jobs")
            mail.push(b"1", 1)
            await_true(lambda: done == [b"1"])
            local.create_queue("jobs").push(b"2", 1)
            await_true(lambda: done == [b"1", b"2"])
        finally:
            pool.stop(0)


def test_any_number_of_queues_is_waited_for(local: Store, remote: Store) -> None:
    name = "订单处理队列华东地区仓库发货优先级高"
    queues = [remote.create_queue(f"{name}{n}") for n in range(101)]
    outlooks = remote.outlooks(queues)
    assert {queue: outlook.ready for queue, outlook in outlooks.items()} == dict.fromkeys(queues, 0)
    assert not remote.wait_for_items(outlooks.values(), timeout=0.1)
    waiting = begin(remote.wait_for_items, outlooks.values())
    local.queue(queues[100].name).push(b"x", 1)
    assert waiting.result(LONG)
    assert remote.outlooks(queues)[queues[100]].ready == 1


def test_the_address_of_an_outlook_is_one_that_servers_take() -> None:
    names = {n: f"订单处理队列华东地区仓库发货优先级高{n}" for n in range(1 << 63, (1 << 63) + 250)}
    calls = outlook_calls(names, 1.0)
    assert [name for call in calls for name in call.query["queue"]] == [*names.values()]
    assert [number for call in calls for number in call.query["id"]] == [*names]
    longest = max(len(call.request("https://queues.example.org/", {}, 1.0, 9.0).url.raw_path) for call in calls)
    assert longest < 8_000
    assert {len(call.query["id"]) for call in outlook_calls(dict.fromkeys(range(300), "q"), 1.0)} == {100}


def test_no_name_and_no_id_leads_to_another_address(remote: Store) -> None:
    jobs = remote.create_queue("jobs")
    item = jobs.push(b"x", priority=1)
    for odd in ("", ".", "..", "a/b", f"../items/{item.id}", f"jobs/items/{item.id}", "\ud800", "x" * 100_000):
        assert (jobs.find(odd), jobs.find_finished(odd)) == (None, None)
        with pytest.raises(QueueNotFound):
            remote.delete_queue(odd)
        with pytest.raises(QueueNotFound):
            remote.rename_queue(odd, "other")
        with pytest.raises(TrashNotFound):
            remote.restore(odd)
        with pytest.raises(ItemNotFound):
            remote.actions("ann").edit_item("jobs", odd, b"y", expect=b"x")
    assert jobs.find(item.id) == item


def test_text_that_no_address_holds_is_refused(remote: Store) -> None:
    for prefix in ("\ud800", "x" * 100_000):
        with pytest.raises(RequestRefused, match="cannot be sent"):
            remote.queues(prefix)
