"""The API on a real server: beside the pages, with tokens and with a browser's session."""

import http.client
import json
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from pqadmin.api import problems
from tests.server.conftest import PATIENCE, Site, log_in, serve, site
from tests.waiting import await_true, begin

__all__ = ["serve", "site"]


def call(site: Site, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """Return status, headers and JSON of an answer."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{site.address}/api/v1/{path}", content, headers, method=method)
    if content is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, json.loads(refused.read())


def test_a_session_reads_and_its_writes_need_the_csrf_token(site: Site) -> None:
    cookies = log_in(site)
    status, headers, found = call(site, "GET", "queues/nothing/peek", Cookie=cookies)
    assert (status, found["code"]) == (404, "QueueNotFound")
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store, private"
    status, _, found = call(site, "POST", "queues/nothing/pop", Cookie=cookies)
    assert (status, found["code"]) == (403, "CSRFFailed")
    csrf = dict(pair.split("=", 1) for pair in cookies.split("; "))["pqadmin_csrf"]
    status, _, found = call(site, "POST", "queues/nothing/pop", Cookie=cookies, **{"X-CSRFToken": csrf})
    assert (status, found["code"]) == (404, "QueueNotFound")


def test_bodies_are_bounded_by_address(serve: Callable[..., Site]) -> None:
    site = serve(PQADMIN_MAX_BODY="2000", PQADMIN_MAX_UPLOAD="5000")
    large = {"value": "x" * 3000}
    assert call(site, "POST", "queues/q/items", large)[0] == 401
    host = site.address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    connection.request("POST", "/api/v1/queues/q/pop", json.dumps(large))
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")
    found = json.loads(answer.read())
    assert found["detail"].startswith("A request to this address may have 2,000 bytes")
    assert found == problems.shape("BodyTooLarge", found["detail"], most=2_000)
    connection.close()


def test_a_site_that_stops_answers_what_waits_and_takes_nothing_for_it(serve: Callable[..., Site]) -> None:
    site = serve()
    cookies = log_in(site)
    csrf = dict(pair.split("=", 1) for pair in cookies.split("; "))["pqadmin_csrf"]
    headers = {"Cookie": cookies, "X-CSRFToken": csrf}
    assert call(site, "POST", "queues", {"name": "jobs"}, **headers)[0] == 201
    waiting = begin(lambda: call(site, "POST", "queues/jobs/pop?wait=60", **headers))
    await_true(lambda: call(site, "GET", "queues/jobs/consumers", **headers)[2]["consumers"])
    site.signal(signal.SIGTERM)
    assert waiting.result(PATIENCE)[2] == {"items": []}
    assert site.exit_code() == 0


def exchange(site: Site, sent: bytes) -> bytes:
    """Return all that the server answers until it ends the connection."""
    host, _, port = site.address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        found = b""
        while part := connection.recv(65_536):
            found += part
    return found


def asked(*more: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} /api/v1/queues HTTP/{version}", "Host: 127.0.0.1", *more, "", ""]).encode()


def test_answers_keep_to_http(site: Site) -> None:
    """Requests of one connection are answered in turn, with lengths; the last one, or one of HTTP/1.0, ends it."""
    head, _, body = exchange(site, asked("Connection: close")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    assert f"content-length: {len(body)}".encode() in head.lower()
    assert b"connection: close" in head.lower()
    both = exchange(site, asked() + asked(method="HEAD") + asked("Connection: close"))
    assert both.count(b"HTTP/1.1 ") == 3
    assert both.count(body) == 2
    assert exchange(site, asked(version="1.0")).endswith(body)
    assert b" 400 " in exchange(site, asked("Bad\x01Name: 1", "Connection: close")).partition(b"\r\n")[0]


def test_whole_addresses_as_targets_and_odd_bytes_have_answers_of_the_api(site: Site) -> None:
    for target, header, status in [
        (f"{site.address}/api/v1/queues", "X: 1", 401),
        ("http://elsewhere.example/api/v1/queues", "X: 1", 400),
        ("/api/v1/queues/é", "X: 1", 400),
        ("/api/v1/queues?prefix=é", "X: 1", 400),
        ("/api/v1/queues", "A{b: 1", 400),
    ]:
        sent = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{header}\r\n\r\n".encode()
        head, _, body = exchange(site, sent).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert json.loads(body)["code"] == ("BadRequest" if status == 400 else "Unauthenticated")
        assert b"application/problem+json" in head


def test_pushes_in_one_go_and_clients_that_leave(site: Site) -> None:
    """Requests that were sent before the answers are read are done in turn; a poll whose client left takes nothing."""
    cookies = log_in(site)
    csrf = dict(pair.split("=", 1) for pair in cookies.split("; "))["pqadmin_csrf"]
    headers = {"Cookie": cookies, "X-CSRFToken": csrf}
    assert call(site, "POST", "queues", {"name": "jobs"}, **headers)[0] == 201

    def request(path: str, body: bytes = b"", *more: str) -> bytes:
        lines = [f"POST /api/v1/queues/jobs/{path} HTTP/1.1", "Host: 127.0.0.1", f"Cookie: {cookies}"]
        lines += [f"X-CSRFToken: {csrf}", "Content-Type: application/json", f"Content-Length: {len(body)}", *more]
        return "\r\n".join([*lines, "", ""]).encode() + body

    host, _, port = site.address.removeprefix("http://").partition(":")
    waiting = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(5)]
    for connection in waiting:
        connection.sendall(request("pop?wait=60"))
    await_true(lambda: call(site, "GET", "queues/jobs/consumers", **headers)[2]["consumers"])
    for connection in waiting:
        connection.close()
    pushes = [b'{"value": "%d", "priority": %d}' % (n, n % 3) for n in range(200)]
    sent = b"".join(request("items", body) for body in pushes[:-1]) + request("items", pushes[-1], "Connection: close")
    assert exchange(site, sent).count(b"HTTP/1.1 201 ") == len(pushes)
    assert call(site, "GET", "queues/jobs", **headers)[2]["ready"] == len(pushes)
