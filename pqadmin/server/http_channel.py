"""HTTP connections: Twisted's channel with limits on bodies, deadlines, and a limit of connections.

Twisted's own timeout is one of silence, which a byte now and then renews; these are of a whole request. A usual request
of the API goes past Daphne's queues, and its answer is one write. A request of the fast path goes past Twisted's parser
too.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from daphne.http_protocol import HTTPFactory
from twisted.web import http

from pqadmin.conf import ip
from pqadmin.limits.concurrency import Places
from pqadmin.server import plain_page
from pqadmin.server.http_request import SiteRequest
from pqadmin.server.lone_client import LoneClient
from pqadmin.server.receive_rate import unsent
from pqadmin.server.refusal import Refusal
from pqadmin.server.whole_request import Answer, WholeRequest, whole_request
from queues.admin import LogLimit

_HTTPChannel: Any = http.HTTPChannel  # half of Twisted is typed, not this half

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Seconds in which the head of a request arrives.
HEAD_WITHIN = 20.0
#: Bytes of a body that arrive at least in so many seconds.
LEAST, EVERY = 20_000, 20.0
#: Seconds and bytes for which a refused request is read past, so that the client sees the answer.
LINGER, MOST_PAST = 5.0, 64_000_000
#: Bytes on the wire for each byte of a body: chunks of one byte take six.
_OVERHEAD = 4
#: A target that is a whole address: its host, its path and query.
_ABSOLUTE = re.compile(rb"https?://([^/?]+)(.*)", re.IGNORECASE | re.DOTALL)
#: How a client begins that speaks https.
_TLS = b"\x16\x03"
_SLACK = 65_536
#: Seconds for which a request of the fast path goes on without its client, as Daphne's requests do.
_GOES_ON = 5.0
#: Connections over a limit that are told so at once; more are closed without a word.
TOLD_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server takes from its clients."""

    #: Bytes of a body by the request's target.
    body: Callable[[bytes], int]
    #: Connections of all addresses, and of one address; 0 is no limit.
    connections: int
    connections_per_address: int
    #: Says whether an address is a proxy's, behind which many people are.
    is_proxy: Callable[[str], bool]


class FastPath(Protocol):
    """Answers usual requests without a Twisted request; see `pqadmin.api.fast_path`."""

    def begin(self, request: WholeRequest, client: str, *, in_loop: bool) -> Coroutine[Any, Any, Answer | None] | None:
        """Return what answers a request, or None, or returns None where that is to go the other way.

        `in_loop` lets the event loop execute it itself: see `pqadmin.server.lone_client`.
        """


class SiteChannel(_HTTPChannel):  # type: ignore[misc]
    """One HTTP connection."""

    factory: "SiteFactory"
    _refused = False
    #: Bytes that were read past, and bytes on the wire for the request under way.
    _past = 0
    _wire = 0
    _most = 0
    _seen = 0
    _awaits_body = False
    _deadline: Any = None
    #: The request of the fast path that is under way.
    _fast: asyncio.Task[None] | None = None
    _gone = False

    def connectionMade(self) -> None:
        """Begin to wait for a request."""
        super().connectionMade()
        self.factory.entered(self.transport)
        self._within(HEAD_WITHIN, self._head_too_slow)

    def connectionLost(self, reason: Any) -> None:
        """Forget the connection."""
        self._within(None)
        self._gone = True
        self.factory.lone.forget(self)
        if self._fast is not None:
            self.callLater(_GOES_ON, self.cancel_answer)
        self.factory.left(self.transport)
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        """Take in bytes."""
        if self._refused:
            self._past += len(data)
            if self._past > MOST_PAST:
                self.transport.abortConnection()
        elif self._wire or self._awaits_body or self._handlingRequest or not self._goes_fast(data):
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        if self.line_mode and not self._wire and data.startswith(_TLS):
            _limited.warn("tls", "%s speaks https; this port takes http.", self._host())
            self.refuse(400)  # clients tell a wrong version of TLS, at once
            return
        self._wire += len(data)
        super().dataReceived(data)
        if self._deadline is None and not self._refused:  # most requests have come as a whole
            if self._awaits_body:
                self._within(EVERY, self._look_at_rate)
            elif not self._handlingRequest and self._wire:
                self._within(HEAD_WITHIN, self._head_too_slow)  # the next request on the same connection

    def _goes_fast(self, data: bytes) -> bool:
        """Begin to answer a request of the fast path, and return whether this is one."""
        fast = self.factory.fast
        request = None if fast is None else whole_request(data)
        if fast is None or request is None:
            return False
        in_loop = self.factory.lone.asks(self, others=bool(self.factory.answering))
        answering = fast.begin(request, self._host(), in_loop=in_loop)
        if answering is None:
            return False
        self._within(None)
        self.resetTimeout()
        self._handlingRequest = True
        self.setRawMode()  # what comes now waits
        self._fast = asyncio.ensure_future(self._answer_fast(data, answering, in_loop))
        self.factory.answering.add(self)
        return True

    async def _answer_fast(self, data: bytes, answering: Coroutine[Any, Any, Answer | None], in_loop: bool) -> None:
        began = time.monotonic()
        try:
            found = await answering
        except Exception:
            log.exception("A request of the API failed")
            self.loseConnection()
            return
        finally:
            self._fast = None
            self.factory.answering.discard(self)
            if in_loop:
                self.factory.lone.took(time.monotonic() - began)
        if self._gone or self._refused:
            return
        self._handlingRequest = False
        later = b"".join(self._dataBuffer)
        self._dataBuffer.clear()
        self.setLineMode()
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()
        self.resetTimeout()
        self._wire = 0
        if found is None:
            self._receive(data)
        else:
            self.answer(found)
        if later:
            self.dataReceived(later)

    def answer(self, answer: Answer, protocol: bytes = b"HTTP/1.1") -> None:
        """Write an answer, to the socket at once if nothing waits before it: that spares a turn of the event loop."""
        lines = [b"%s %d %s\r\n" % (protocol, answer.status, http.RESPONSES.get(answer.status, b""))]
        for name, value in answer.headers:
            lines += (name, b": ", value, b"\r\n")
        lines += (b"server: %s\r\n\r\n" % self.factory.server.server_name.encode("ascii"), answer.body)
        data, sent, transport = b"".join(lines), 0, self.transport
        open_socket = getattr(transport, "socket", None) if transport.connected else None
        if open_socket is not None and not (transport.disconnecting or unsent(transport)):
            with contextlib.suppress(OSError):  # it is full, or the transport finds what is wrong
                sent = open_socket.send(data)
        if sent < len(data):
            transport.write(data[sent:])

    def cancel_answer(self) -> None:
        """Cancel the request of the fast path that is under way."""
        if self._fast is not None:
            self._fast.cancel()

    def timeoutConnection(self) -> None:
        """End a connection without requests; one of the fast path may take its time."""
        if self._fast is None:
            super().timeoutConnection()
        else:
            self.setTimeout(self.timeOut)

    def rawDataReceived(self, data: bytes) -> None:
        """Take in a part of a body, or of the requests that come after it."""
        if not self._refused:
            super().rawDataReceived(data)

    def lineReceived(self, line: bytes) -> None:
        """Take in a line of the head."""
        if not self._refused:
            self._note_target(line)
            super().lineReceived(line)

    def lineLengthExceeded(self, line: bytes) -> None:
        """Refuse a request with an address or a header that is too long."""
        _limited.warn("431", "%s sent a line of more than %d bytes as the head.", self._host(), self.MAX_LENGTH)
        self._note_target(line)
        self.refuse(431)

    def _note_target(self, line: bytes) -> None:
        """Keep what the first line of a request asks for: by it one that is refused is answered."""
        target = line.split(b" ", 2)[1:2] if not self.requests else []
        if target:
            self._path = target[0]

    def headerReceived(self, line: bytes) -> bool:
        """Take in a field of the head, and return whether it is valid."""
        try:
            return bool(super().headerReceived(line))
        except ValueError:  # a length of thousands of digits
            self._respondToBadRequestAndDisconnect()
            return False

    def allHeadersReceived(self) -> None:
        """Refuse an ambiguous head, and a body that is announced as too large, before `100 Continue`."""
        self._within(None)
        if not _is_clear(self.requests[-1].requestHeaders, self._version):
            self._respondToBadRequestAndDisconnect()
            return
        if whole := _ABSOLUTE.fullmatch(self._path):  # as to a proxy: its host goes before the header
            self.requests[-1].requestHeaders.setRawHeaders(b"host", [whole[1]])
            self._path = whole[2] if whole[2].startswith(b"/") else b"/" + whole[2]
        self._most, self._wire, self._seen = self.factory.limits.body(self._path), 0, 0
        if self.length is not None and self.length > self._most:
            self._too_large()
            return
        try:
            super().allHeadersReceived()
        except OSError as error:  # a file for the body
            self.cannot_keep(error)
            return
        self._awaits_body = self.length != 0

    def allContentReceived(self) -> None:
        """Begin to answer."""
        if not self._refused:
            self._awaits_body, self._wire = False, 0
            self._within(None)
            super().allContentReceived()

    def takes(self, request: SiteRequest, size: int) -> bool:
        """Return whether a body may grow by so many bytes; if not, the request is refused."""
        if self._refused:
            return False
        request.brought += size
        self._seen += size
        if request.brought > self._most or self._wire > _OVERHEAD * self._most + _SLACK:
            self._too_large()
            return False
        return True

    def refuse(self, status: int, **values: str) -> None:
        """Answer with the page of this status, and close the connection a little later."""
        if self._refused:
            return
        self._refused = True
        self.setTimeout(None)
        self.transport.write(plain_page.response(status, self._language(), self._target(), **values))
        self._networkProducer.unregisterProducer()
        self.transport.loseWriteConnection()
        self._within(LINGER, self.transport.abortConnection)

    def cannot_keep(self, error: OSError) -> None:
        """Refuse a request without disk space or a file descriptor for its body."""
        _limited.warn("disk", "A request's body cannot be kept: %s", error)
        self.refuse(503)

    def _too_large(self) -> None:
        _limited.warn("413", "A body of more than %d bytes from %s was refused.", self._most, self._host())
        self.refuse(413, n=f"{self._most:,}")

    def _head_too_slow(self) -> None:
        if not self._wire:  # a browser that connected ahead of time
            self.loseConnection()
            return
        _limited.warn("408", "%s has not sent the head of a request within %g s.", self._host(), HEAD_WITHIN)
        self.refuse(408)

    def _look_at_rate(self) -> None:
        if self._seen >= LEAST:
            self._seen = 0
            self._within(EVERY, self._look_at_rate)
            return
        _limited.warn(
            "slow", "%s sends the body of a request too slowly: %d bytes in %g s.", self._host(), self._seen, EVERY
        )
        self.refuse(408)

    def _respondToBadRequestAndDisconnect(self) -> None:  # the one place for all of it
        long = self._receivedHeaderSize > self.totalHeadersSize
        _limited.warn("400", "%s sent what is no HTTP request.", self._host())
        self.refuse(431 if long else 400)

    def _host(self) -> str:
        return str(getattr(self.transport.getPeer(), "host", "?"))

    def _target(self) -> str:
        """Return the path and query of the request, empty before its first line."""
        return (getattr(self, "_path", b"") or b"").decode("latin-1")

    def _language(self) -> str:
        if not self.requests:
            return "en"
        raw = self.requests[-1].requestHeaders.getAllRawHeaders()
        return plain_page.language_of(
            {name.lower().decode("latin-1"): values[0].decode("latin-1") for name, values in raw}
        )

    def _within(self, seconds: float | None, then: Callable[[], object] | None = None) -> None:
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.callLater(seconds, then)


def _is_clear(fields: Any, version: bytes) -> bool:
    """Return whether a head names its host and its coding as RFC 9112 asks. A proxy may read any other differently."""
    hosts, codings = len(fields.getRawHeaders(b"host", ())), fields.getRawHeaders(b"transfer-encoding", ())
    if version != b"HTTP/1.1":
        return hosts <= 1 and not codings
    return hosts == 1 and [coding.lower() for coding in codings] in ([], [b"chunked"])


class SiteFactory(HTTPFactory):  # type: ignore[misc] # daphne is not typed
    """Makes the connections, and counts them."""

    protocol = SiteChannel

    def __init__(self, server: Any, limits: Limits, fast: FastPath | None = None) -> None:
        super().__init__(server)
        self.limits = limits
        self.fast = fast
        #: Connections with a request of the fast path under way.
        self.answering: set[SiteChannel] = set()
        self.lone = LoneClient()
        #: Connections that are being told that there are too many.
        self.told = 0
        #: By connection: the client that it counts for; None for a proxy, which is not counted by address.
        self._open: dict[Any, str | None] = {}
        self._places = Places(limits.connections_per_address)
        self._full = False

    def buildProtocol(self, addr: Any) -> Any:
        """Return what serves a new connection; None closes it at once."""
        host = str(getattr(addr, "host", ""))
        if self.limits.connections and len(self._open) >= self.limits.connections:
            self._full = True
            _limited.warn(
                "full", "There is no room for more than %d connections; %s was refused.", len(self._open), host
            )
            return self._refusal(503)
        if not self.limits.is_proxy(host) and not self._places.free(ip.client(host)):
            most = self.limits.connections_per_address
            _limited.warn("address", "%s has %d connections open; one more was refused.", host, most)
            return self._refusal(429)
        channel = super().buildProtocol(addr)
        channel.requestFactory = SiteRequest
        return channel

    def cancel_answers(self) -> None:
        """Cancel requests of the fast path that are under way."""
        for channel in tuple(self.answering):
            channel.cancel_answer()

    def log(self, request: Any) -> None:
        """Write no line for each request: Twisted would make one that nothing keeps."""

    def entered(self, transport: Any) -> None:
        """Count a connection, until it is `left`."""
        host = str(getattr(transport.getPeer(), "host", ""))
        client = ip.client(host)
        counted = not self.limits.is_proxy(host) and self._places.take(client)
        self._open[transport] = client if counted else None

    def left(self, transport: Any) -> None:
        """Count a connection no longer; a second call does nothing."""
        client = self._open.pop(transport, None)
        if client is not None:
            self._places.give_back(client)
        if self._full and len(self._open) < self.limits.connections * 9 // 10:
            self._full = False
            log.warning("There is room for connections again: %d are open.", len(self._open))

    def _refusal(self, status: int) -> Refusal | None:
        if self.told >= TOLD_AT_ONCE:
            return None
        self.told += 1
        refusal = Refusal(plain_page.response(status), self._ended)
        refusal.callLater = self.reactor.callLater
        return refusal

    def _ended(self) -> None:
        """Let the next one be told."""
        self.told -= 1
