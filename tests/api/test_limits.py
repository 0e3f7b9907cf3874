"""Limits of callers: rates of tokens, long polls at once, and pages of other origins."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.api import limits, problems
from pqadmin.api.cors import Cors
from pqadmin.api.handler import ApiHandler
from pqadmin.limits.concurrency import Places
from pqadmin.limits.token_bucket import Allowance
from pqadmin.server.admission import Admission
from queues import Store
from tests.api.conftest import Program, cheap_passwords, granted, in_thread, in_wait, person, program, site, token

__all__ = ["cheap_passwords", "granted", "person", "program", "site", "token"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_allowance_permits_its_burst_and_then_its_rate() -> None:
    allowance = Allowance(rate=2, burst=4, now=0.0)
    assert [allowance.take(0.0) for _ in range(6)] == [True] * 4 + [False] * 2
    assert allowance.wait == 0.5  # what was refused is not counted
    assert not allowance.take(0.4)
    assert allowance.take(0.5)
    assert (allowance.left, allowance.wait) == (0, 0.5)
    assert allowance.take(100.0)
    assert allowance.left == 3


async def test_a_token_beyond_its_rate_is_told_when_to_come_again(site: Store, token: Callable[..., str]) -> None:
    await in_thread(site.create_queue, "jobs")
    secret = await in_thread(token)
    await Token.objects.aupdate(rate=2)
    async with Program(secret) as client:
        answers = [await client.get("queues/jobs/peek") for _ in range(20)]
        assert [answer.status_code for answer in answers[:2]] == [200, 200]
        assert answers[0].headers["RateLimit-Policy"] == '"token";q=2;w=1'
        assert answers[0].headers["RateLimit"] == '"token";r=1;t=1'
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["code"] == "TooManyRequests"
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["RateLimit"] == '"token";r=0;t=1'
    async with Program(await in_thread(token)) as other:
        assert "RateLimit" not in (await other.get("queues/jobs/peek")).headers


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> tuple[Places, Places]:
    """One place for each token, two for each person."""
    of_tokens, of_people = Places(1), Places(2)
    monkeypatch.setattr(limits, "_of_tokens", of_tokens)
    monkeypatch.setattr(limits, "_of_people", of_people)
    return of_tokens, of_people


def waiting_pop(client: Program) -> "asyncio.Future[httpx.Response]":
    return asyncio.ensure_future(client.post("queues/jobs/pop", params={"wait": "50"}))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


async def test_long_polls_at_once_are_limited_by_token_and_by_person(
    site: Store, person: Callable[..., User], token: Callable[..., str], places: tuple[Places, Places]
) -> None:
    await in_thread(site.create_queue, "jobs")
    owner = await in_thread(person, Role.OPERATOR, "ann")
    first, second, third = [Program(await in_thread(token, owner)) for _ in range(3)]
    of_tokens, of_people = places
    (a, b, _) = [each.pk async for each in Token.objects.order_by("pk")]
    short = {"wait": "0.01"}
    waits = [waiting_pop(first)]
    await until(lambda: not of_tokens.free(a))
    assert (await first.post("queues/jobs/pop", params=short)).status_code == 429
    assert (await third.post("queues/jobs/pop", params=short)).status_code == 200
    waits.append(waiting_pop(second))
    await until(lambda: not of_tokens.free(b))
    refused = await third.post("queues/jobs/pop", params=short)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
    assert (await third.post("queues/jobs/pop")).status_code == 200  # one that does not wait
    for n in range(2):
        await third.post("queues/jobs/items", json={"value": "x", "priority": n})
    assert [len((await wait).json()["items"]) for wait in waits] == [1, 1]
    assert of_people.free(owner.pk)


async def test_a_long_poll_of_a_revoked_token_takes_nothing(
    site: Store, program: Program, token: Callable[..., str], person: Callable[..., User]
) -> None:
    queue = await in_thread(site.create_queue, "jobs")
    owner = await in_thread(person, Role.OPERATOR, "ann")
    wait = waiting_pop(Program(await in_thread(token, owner, verbs=[Verb.TAKE])))
    mine = await Token.objects.aget(owner=owner)
    await in_wait(queue)  # its first try, for which the token was good, is over
    await Token.objects.filter(owner=owner).aupdate(revoked_at=mine.created_at)
    await program.post("queues/jobs/items", json={"value": "x", "priority": 1})
    assert (await wait).status_code == 401
    assert await in_thread(queue.depth) == 1


async def test_a_stream_that_never_begins_gives_its_place_back(
    site: Store, token: Callable[..., str], person: Callable[..., User], places: tuple[Places, Places]
) -> None:
    await in_thread(site.create_queue, "jobs")
    owner = await in_thread(person, Role.OPERATOR, "ann")
    secret = await in_thread(token, owner)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        raise ConnectionError  # before its first part

    for path in ("queues/jobs/items/export", "events"):
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/api/v1/{path}",
            "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())],
        }
        with pytest.raises(ConnectionError):
            await ApiHandler()(scope, receive, send)
        assert places[0].free((await Token.objects.aget(owner=owner)).pk), path


@pytest.fixture
def page(program: Program) -> httpx.AsyncClient:
    """A page of a declared origin, with a token."""
    app = Cors(ApiHandler(), ["https://shop.example"])
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://localhost/api/v1/", headers=program.headers
    )


async def test_pages_of_declared_origins_alone_may_read_answers(page: httpx.AsyncClient) -> None:
    asked: dict[str, Any] = {"Access-Control-Request-Method": "POST"}
    async with page:
        ours = await page.options("queues/q/items", headers={**asked, "Origin": "https://shop.example"})
        assert ours.status_code == 204
        assert ours.headers["Access-Control-Allow-Origin"] == "https://shop.example"
        accepted = ours.headers["Access-Control-Allow-Headers"].split(", ")
        assert {"Authorization", "Idempotency-Key", "If-Match", "PQ-Priority", "PQ-Queue-ID"} <= set(accepted)
        assert "Access-Control-Allow-Credentials" not in ours.headers
        answer = await page.get("queues/q/peek", headers={"Origin": "https://shop.example"})
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (404, "https://shop.example")
        exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
        assert {"Location", "PQ-Pushed-At", "PQ-Worker", "PQ-Lease", "ETag"} <= set(exposed)
        for origin in ("https://evil.example", "https://shop.example.evil", "null"):
            theirs = await page.options("queues/q/items", headers={**asked, "Origin": origin})
            assert "Access-Control-Allow-Origin" not in theirs.headers
            assert "Origin" in theirs.headers["Vary"]


async def test_without_declared_origins_no_page_may(program: Program) -> None:
    async with program:
        answer = await program.get("queues/q/peek", headers={"Origin": "https://shop.example"})
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_too_many_requests_at_once_are_told_as_a_problem() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await go_on.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    app = Admission(slow, per_address=1, per_session=0, sockets_per_address=0, cookie="c")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
        first = asyncio.ensure_future(client.get("/api/v1/queues"))
        await begun.wait()
        refused = await client.get("/api/v1/queues")
        assert (refused.status_code, refused.headers["Content-Type"]) == (429, problems.CONTENT_TYPE)
        assert refused.json() == problems.shape("TooManyRequests", refused.json()["detail"])
        assert (await client.get("/")).headers["Content-Type"].startswith("text/html")
        go_on.set()
        assert (await first).status_code == 204
