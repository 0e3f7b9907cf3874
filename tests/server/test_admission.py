"""Requests under way at once: some for each address and session, and a page for one too many."""

from __future__ import annotations

import asyncio
from typing import Any

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


async def test_the_address_is_what_a_trusted_proxy_says_and_nobody_else() -> None:
    site = Site(per_address=1)
    held = [site.ask(PROXY, x_forwarded_for=f"198.51.100.{number}") for number in range(5)]
    await site.until_begun(5)
    assert (await site.ask(PROXY, x_forwarded_for="198.51.100.1"))[0]["status"] == 429
    liar = [site.ask("192.0.2.1", x_forwarded_for="198.51.100.77")]
    await site.until_begun(6)
    assert (await site.ask("192.0.2.1", x_forwarded_for="198.51.100.78"))[0]["status"] == 429
    site.go.set()
    assert [(await each)[0]["status"] for each in [*held, *liar]] == [200] * 6


async def test_one_address_has_so_many_sockets() -> None:
    site = Site(sockets_per_address=2)
    held = [site.ask(kind="websocket") for _ in range(2)]
    await site.until_begun(2)
    assert (await site.ask(kind="websocket"))[0]["type"] == "websocket.close"
    site.go.set()
    await asyncio.gather(*held)
