"""Requests under way at once: some for each address and session, and a page for one too many."""

import asyncio
from typing import Any

import pytest
from django.conf import settings

from pqadmin.asgi import application
from pqadmin.conf.environment import Network
from pqadmin.conf.proxy import TrustedProxy
from pqadmin.server.admission import Admission
from tests.live.conftest import PATIENCE

PROXY = "192.0.2.99"


class Site:
    """A site whose answers wait until they are let go."""

    def __init__(self, **limits: int) -> None:
        from ipaddress import ip_network

        given = {"per_address": 0, "per_session": 0, "sockets_per_address": 0} | limits
        networks: list[Network] = [ip_network(PROXY)]
        self.application = TrustedProxy(Admission(self._answer, cookie="sid", **given), trusted=networks)
        self.begun = 0
        self.go = asyncio.Event()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun += 1
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def ask(self, address: str = "192.0.2.1", kind: str = "http", **headers: str) -> asyncio.Task[list[dict[str, Any]]]:
        """Begin a request; its task ends with what was sent."""
        fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": kind, "client": [address, 1], "path": "/", "headers": fields}
        said: list[dict[str, Any]] = []
        events = iter(["websocket.connect", "websocket.disconnect"])

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": next(events), "code": 1000}

        async def run() -> list[dict[str, Any]]:
            await self.application(scope, receive, send)
            return said

        return asyncio.create_task(run())

    async def until_begun(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.begun < number:
                await asyncio.sleep(0)


async def test_one_address_has_so_many_requests_at_once() -> None:
    site = Site(per_address=3)
    held = [site.ask() for _ in range(3)]
    await site.until_begun(3)
    refused = await site.ask(accept_language="zh-hans")
    assert refused[0]["status"] == 429
    assert (b"retry-after", b"5") in refused[0]["headers"]
    assert "请求".encode() in refused[1]["body"]
    other = site.ask("192.0.2.2")
    await site.until_begun(4)
    site.go.set()
    assert [(await each)[0]["status"] for each in [*held, other]] == [200] * 4
    assert (await site.ask())[0]["status"] == 200, "places are given back"


async def test_one_session_has_so_many_requests_from_wherever_they_come() -> None:
    site = Site(per_session=2)
    held = [site.ask(f"192.0.2.{number}", cookie="a=b; sid=s1") for number in range(2)]
    await site.until_begun(2)
    assert (await site.ask("192.0.2.7", cookie="sid=s1"))[0]["status"] == 429
    other, stranger = site.ask("192.0.2.7", cookie="sid=s2"), site.ask("192.0.2.7")
    await site.until_begun(4)
    site.go.set()
    assert [(await each)[0]["status"] for each in [*held, other, stranger]] == [200] * 4


async def test_the_address_is_what_a_trusted_proxy_says_only() -> None:
    site = Site(per_address=1)
    held = [site.ask(PROXY, x_forwarded_for=f"198.51.100.{number}") for number in range(5)]
    await site.until_begun(5)
    assert (await site.ask(PROXY, x_forwarded_for="198.51.100.1"))[0]["status"] == 429
    liar = [site.ask("192.0.2.1", x_forwarded_for="198.51.100.77")]
    await site.until_begun(6)
    assert (await site.ask("192.0.2.1", x_forwarded_for="198.51.100.78"))[0]["status"] == 429
    site.go.set()
    assert [(await each)[0]["status"] for each in [*held, *liar]] == [200] * 6


async def test_an_ipv6_subscriber_counts_as_one_address() -> None:
    """Each has 2^64 addresses to choose from."""
    site = Site(per_address=1)
    held = [site.ask("2001:db8::1")]
    await site.until_begun(1)
    assert (await site.ask("2001:db8::2"))[0]["status"] == 429
    held.append(site.ask("2001:db8:0:1::1"))
    await site.until_begun(2)
    site.go.set()
    assert [(await each)[0]["status"] for each in held] == [200] * 2


async def test_files_of_pages_are_not_counted_as_requests_under_way() -> None:
    """A page has more than 30, which a proxy that speaks HTTP/2 asks for at once: half of them were refused."""
    never = asyncio.Event()
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "client": ["192.0.2.200", 1],
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }

    async def ask(path: str) -> int:
        said: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        async def receive() -> dict[str, Any]:
            await never.wait()
            return {"type": "http.disconnect"}

        await application({**scope, "path": path}, receive, send)
        return int(said[0]["status"]) if said else 0

    held = [asyncio.create_task(ask("/accounts/login/")) for _ in range(settings.PQADMIN_REQUESTS_PER_ADDRESS)]
    await asyncio.sleep(0)
    assert await ask("/accounts/login/") == 429
    scope["method"] = "GET"
    assert await ask("/static/pqadmin/css/base.css") == 200
    never.set()
    assert await asyncio.gather(*held) == [0] * len(held)


@pytest.mark.django_db(transaction=True)  # a consumer that ends closes connections of databases
async def test_one_address_has_so_many_sockets() -> None:
    site = Site(sockets_per_address=2)
    held = [site.ask(kind="websocket") for _ in range(2)]
    await site.until_begun(2)
    assert (await site.ask(kind="websocket"))[0]["type"] == "websocket.close"
    site.go.set()
    await asyncio.gather(*held)
