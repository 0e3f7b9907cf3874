"""Sockets of clients that mean harm: each is cut off by itself, and costs the rest nothing."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.server.conftest import PATIENCE, Site
from tests.server.test_http_limits import connect, forget_peak, head, memory, read
from tests.server.test_sockets import log_in, open_socket

#: A ping, an empty message that does not end, and a part of it; masked with zeros.
PING, BEGINNING, PART = b"\x89\xfd\0\0\0\0" + b"x" * 125, b"\x01\x80\0\0\0\0", b"\x00\x80\0\0\0\0"


@pytest.fixture(scope="module")
def site(site: Site) -> Iterator[Site]:
    """The server that the tests of this module share: it ends well."""
    yield site
    site.signal(signal.SIGTERM)
    assert site.exit_code() == 0


@pytest.mark.parametrize("flood", [PING, PART], ids=["pings", "frames"])
def test_a_flood_of_frames_that_are_not_read_is_cut_off(site: Site, flood: bytes) -> None:
    """Each ping was answered into memory: 300 MB in 40 seconds."""
    cookies = log_in(site)
    with open_socket(site, Cookie=cookies, Origin=site.address) as viewer:
        assert viewer.recv(timeout=PATIENCE)
        forget_peak(site)
        before = memory(site)
        with open_socket(site, Cookie=cookies, Origin=site.address) as hostile:
            with pytest.raises(OSError, match="."):
                hostile.socket.sendall(BEGINNING if flood == PART else PING)
                for _ in range(5_000):
                    hostile.socket.sendall(flood * 1_000)
            with pytest.raises(ConnectionClosed):
                while True:
                    hostile.recv(timeout=PATIENCE)
        viewer.send(json.dumps({"t": "watch", "topic": "overview", "queues": []}))
        assert json.loads(viewer.recv(timeout=PATIENCE))["t"] == "frame"
        assert memory(site, "VmHWM") - before < 30_000_000
    site.wait_for("was cut off")
    assert not any("Traceback" in line or "Error" in line for line in site.complained)


def test_one_person_has_so_many_sockets(serve: Callable[..., Site]) -> None:
    site = serve(PQADMIN_SOCKETS_PER_PERSON="3")
    cookies = log_in(site)
    with ExitStack() as stack:
        live = [stack.enter_context(open_socket(site, Cookie=cookies, Origin=site.address)) for _ in range(3)]
        with pytest.raises(InvalidStatus):
            open_socket(site, Cookie=cookies, Origin=site.address)
        live[0].close()
        while True:  # the server learns of it a moment later
            try:
                stack.enter_context(open_socket(site, Cookie=cookies, Origin=site.address))
                break
            except InvalidStatus:
                continue


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that has room for four connections of an address."""
    shared = Site(tmp_path_factory.mktemp("narrow"), PQADMIN_CONNECTIONS_PER_ADDRESS="4")
    yield shared
    shared.stop()


def test_sockets_that_are_over_count_no_longer_as_connections(narrow: Site) -> None:
    """Else a screen that comes back again and again would lock its own address out."""
    site = narrow
    cookies = log_in(site)
    opened, give_up = 0, time.monotonic() + PATIENCE
    while opened < 10:
        try:
            with open_socket(site, Cookie=cookies, Origin=site.address) as live:
                assert live.recv(timeout=PATIENCE)
            opened += 1
        except (InvalidStatus, ConnectionClosed):  # the server learns of an end a moment later
            assert time.monotonic() < give_up, f"{opened} were let in"


def test_handshakes_that_are_refused_count_no_longer_as_connections(narrow: Site) -> None:
    """Each did for ever: without a login, some hundreds took all places of an address, or of the whole site."""
    site = narrow
    for field in (
        b"Origin: http://a:b",
        b"Sec-WebSocket-Version: 7",
        b"Sec-WebSocket-Key: x",
        "Sec-WebSocket-Protocol: \u00e9".encode(),
    ):
        fields = {
            b"Upgrade": b"Upgrade: websocket",
            b"Connection": b"Connection: Upgrade",
            b"Sec-WebSocket-Version": b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key": b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        }
        fields[field.partition(b":")[0]] = field
        refused, give_up = 0, time.monotonic() + PATIENCE
        while refused < 10:
            with connect(site) as hostile:
                hostile.sendall(head(b"GET", b"/live/", *fields.values()))
                answer = read(hostile)
                assert answer.startswith(b"HTTP/1.1 4"), (field, answer)
                refused += not answer.startswith(b"HTTP/1.1 429")
            assert time.monotonic() < give_up, f"{refused} were told why of {field!r}"
    assert not any("Error" in line for line in site.complained)


def test_half_a_character_stops_no_other_page(site: Site) -> None:
    """It raised in the loop that serves all sockets: 12 of 30 other sockets fell silent."""
    cookies = log_in(site)
    with ExitStack() as stack:
        live = [stack.enter_context(open_socket(site, Cookie=cookies, Origin=site.address)) for _ in range(30)]
        for number, socket in enumerate(live):
            groups = ["\ud800"] if number == 13 else []
            socket.send(json.dumps({"t": "watch", "topic": "overview", "queues": [], "groups": groups}))
        for number, socket in enumerate(live):
            kinds = set()
            while not kinds & {"error", "frame"}:
                message = json.loads(socket.recv(timeout=PATIENCE))
                kinds.add(message["t"])
            assert ("error" in kinds) is (number == 13)
            if number == 13:
                assert message["code"] == "bad-text"
        for socket in live:
            socket.send(json.dumps({"t": "resync"}))
        for number, socket in enumerate(live):
            while number != 13 and json.loads(socket.recv(timeout=PATIENCE))["t"] != "beat":
                socket.send(json.dumps({"t": "ack", "seq": 1}))
