"""The fast path on a real server: bytes as they come, clients that leave, and a site that stops."""

import re
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pqadmin.server.lone_client import IN_A_ROW
from queues import open_store
from tests.api.test_served import call, exchange
from tests.forks import MANAGE, run_forked_text
from tests.server.conftest import PATIENCE, Site, log_in, serve
from tests.server.conftest import site as plain_site
from tests.waiting import await_true

__all__ = ["plain_site", "serve"]

PUSH = b'{"value": "one", "priority": 1}'
#: Sends a request the usual way and changes nothing else of it.
USUAL = "TE: trailers"
_OWN = re.compile(rb'"id": "[^"]+"|"count": [0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+\+00:00|Content-Length: [0-9]+')


def authorized(site: Site, queue: str = "jobs") -> dict[str, str]:
    """Make a queue and a token; return the header of the token."""
    cookies = log_in(site)
    csrf = dict(pair.split("=", 1) for pair in cookies.split("; "))["pqadmin_csrf"]
    headers = {"Cookie": cookies, "X-CSRFToken": csrf}
    assert call(site, "POST", "queues", {"name": queue}, **headers)[0] == 201
    return headers


@pytest.fixture(scope="module")
def shared(plain_site: Site) -> tuple[Site, str]:
    """A site with the queue `jobs`, and a token."""
    authorized(plain_site)
    return plain_site, token(plain_site)


def token(site: Site, name: str = "t") -> str:
    return command(site, "create_token", name, "--queues", "*", "--verbs", "all").split()[-1]


def command(site: Site, *words: str) -> str:
    done = run_forked_text(*words, form=MANAGE, folder=site.data, env={"PQADMIN_DATA": str(site.data)})
    done.check_returncode()
    return done.stdout


def request(secret: str, path: str, body: bytes = b"", *fields: str) -> bytes:
    lines = [f"POST /api/v1/queues/jobs/{path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {secret}"]
    lines += [f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*lines, "", ""]).encode() + body


def connect(site: Site) -> socket.socket:
    host, _, port = site.address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def answers(connection: socket.socket, number: int = 1) -> list[bytes]:
    """Return so many answers that tell their length."""
    found, data = [], b""
    while len(found) < number:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: ([0-9]+)", head) if end else None
        if length is not None and len(rest) >= int(length[1]):
            found.append(head + end + rest[: int(length[1])])
            data = rest[int(length[1]) :]
            continue
        part = connection.recv(65_536)
        assert part, (found, data)
        data += part
    assert not data
    return found


def depth(site: Site, secret: str) -> int:
    return int(call(site, "GET", "queues/jobs", Authorization=f"Bearer {secret}")[2]["ready"])


def test_both_ways_write_the_same_bytes(shared: tuple[Site, str]) -> None:
    site, secret = shared
    with connect(site) as connection:
        for path, body in [("items", PUSH), ("items", b"{"), ("pop", b""), ("pop?end=x", b""), ("ack", b"{}")]:
            found = []
            for more in ((), (USUAL,)):
                connection.sendall(request(secret, path, body, *more))
                found += answers(connection)
            assert _OWN.sub(b"", found[0]) == _OWN.sub(b"", found[1])
    call(site, "POST", "queues/jobs/pop?n=1000", Authorization=f"Bearer {secret}")


def test_a_lone_client_loses_nothing_beside_threads_and_other_processes(shared: tuple[Site, str]) -> None:
    """The event loop executes what a lone client sends; keys, waits and other clients go other ways meanwhile."""
    site, secret = shared
    call(site, "POST", "queues/jobs/pop?n=1000", Authorization=f"Bearer {secret}")
    number = 60
    with connect(site) as connection, connect(site) as other, open_store(f"lmdb:{site.data / 'store'}") as store:
        queue = store.priority_queue("jobs")
        for n in range(number):
            connection.sendall(request(secret, "items", PUSH))
            assert answers(connection)[0].startswith(b"HTTP/1.1 201 ")
            if n % 20 == 9:
                store.transact(lambda tr: queue.push(b"theirs", 2, tr=tr))
            if n % 20 == 19:
                other.sendall(request(secret, "items", PUSH, f"Idempotency-Key: {n}"))
                connection.sendall(request(secret, "items", PUSH))
                assert all(answers(one)[0].startswith(b"HTTP/1.1 201 ") for one in (connection, other))
        sent = number + 3 * (number // 20)
        assert depth(site, secret) == sent
        for path in ("pop?end=max", "lease", "pop?n=1000", "pop", "items"):
            connection.sendall(request(secret, path))
            assert answers(connection)[0].startswith(b"HTTP/1.1 422 " if path == "items" else b"HTTP/1.1 200 ")
    call(site, "POST", "queues/jobs/pop?n=1000", Authorization=f"Bearer {secret}")


def test_changes_of_other_processes_hold_for_the_next_request_of_a_lone_client(shared: tuple[Site, str]) -> None:
    site, _ = shared
    secret = token(site, "lone")
    with connect(site) as connection, open_store(f"lmdb:{site.data / 'store'}") as store:

        def statuses(number: int = 1) -> set[bytes]:
            found = set()
            for _ in range(number):
                connection.sendall(request(secret, "pop"))
                found.add(answers(connection)[0].split()[1])
            return found

        assert statuses(IN_A_ROW + 2) == {b"200"}
        store.rename_queue("jobs", "elsewhere")
        assert statuses() == {b"404"}
        store.rename_queue("elsewhere", "jobs")
        assert statuses(IN_A_ROW + 2) == {b"200"}
        command(site, "revoke_token", "lone")
        assert statuses() == {b"401"}


def test_requests_are_executed_however_their_bytes_are_cut(shared: tuple[Site, str]) -> None:
    site, secret = shared
    before, sent = depth(site, secret), request(secret, "items", PUSH)
    cuts = range(1, len(sent), 7)
    with connect(site) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for cut in cuts:
            connection.sendall(sent[:cut])
            connection.sendall(sent[cut:] + sent)
            assert all(one.startswith(b"HTTP/1.1 201 ") for one in answers(connection, 2))
        connection.sendall(sent * 50)
        assert all(one.startswith(b"HTTP/1.1 201 ") for one in answers(connection, 50))
    assert depth(site, secret) == before + 2 * len(cuts) + 50


@pytest.mark.parametrize(
    "odd",
    [
        "Content-Length: 5",
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
        "X: a\r\n folded",
        "X: a\nY: b",
        "X: a\0b",
        "Content-Length : 0",
        "Host: other",
    ],
)
def test_no_second_request_hides_in_a_first(shared: tuple[Site, str], odd: str) -> None:
    """However a request with an odd head is answered, what is inside its body is never executed."""
    site, secret = shared
    before = depth(site, secret)
    inner = request(secret, "items", PUSH, "Connection: close")
    outer = request(secret, "pop?n=0", b"0\r\n\r\n" + inner, odd, "Connection: close")
    exchange(site, outer)
    assert depth(site, secret) == before


def test_what_clients_that_leave_have_sent_whole_is_done(shared: tuple[Site, str]) -> None:
    """A request that came whole is executed without its client, the usual way too; a part of one is not."""
    site, secret = shared
    before = depth(site, secret)
    for more in ((), (USUAL,)):
        sent = request(secret, "items", PUSH, *more)
        for bytes_of_it in (sent, sent[:-1], sent[:40]):
            with connect(site) as connection:
                connection.sendall(bytes_of_it)
        with connect(site) as connection:  # half closed: it may read the answer, or not
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
    await_true(lambda: depth(site, secret) >= before + 4)
    assert depth(site, secret) == before + 4
    with connect(site) as connection:  # no connection is broken by those
        connection.sendall(request(secret, "items", PUSH))
        assert answers(connection)[0].startswith(b"HTTP/1.1 201 ")


def test_a_client_that_does_not_read_gets_all_of_its_answers(shared: tuple[Site, str]) -> None:
    site, secret = shared
    number = 60
    call(site, "POST", "queues/jobs/pop?n=1000", Authorization=f"Bearer {secret}")
    large = b'{"value": "%s", "priority": 1}' % (b"x" * 60_000)
    with connect(site) as connection:
        for _ in range(number):
            connection.sendall(request(secret, "items", large))
            assert answers(connection)[0].startswith(b"HTTP/1.1 201 ")
        connection.sendall(request(secret, "pop") * number)
        await_true(lambda: depth(site, secret) < number)  # it is answered while nothing is read
        found = answers(connection, number)
    assert all(len(one) > 60_000 for one in found)


def test_a_site_that_stops_answers_what_it_executes(serve: Callable[..., Site]) -> None:
    """Every push that was executed is answered, or its client's connection ended under that one request."""
    site = serve()
    authorized(site)
    secret = token(site)
    told, cut_off, warm = [0] * 8, [0] * 8, threading.Semaphore(0)

    def push(client: int) -> None:
        with connect(site) as connection:
            while True:
                try:
                    connection.sendall(request(secret, "items", PUSH))
                    (one,) = answers(connection)
                except (OSError, AssertionError):
                    cut_off[client] = 1
                    return
                assert one.startswith(b"HTTP/1.1 201 ")
                told[client] += 1
                if told[client] == 20:
                    warm.release()

    with ThreadPoolExecutor(8) as clients, connect(site) as polling:
        polling.sendall(request(secret, "lease?wait=60&end=max"))
        working = [clients.submit(push, client) for client in range(8)]
        for _ in range(8):
            assert warm.acquire(timeout=PATIENCE)
        site.signal(signal.SIGTERM)
        for one in working:
            one.result(PATIENCE)
        assert answers(polling)[0].startswith(b"HTTP/1.1 200 ")
    assert site.exit_code() == 0
    assert "Traceback" not in "\n".join(site.complained)
    again = serve()
    _, _, found = call(again, "GET", "queues/jobs", Authorization=f"Bearer {secret}")
    items = int(found["ready"]) + int(found["leased"])
    assert sum(told) <= items <= sum(told) + sum(cut_off)


def test_small_bodies_are_bounded_too(serve: Callable[..., Site]) -> None:
    site = serve(PQADMIN_MAX_BODY="2000", PQADMIN_MAX_UPLOAD="5000")
    authorized(site)
    secret = token(site)
    for path in ("items", "pop"):
        assert exchange(site, request(secret, path, b" " * 5_001)).startswith(b"HTTP/1.1 413 ")
    assert exchange(site, request(secret, "pop", b" " * 1_999, "Connection: close")).startswith(b"HTTP/1.1 200 ")
