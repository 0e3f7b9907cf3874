"""What a client may send, how slowly, and how often: the limits of the HTTP server, seen from outside."""

import contextlib
import errno
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock
from twisted.internet.tcp import Port
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.logger import globalLogPublisher

from pqadmin.server import daphne_server, http_channel, refusal, resources
from pqadmin.server.http_channel import Limits, SiteFactory
from tests.server.conftest import PATIENCE, Site

LOGIN = b"/accounts/login/"
FORGED = b"Cookie: pqadmin_csrf=" + b"a" * 32 + b"\r\n"


def memory(site: Site, what: str = "VmRSS") -> int:
    found = re.search(rf"{what}:\s+(\d+)", Path(f"/proc/{site.process.pid}/status").read_text())
    assert found
    return int(found.group(1)) * 1024


def forget_peak(site: Site) -> None:
    """Have VmHWM begin anew: the first start hashes a password, which takes 100 MB for a moment."""
    Path(f"/proc/{site.process.pid}/clear_refs").write_text("5")


def processor_time(site: Site) -> float:
    """Return the seconds that the server has worked so far."""
    fields = Path(f"/proc/{site.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def connect(site: Site, source: str = "127.0.0.1") -> socket.socket:
    host, port = site.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE, source_address=(source, 0))


def head(method: bytes, path: bytes, *fields: bytes) -> bytes:
    return b"\r\n".join([method + b" " + path + b" HTTP/1.1", b"Host: 127.0.0.1", *fields, b"", b""])


def read(connection: socket.socket) -> bytes:
    """Return all that is answered until the connection is closed."""
    answer = b""
    try:
        while part := connection.recv(65_536):
            answer += part
    except ConnectionError:
        pass
    return answer


def post(site: Site, path: bytes, body: bytes, kind: bytes, *fields: bytes) -> bytes:
    with connect(site) as connection:
        length = b"Content-Length: %d" % len(body)
        connection.sendall(head(b"POST", path, b"Connection: close", b"Content-Type: " + kind, length, *fields))
        with contextlib.suppress(ConnectionError):  # refused meanwhile
            connection.sendall(body)
        return read(connection)


# Line 8: nothing parses a body before Django does, which has limits of its own


def test_no_body_is_parsed_by_the_event_loop(site: Site) -> None:
    """Each of these took 2 to 17 seconds, in which the site did nothing else, and up to 2 GB."""
    nested = b"".join(
        b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (level, level + 1) for level in range(480)
    )
    csrf = FORGED.strip()
    bodies = [
        (LOGIN, nested + b"--\r\n" * 230_000, b"multipart/form-data; boundary=b0"),
        (b"/queues/jobs/push/many/", b"--b\r\n\r\n" * 2_000_000, b"multipart/form-data; boundary=b"),
        (b"/queues/jobs/push/many/", b"%41" * 6_600_000, b"application/x-www-form-urlencoded"),
    ]
    assert site.get("/livez")[0] == 200
    forget_peak(site)
    before, worked = memory(site), processor_time(site)
    for path, body, kind in bodies:
        answer = post(site, path, body, kind, csrf)
        assert answer[9:12] in {b"400", b"403"}, answer[:200]
        assert site.get("/livez")[0] == 200
    assert processor_time(site) - worked < 4.0
    assert memory(site, "VmHWM") - before < 100_000_000


def test_forms_and_files_still_arrive(site: Site) -> None:
    """A form by length and by chunks, and a file of 24 MB that is in a part of its own."""
    form = b"username=stranger&password=wrong"
    assert b"CSRF" not in post(site, LOGIN, form, b"application/x-www-form-urlencoded")[:12]
    with connect(site) as connection:
        kind = b"Content-Type: application/x-www-form-urlencoded"
        connection.sendall(head(b"POST", LOGIN, b"Connection: close", kind, b"Transfer-Encoding: chunked"))
        for at in range(0, len(form), 7):
            part = form[at : at + 7]
            connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        connection.sendall(b"0\r\n\r\n")
        assert read(connection).startswith(b"HTTP/1.1 403")
    file = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="items"\r\n\r\n'
        + b"x" * 24_000_000
        + b"\r\n--b--\r\n"
    )
    # Read to its end, and refused for want of a login or a token only then.
    assert post(site, b"/queues/jobs/push/many/", file, b"multipart/form-data; boundary=b")[9:12] in {b"302", b"403"}


# Line 9: bodies


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with limits of its own for bodies and for files."""
    shared = Site(tmp_path_factory.mktemp("bounded"), PQADMIN_MAX_BODY="4000000", PQADMIN_MAX_UPLOAD="5000000")
    yield shared
    shared.stop()


def test_a_body_over_the_limit_is_refused_before_it_is_read(bounded: Site) -> None:
    site = bounded
    assert site.get("/livez")[0] == 200
    body, upload = 4_000_000, 5_000_000
    for path, most in ((LOGIN, body), (b"/nowhere/", body), (b"/queues/a%20b/push/many/?x=1", upload)):
        for size, expected in ((most, None), (most + 1, b"413"), (400_000_000, b"413")):
            with connect(site) as connection:
                length = b"Content-Length: %d" % size
                connection.sendall(head(b"POST", path, b"Connection: close", length, b"Accept-Language: zh-hans"))
                if expected is None:
                    connection.sendall(b"x" * size)
                answer = read(connection)
            if expected is None:
                assert answer[9:12] in {b"403", b"302", b"404"}, answer[:100]
            else:
                assert answer[9:12] == expected
                assert b"Connection: close" in answer
                assert f"{most:,}".encode() in answer
                assert "太".encode() in answer or "内容".encode() in answer, "in the reader's language"


def test_a_form_may_be_as_large_as_the_limit_of_bodies(bounded: Site) -> None:
    form = b"csrfmiddlewaretoken=" + b"a" * 32 + b"&username=stranger&password=wrong&filler=" + b"a" * 3_000_000
    assert post(bounded, LOGIN, form, b"application/x-www-form-urlencoded", FORGED.strip())[9:12] == b"422"


def test_a_client_that_waits_for_leave_to_send_gets_none(site: Site) -> None:
    with connect(site) as connection:
        connection.sendall(head(b"POST", LOGIN, b"Content-Length: 400000000", b"Expect: 100-continue"))
        assert read(connection).startswith(b"HTTP/1.1 413")


def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(site: Site) -> None:
    assert site.get("/livez")[0] == 200
    forget_peak(site)
    before = memory(site)
    with connect(site) as connection:
        connection.sendall(head(b"POST", LOGIN, b"Transfer-Encoding: chunked"))
        sent, chunk = 0, b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            while sent < 400_000_000:
                connection.sendall(chunk)
                sent += len(chunk)
        assert sent < 400_000_000, "it went on reading"
    assert site.get("/livez")[0] == 200
    assert memory(site, "VmHWM") - before < 60_000_000
    with connect(site) as connection:  # a client that stops to listen is told
        connection.sendall(head(b"POST", LOGIN, b"Transfer-Encoding: chunked"))
        for _ in range(20):
            connection.sendall(chunk)
        assert read(connection).startswith(b"HTTP/1.1 413")


def test_many_bodies_that_wait_are_not_in_memory(site: Site) -> None:
    assert site.get("/livez")[0] == 200
    before = memory(site, "RssAnon")
    waiting = []
    for _ in range(60):
        connection = connect(site)
        connection.sendall(head(b"POST", LOGIN, b"Content-Length: 1000000") + b"x" * 999_999)
        waiting.append(connection)
    assert site.get("/livez")[0] == 200
    assert memory(site, "RssAnon") - before < 40_000_000
    for connection in waiting:
        connection.close()


# Line 9: connections and requests at once


def test_one_address_has_so_many_connections_and_no_more(serve: Callable[..., Site]) -> None:
    site = serve(PQADMIN_CONNECTIONS_PER_ADDRESS="10")
    assert site.get("/livez")[0] == 200
    idle = [connect(site, "127.0.0.2") for _ in range(10)]
    with connect(site, "127.0.0.2") as one_more:
        one_more.sendall(head(b"GET", b"/livez"))
        answer = read(one_more)
    assert answer.startswith(b"HTTP/1.1 429")
    assert b"Retry-After: 5" in answer
    assert site.get("/livez")[0] == 200, "other addresses have their own"
    idle[0].sendall(head(b"GET", b"/livez", b"Connection: close"))
    assert read(idle[0]).startswith(b"HTTP/1.1 200")
    for connection in idle:
        connection.close()
    give_up = time.monotonic() + PATIENCE
    while True:
        with connect(site, "127.0.0.2") as again:
            again.sendall(head(b"GET", b"/livez", b"Connection: close"))
            if read(again).startswith(b"HTTP/1.1 200"):
                break
        assert time.monotonic() < give_up


def test_behind_a_trusted_proxy_each_address_has_its_own_limit(serve: Callable[..., Site]) -> None:
    site = serve(
        PQADMIN_TRUSTED_PROXY="127.0.0.1",
        PQADMIN_CONNECTIONS_PER_ADDRESS="3",
        PQADMIN_REQUESTS_PER_ADDRESS="2",
        PQADMIN_VIEW_THREADS="1",
    )
    assert site.get("/livez")[0] == 200
    held = [connect(site) for _ in range(5)]  # a proxy may have more connections than one address
    for connection in held:
        connection.sendall(head(b"GET", b"/livez", b"Connection: close"))
        assert read(connection).startswith(b"HTTP/1.1 200")
        connection.close()


# Lines 9 and 12: deadlines, by a clock


class Transport(StringTransport):
    """A connection in memory, of which one half can be closed."""

    half_closed = aborted = False

    def loseWriteConnection(self) -> None:  # noqa: N802
        self.half_closed = True

    def abortConnection(self) -> None:  # noqa: N802
        self.aborted = True


class NoServer:
    """What a channel asks of Daphne's server before a request is whole."""

    def protocol_connected(self, protocol: object) -> None:
        pass

    def protocol_disconnected(self, protocol: object) -> None:
        pass


class Line:
    """One connection to a factory, with a clock."""

    made: "ClassVar[list[Line]]" = []

    def __init__(self, factory: SiteFactory, clock: Clock, host: str = "192.0.2.1") -> None:
        self.transport = Transport(peerAddress=IPv4Address("TCP", host, 50_000))
        self.protocol = factory.buildProtocol(self.transport.getPeer())
        self.clock = clock
        self.made.append(self)
        if self.protocol is not None:
            self.protocol.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        self.protocol.dataReceived(data)

    @property
    def said(self) -> bytes:
        return bytes(self.transport.value())

    @property
    def over(self) -> bool:
        return self.transport.disconnecting or self.transport.half_closed or self.transport.aborted

    def lose(self) -> None:
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connectionLost(None)


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()
    while Line.made:
        Line.made.pop().lose()


def make_factory(clock: Clock, **limits: int) -> SiteFactory:
    factory = SiteFactory(
        NoServer(),
        Limits(
            body=lambda _: 1_000_000,
            connections=limits.get("connections", 0),
            connections_per_address=limits.get("per_address", 0),
            is_proxy=lambda address: ip_address(address) == ip_address("192.0.2.99"),
        ),
    )
    factory.reactor = clock
    return factory


def test_a_head_that_trickles_in_has_twenty_seconds(clock: Clock) -> None:
    line = Line(make_factory(clock), clock)
    line.send(b"GET / HTTP/1.1\r\n")
    for _ in range(19):
        clock.advance(1)
        line.send(b"X-A: b\r\n")
    assert not line.over
    clock.advance(2)
    assert line.said.startswith(b"HTTP/1.1 408")
    assert line.transport.half_closed
    clock.advance(http_channel.LINGER)
    assert line.transport.aborted, "it does not wait for the client for ever"


def test_a_connection_that_says_nothing_has_twenty_seconds(clock: Clock) -> None:
    line = Line(make_factory(clock), clock)
    clock.advance(19)
    assert not line.over
    clock.advance(2)
    assert line.over
    assert line.said == b"", "a browser that connected ahead of time has asked nothing"


def test_a_body_that_trickles_in_is_cut_off_and_a_slow_one_is_not(clock: Clock) -> None:
    factory = make_factory(clock)
    slow, trickling = Line(factory, clock), Line(factory, clock)
    for line in (slow, trickling):
        line.send(head(b"POST", LOGIN, b"Content-Length: 900000"))
    for _ in range(100):
        clock.advance(1)
        slow.send(b"x" * 1_100)
        if not trickling.over:
            trickling.send(b"x")
    assert not slow.over
    assert trickling.said.startswith(b"HTTP/1.1 408")


def test_chunks_of_one_byte_do_not_cost_more_than_a_body(clock: Clock) -> None:
    line = Line(make_factory(clock), clock)
    line.send(head(b"POST", LOGIN, b"Transfer-Encoding: chunked"))
    extended = b"1;" + b"x" * 1_000 + b"\r\nx\r\n"
    for _ in range(10_000):
        line.send(extended)
        if line.over:
            break
    assert line.said.startswith(b"HTTP/1.1 413")


def test_what_is_no_request_is_answered_and_logged_once_a_minute(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    factory = make_factory(clock)
    for _ in range(3):
        line = Line(factory, clock)
        line.send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert line.said.startswith(b"HTTP/1.1 400")
        assert line.over
    assert len([record for record in caplog.records if "no HTTP request" in record.getMessage()]) <= 1


@pytest.mark.parametrize(
    "sent",
    [
        head(b"GET", b"/api/v1/queues/" + b"a" * 20_000),
        head(b"GET", b"/api/v1/store", b"X-A: " + b"a" * 20_000),
        head(b"GET", b"/api/v1/store", *(b"X-%d: " % n + b"a" * 200 for n in range(100))),
    ],
)
def test_a_head_that_is_too_long_is_answered(clock: Clock, sent: bytes) -> None:
    line = Line(make_factory(clock), clock)
    line.send(sent)
    assert line.said.startswith(b"HTTP/1.1 431")
    assert b'"code": "HeadTooLarge"' in line.said


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        head(b"GET", b"/", b"Host: 127.0.0.1"),
        head(b"POST", b"/", b"Transfer-Encoding: identity"),
        head(b"POST", b"/", b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked"),
        head(b"POST", b"/", b"Transfer-Encoding: chunked", b"Content-Length: 1"),
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        head(b"POST", b"/", b"Content-Length: " + b"9" * 5_000),
        head(b"POST", b"/api/v1/queues/jobs/pop", b"Content-Length: " + b"9" * 5_000),
    ],
)
def test_a_head_that_proxies_may_read_otherwise_is_refused(clock: Clock, sent: bytes) -> None:
    line = Line(make_factory(clock), clock)
    line.send(sent)
    assert line.said.startswith(b"HTTP/1.1 400")
    assert line.over


def test_a_client_of_http_1_0_needs_no_host(clock: Clock) -> None:
    line = Line(make_factory(clock), clock)
    line.send(b"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n")
    assert (line.said, line.over) == (b"", False), "its body may come"


def test_no_client_says_where_the_site_is_mounted(site: Site) -> None:
    for path in (LOGIN, b"/api/v1/openapi.json"):
        for root in (b"/elsewhere", b"\xff"):
            with connect(site) as connection:
                connection.sendall(head(b"GET", path, b"Daphne-Root-Path: " + root, b"Connection: close"))
                answer = read(connection)
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"elsewhere" not in answer


def test_a_client_that_speaks_https_is_answered_at_once(clock: Clock) -> None:
    line = Line(make_factory(clock), clock)
    line.send(b"\x16\x03\x01\x02\x00\x01\x00")
    assert line.said.startswith(b"HTTP/1.1 400"), "a wrong version of TLS, to the client"


def test_when_there_is_no_room_the_log_says_so_and_says_when_there_is_again(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    factory = make_factory(clock, connections=20)
    lines = [Line(factory, clock) for _ in range(20)]
    refused = Line(factory, clock)
    refused.send(head(b"GET", b"/"))
    assert refused.said.startswith(b"HTTP/1.1 503")
    assert b"Retry-After" in refused.said
    refused.lose()
    assert "no room for more than 20 connections" in caplog.text
    clock.advance(http_channel.HEAD_WITHIN + 1)
    for line in lines:
        assert line.over
        line.lose()
    assert "room for connections again" in caplog.text
    assert not isinstance(Line(factory, clock).protocol, refusal.Refusal)


def test_only_some_are_told_that_there_is_no_room(clock: Clock) -> None:
    factory = make_factory(clock, per_address=5)
    held = [Line(factory, clock) for _ in range(5)]
    told = [Line(factory, clock) for _ in range(http_channel.TOLD_AT_ONCE)]
    assert Line(factory, clock).protocol is None, "closed at once"
    clock.advance(refusal.TOLD_WITHIN + 1)
    assert all(line.transport.aborted for line in told)
    for line in told:
        line.lose()
    assert Line(factory, clock).protocol is not None
    assert Line(factory, clock, "192.0.2.99").said == b"", "a proxy has no such limit"
    assert not held[0].over


# Line 12: descriptors


def test_the_soft_limit_of_descriptors_is_raised() -> None:
    program = (
        "import resource; from pqadmin.server import resources;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]));"
        "print(resources.raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    limit, soft, hard = map(int, said.split())
    assert limit == soft == min(hard if hard > 0 else resources.MOST, resources.MOST)


@pytest.mark.parametrize(
    ("limit", "wanted", "expected"), [(1024, 0, 896), (1024, 100, 100), (1024, 5_000, 896), (100, 0, 50), (0, 0, 0)]
)
def test_connections_leave_descriptors_for_everything_else(limit: int, wanted: int, expected: int) -> None:
    assert resources.connections(limit, wanted) == expected


def test_slow_connections_neither_use_up_descriptors_nor_lock_other_clients_out(serve: Callable[..., Site]) -> None:
    """With a hard limit of 256 descriptors and 300 connections that never send a request."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[0] < 700:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1024), hard))
    site = serve(program=str(Path(__file__).with_name("few_descriptors.py")))
    assert site.get("/livez")[0] == 200
    held: list[socket.socket] = []
    try:
        for _ in range(300):
            connection = connect(site, "127.0.0.2")
            connection.sendall(b"GET / HTTP/1.1\r\n")
            held.append(connection)
        site.wait_for("no room for more than")
        with connect(site) as visitor:
            visitor.sendall(head(b"GET", b"/livez"))
            assert read(visitor)[9:12] in {b"503", b""}
        site.wait_for("room for connections again")  # their time is over
        assert site.get("/readyz")[0] == 200
    finally:
        for connection in held:
            connection.close()
    assert not any("EMFILE" in line or "Too many open files" in line for line in site.complained)


class NoneLeft:
    """A listening socket of a process that has no descriptor left."""

    def accept(self) -> object:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_that_descriptors_have_run_out_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    port = Port(0, Factory(), interface="127.0.0.1", reactor=MemoryReactorClock())
    port.startListening()
    globalLogPublisher.addObserver(daphne_server.log_event)
    listening, port.socket = port.socket, NoneLeft()
    try:
        for _ in range(3):
            port.doRead()
    finally:
        globalLogPublisher.removeObserver(daphne_server.log_event)
        listening.close()
    assert len([line for line in caplog.messages if "no file descriptor left" in line]) == 1


def test_a_body_for_which_there_is_no_descriptor_is_answered_with_503(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(tempfile, "TemporaryFile", none_left)
    line = Line(make_factory(clock), clock)
    line.send(head(b"POST", LOGIN, b"Content-Length: 900000", b"Expect: 100-continue") + b"x" * 1_000)
    assert line.said.startswith(b"HTTP/1.1 503")
    assert "A request's body cannot be kept" in caplog.text
    clock.advance(http_channel.LINGER)
    assert line.transport.aborted
