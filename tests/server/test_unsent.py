"""What waits for the client of a socket: bounded, with Twisted's own buffers and a connection without a reader."""

import socket
from collections.abc import Iterator

import pytest
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.address import IPv4Address
from twisted.internet.tcp import Connection
from twisted.internet.testing import MemoryReactorClock

from pqadmin.server.site_socket import MOST_UNSENT, SiteSocket
from tests.server.test_http_limits import NoServer

PART = b"x" * 100_000


@pytest.fixture
def unread() -> Iterator[SiteSocket]:
    """An open socket whose client reads nothing."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    factory = WebSocketFactory(NoServer(), server="pqadmin")
    factory.protocol = SiteSocket
    factory.setProtocolOptions(openHandshakeTimeout=0)
    made = factory.buildProtocol(None)
    connection = Connection(ours, made, MemoryReactorClock())
    connection.connected = 1
    connection.getPeer = lambda: IPv4Address("TCP", "192.0.2.1", 50_000)
    made.makeConnection(connection)
    made.state = SiteSocket.STATE_OPEN
    with ours, theirs:
        yield made


@pytest.mark.parametrize("short_way", [True, False], ids=["frames", "other messages"])
def test_a_client_that_does_not_read_is_cut_off(
    unread: SiteSocket, short_way: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers to pings and acknowledgements waited in memory: 300 MB in 40 seconds for one socket."""
    taken = 0
    while unread.state == SiteSocket.STATE_OPEN and taken < 10 * MOST_UNSENT:
        if short_way:
            unread.push(b"", PART)
        else:
            unread.sendData(PART)
        taken += len(PART)
    assert MOST_UNSENT < taken < 2 * MOST_UNSENT
    assert unread.state == SiteSocket.STATE_CLOSED
    assert not unread.push(b"", PART), "nothing more is kept for it"
    if short_way:  # the log tells each reason once a minute
        assert "does not read what it is sent" in caplog.text
