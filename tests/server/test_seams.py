"""The ASGI layers in front of Django: trusted proxies, origins of sockets, threads for views."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.core.checks import run_checks
from hypothesis import given
from hypothesis import strategies as st

from pqadmin.conf import environment
from pqadmin.conf.proxy import UNDECLARED, TrustedProxy
from pqadmin.server.handler import ThreadPool
from pqadmin.server.origin import SameOrigin, is_same_origin

PROXIES = [ip_network("10.0.0.0/8"), ip_network("::1/128")]


async def through(*, client: str, headers: list[tuple[bytes, bytes]], kind: str = "http", scheme: str = "http") -> Any:
    """Return the scope that an application behind the proxy layer gets."""
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    scope = {"type": kind, "client": [client, 4711], "scheme": scheme, "headers": headers}
    await TrustedProxy(application, trusted=PROXIES)(scope, None, None)
    return seen[0]


async def test_a_trusted_proxy_names_client_and_scheme() -> None:
    headers = [(b"x-forwarded-for", b"203.0.113.5, 192.0.2.1, 10.1.2.3"), (b"x-forwarded-proto", b"https")]
    scope = await through(client="10.0.0.1", headers=headers)
    assert scope["client"] == ["192.0.2.1", 0]
    assert scope["scheme"] == "https"
    assert scope["headers"] == []


async def test_ipv4_addresses_are_told_as_such_by_a_site_that_listens_on_both() -> None:
    """A socket on `::` names 10.0.0.1 `::ffff:10.0.0.1`: the declared proxy was not believed."""
    headers = [(b"x-forwarded-for", b"::ffff:203.0.113.5, ::ffff:10.1.2.3"), (b"x-forwarded-proto", b"https")]
    scope = await through(client="::ffff:10.0.0.1", headers=headers)
    assert (scope["client"], scope["scheme"]) == (["203.0.113.5", 0], "https")
    assert (await through(client="::ffff:192.0.2.1", headers=[]))["client"] == ["192.0.2.1", 4711]


async def test_a_socket_behind_https_is_wss() -> None:
    headers = [(b"x-forwarded-proto", b"https")]
    assert (await through(client="::1", headers=headers, kind="websocket", scheme="ws"))["scheme"] == "wss"


async def test_only_the_proxy_is_believed() -> None:
    headers = [
        (b"host", b"localhost"),
        (b"X-Forwarded-For", b"10.0.0.1"),
        (b"x-forwarded-proto", b"https"),
        (b"forwarded", b"for=10.0.0.1;proto=https"),
    ]
    scope = await through(client="192.0.2.1", headers=headers)
    assert scope["client"] == ["192.0.2.1", 4711]
    assert scope["scheme"] == "http"
    assert scope["headers"] == [(b"host", b"localhost")]


@pytest.mark.parametrize(
    ("hop", "address"),
    [
        (b"203.0.113.5:41822", "203.0.113.5"),
        (b"[2001:db8::7]:41822", "2001:db8::7"),
        (b"[2001:db8::7]", "2001:db8::7"),
        (b"2001:db8::7", "2001:db8::7"),
        (b"203.0.113.5:41822, 10.1.2.3:80", "203.0.113.5"),
    ],
)
async def test_a_proxy_may_name_the_clients_port_too(hop: bytes, address: str) -> None:
    assert (await through(client="10.0.0.1", headers=[(b"x-forwarded-for", hop)]))["client"] == [address, 0]


async def test_a_client_that_a_proxy_names_by_no_address_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        pass

    layer = TrustedProxy(application, trusted=PROXIES)
    for hop in (b"", b"203.0.113.5", b"unknown", b"_hidden"):
        await layer({"type": "http", "client": ["10.0.0.1", 1], "headers": [(b"x-forwarded-for", hop)]}, None, None)
    (said,) = caplog.messages
    assert "The proxy 10.0.0.1 names a client by 'unknown'" in said


@pytest.mark.parametrize("value", [b"", b"unknown", b"'; drop", b"10.0.0.9", b"1.2.3:80", b"[]:80", b"[::1", b"\xff"])
async def test_a_proxy_that_names_no_address_is_the_client(value: bytes) -> None:
    assert (await through(client="10.0.0.1", headers=[(b"x-forwarded-for", value)]))["client"][0] == "10.0.0.1"


@given(st.binary(max_size=80), st.binary(max_size=20))
def test_no_header_of_a_proxy_breaks_a_request(forwarded: bytes, proto: bytes) -> None:
    headers = [(b"x-forwarded-for", forwarded), (b"x-forwarded-proto", proto)]
    scope = asyncio.run(through(client="10.0.0.1", headers=headers))
    assert scope["headers"] == []


def handshake(origin: str | None, host: str = "localhost:8000", scheme: str = "ws") -> dict[str, Any]:
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode("latin-1")))
    return {"type": "websocket", "path": "/live/", "scheme": scheme, "headers": headers}


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        ("http://localhost:8000", "localhost:8000", "ws"),
        ("http://LOCALHOST:8000", "localhost:8000", "ws"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", "ws"),
        ("http://[::1]:8000", "[::1]:8000", "ws"),
        ("http://localhost", "localhost", "ws"),
        ("http://localhost:80", "localhost", "ws"),
        ("https://localhost", "localhost", "wss"),
        ("https://localhost", "localhost:443", "wss"),
    ],
)
def test_own_pages_may_open_sockets(origin: str, host: str, scheme: str) -> None:
    assert is_same_origin(handshake(origin, host, scheme))


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        (None, "localhost:8000", "ws"),
        ("", "localhost:8000", "ws"),
        ("null", "localhost:8000", "ws"),
        ("http://localhost:8001", "localhost:8000", "ws"),
        ("http://localhost", "localhost:8000", "ws"),
        ("https://localhost:8000", "localhost:8000", "ws"),
        ("http://localhost:8000", "localhost:8000", "wss"),
        ("http://evil.example", "localhost:8000", "ws"),
        ("http://localhost.evil.example:8000", "localhost:8000", "ws"),
        ("http://evil.example", "evil.example", "ws"),
        ("http://localhost:99999", "localhost:8000", "ws"),
        ("http://[::1", "[::1]:8000", "ws"),
        ("file://", "localhost:8000", "ws"),
        ("http://localhost:8000", "", "ws"),
    ],
)
async def test_other_origins_may_not(origin: str | None, host: str, scheme: str) -> None:
    reached: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope)

    scope = handshake(origin, host, scheme)
    assert not is_same_origin(scope)
    communicator = WebsocketCommunicator(SameOrigin(application), "/live/", headers=scope["headers"])
    communicator.scope["scheme"] = scheme
    connected, _ = await communicator.connect()
    assert not connected
    assert reached == []


def pooled(view: Callable[[], Any], threads: int) -> tuple[ThreadPool, list[Any]]:
    """Return a pool in front of an application that runs `view` as Django runs a view."""
    results: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        results.append(await sync_to_async(view, thread_sensitive=True)())

    return ThreadPool(application, threads=threads), results


async def gather(pool: ThreadPool, requests: int) -> None:
    calls: list[Awaitable[None]] = [pool({"type": "http"}, None, None) for _ in range(requests)]
    await asyncio.gather(*calls)


async def test_requests_use_the_same_few_threads() -> None:
    pool, seen = pooled(threading.get_ident, 3)
    for _ in range(10):
        await gather(pool, 6)
    assert len(set(seen)) == 3
    pool.close()


async def test_views_run_side_by_side() -> None:
    together = threading.Barrier(3, timeout=30)
    pool, seen = pooled(together.wait, 3)
    await gather(pool, 3)
    assert sorted(seen) == [0, 1, 2]
    pool.close()


async def test_a_view_that_fails_frees_its_thread() -> None:
    used = set()

    def fail() -> None:
        used.add(threading.get_ident())
        raise RuntimeError

    pool, seen = pooled(fail, 2)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            await pool({"type": "http"}, None, None)
    assert seen == []
    assert len(used) == 1, "it is the first free one again"
    pool.close()


FORWARDED = [(b"X-Forwarded-For", b"203.0.113.5"), (b"x-forwarded-proto", b"https")]


async def test_a_proxy_that_is_not_declared_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    layer = TrustedProxy(application, trusted=PROXIES)
    plain = {"type": "http", "client": ["192.0.2.1", 1], "scheme": "http", "headers": [(b"host", b"x")]}
    await layer(plain, None, None)
    await layer({**plain, "client": ["10.0.0.1", 1], "headers": FORWARDED}, None, None)
    assert [scope.get(UNDECLARED) for scope in seen] == [None, None]
    assert caplog.messages == []
    for _ in range(3):
        await layer({**plain, "headers": FORWARDED}, None, None)
    assert [scope.get(UNDECLARED) for scope in seen[2:]] == ["192.0.2.1"] * 3
    (said,) = caplog.messages
    assert "PQADMIN_TRUSTED_PROXY=192.0.2.1" in said


@pytest.mark.parametrize(
    ("chosen", "warned"),
    [
        ({"PQADMIN_ALLOWED_HOSTS": "queues.example.org"}, True),
        ({"PQADMIN_ALLOWED_HOSTS": "queues.example.org", "PQADMIN_HOST": "::1"}, True),
        ({"PQADMIN_ALLOWED_HOSTS": "queues.example.org", "PQADMIN_TRUSTED_PROXY": "127.0.0.1"}, False),
        ({"PQADMIN_ALLOWED_HOSTS": "queues.example.org", "PQADMIN_HOST": "0.0.0.0"}, False),
        ({}, False),
    ],
)
def test_the_check_warns_of_a_proxy_that_is_not_declared(chosen: dict[str, str], warned: bool, settings: Any) -> None:
    read = environment.read(chosen)
    settings.ALLOWED_HOSTS, settings.PQADMIN_HOST = list(read.allowed_hosts), read.host
    settings.PQADMIN_TRUSTED_PROXY = read.trusted_proxy
    found = [message for message in run_checks(tags=["security"]) if message.id == "pqadmin.W001"]
    assert len(found) == int(warned)
