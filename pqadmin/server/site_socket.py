"""The server's end of a websocket: Daphne's, with a fast path for frames and acknowledgements.

Frames go out in one system call, in two parts of which many sockets share the second; acknowledgements come in without
a task, a queue and a parser. Everything else goes through Daphne. Under another server (and in tests) the consumer does
without it: `pqadmin.live.fast_path.PIPE` is then not in the scope's extensions.

Clients that offer it (browsers do) get large messages compressed (RFC 7692), and the part that many share is compressed
once for all of them: the compressor begins anew with every message, and the part that differs precedes it
uncompressed, in a deflate block of its own.
"""

import logging
import secrets
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from autobahn.websocket.compress import (
    PerMessageCompressOffer,
    PerMessageDeflateOffer,
    PerMessageDeflateOfferAccept,
)
from autobahn.websocket.types import ConnectionDeny, ConnectionRequest
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.tcp import Connection

from pqadmin.limits.token_bucket import Allowance
from pqadmin.live.fast_path import Shared
from pqadmin.server.receive_rate import unsent
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

_TEXT, _PACKED_TEXT = 0x81, 0xC1
#: Bytes of a message of a client, unpacked.
MAX_MESSAGE = 64 * 1024
#: Bytes that may wait for a client that does not read, and messages of a client that may wait for us.
MOST_UNSENT, MOST_UNREAD = 2_000_000, 200
#: Pings a second, data frames a second, and how many of each may come at once.
PINGS, FRAMES = (2.0, 20.0), (100.0, 500.0)
#: Smaller messages are not worth the packing. Level and window of deflate: half the work of the usual level, 6.
_PACKED_FROM, _LEVEL, _WINDOW = 1_000, 2, 15
#: What a packed message of RFC 7692 leaves out at its end, and a block with nothing in it.
_TAIL, _NOTHING = b"\0\0\xff\xff", b"\0\0\0\xff\xff"
_ACK, _END = b'{"t":"ack","seq":', b"}"
#: Bytes of the longest acknowledgement, and of the header of a short frame of a client.
_MOST, _BEFORE = 40, 6


def accept_compression(offers: Sequence[PerMessageCompressOffer]) -> PerMessageDeflateOfferAccept | None:
    """Answer a client's offers: what can be kept without remembering anything between messages, or nothing."""
    for offer in offers:
        if (
            isinstance(offer, PerMessageDeflateOffer)
            and offer.request_max_window_bits in (0, _WINDOW)
            and offer.accept_no_context_takeover
        ):
            return PerMessageDeflateOfferAccept(  # type: ignore[no-untyped-call]
                offer,
                request_no_context_takeover=True,
                no_context_takeover=True,
                max_message_size=MAX_MESSAGE,
            )
    return None


def pack(body: Shared) -> bytes:
    """Compress the part that many sockets share, once for all of them.

    Up to 100 bytes of nothing at the end, drawn anew for each, hide how well values compress with each other (BREACH).
    """
    if body.packed is None:
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW)
        packed = deflate.compress(body) + deflate.flush(zlib.Z_SYNC_FLUSH)
        body.packed = (packed + _NOTHING * secrets.randbelow(21))[: -len(_TAIL)]
    return body.packed


def stored_block(head: bytes) -> bytes:
    """Return a deflate block that holds this uncompressed: one bit "not the last", two "stored", two lengths."""
    size = len(head)
    return b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + head


class SiteSocket(WebSocketProtocol):  # type: ignore[misc]
    """A websocket with a fast path, and with close codes 1001 to 1014."""

    #: Called with acknowledgements; returns whether nothing else must handle them.
    acknowledged: Callable[[int], bool] | None = None

    def connectionMade(self) -> None:
        """Begin; a client that does not read is not read from either, as Twisted tells us when to pause."""
        now = time.monotonic()
        self._pings = Allowance(rate=PINGS[0], burst=PINGS[1], now=now)
        self._frames = Allowance(rate=FRAMES[0], burst=FRAMES[1], now=now)
        self.transport.unregisterProducer()  # the HTTP channel that this connection was
        self.transport.registerProducer(self, True)
        super().connectionMade()

    def connectionLost(self, reason: Any) -> None:
        """Forget the connection."""
        self.factory.server_class.http_factory.left(self.transport)
        super().connectionLost(reason)

    def onConnect(self, request: ConnectionRequest) -> Any:
        """Begin the application, unless a subprotocol is outside ASCII, which Daphne fails to read."""
        if not request.headers.get("sec-websocket-protocol", "").isascii():
            raise ConnectionDeny(ConnectionDeny.BAD_REQUEST, "a subprotocol is ASCII")  # type: ignore[no-untyped-call]
        return super().onConnect(request)

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        """Tell the application, which a refused handshake has not begun."""
        if hasattr(self, "server"):
            super().onClose(wasClean, code, reason)

    def pauseProducing(self) -> None:
        """Read no more until the client has read."""
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Read on."""
        self.transport.resumeProducing()

    def stopProducing(self) -> None:
        """Take note that the connection is gone; `connectionLost` is told as well."""

    def onPing(self, payload: bytes) -> None:
        """Answer, unless there are too many."""
        if self._pings.take(time.monotonic()):
            super().onPing(payload)
        else:
            self._drop("sends too many pings")

    def onPong(self, payload: bytes) -> None:
        """Count answers: a client may send them unasked."""
        if not self._pings.take(time.monotonic()):
            self._drop("sends too many pongs")

    def onMessageFrameBegin(self, length: int) -> None:
        """Count frames, of which an endless message may have any number."""
        super().onMessageFrameBegin(length)
        if not self._frames.take(time.monotonic()):
            self._drop("sends too many frames")

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        """Hand a message on, unless too many wait already."""
        if self.application_queue.qsize() >= MOST_UNREAD:
            self._drop("sends faster than it can be heard")
        else:
            super().onMessage(payload, isBinary)

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:
        """Send bytes, unless too many wait for the client already."""
        super().sendData(data, sync, chopsize)
        self._check_unsent()

    def _check_unsent(self) -> None:
        if unsent(self.transport) > MOST_UNSENT:
            self._drop("does not read what it is sent")

    def _drop(self, why: str) -> None:
        """Cut the connection off: what waits for the client is thrown away."""
        if self.state != self.STATE_CLOSED:
            _limited.warn(why, "A socket of %s was cut off: the client %s.", self.peer, why)
            self.wasNotCleanReason = why
            self.dropConnection(abort=True)

    def serverClose(self, code: int | None = None) -> None:
        """Close with `code`, 1000 unless given."""
        if code is not None and 1001 <= code <= 1014:
            self.sendCloseFrame(code=code)
        else:
            super().serverClose(code)

    def sendMessage(self, payload: bytes, isBinary: bool = False, **options: Any) -> None:
        """Send what does not go the short way, uncompressed: a compressor for each socket would take 256 kB."""
        super().sendMessage(payload, isBinary, **{**options, "doNotCompress": True})

    def dataReceived(self, data: bytes) -> None:
        """Take in bytes: an acknowledgement that came alone and whole at once, anything else as ever."""
        if self.state == self.STATE_CONNECTING and hasattr(self, "handshake_deferred"):
            self._drop("sends before it was let in")
            return
        hear = self.acknowledged
        compression = self._perMessageCompress
        size = len(data) - _BEFORE
        if (
            hear is not None
            and 0 < size <= _MOST
            and (data[0] == _TEXT or (data[0] == _PACKED_TEXT and compression is not None))
            and data[1] == 0x80 | size
            and self.state == self.STATE_OPEN
            and not self.data
            and not self.muted
            and self.current_frame is None
            and not self.inside_message
        ):
            mask = data[2:_BEFORE] * (size // 4 + 1)
            whole = int.from_bytes(data[_BEFORE:], "big") ^ int.from_bytes(mask[:size], "big")
            text = whole.to_bytes(size, "big")
            if data[0] == _PACKED_TEXT:
                text = _unpacked(text)
            number = text[len(_ACK) : -1]
            if text.startswith(_ACK) and text.endswith(_END) and number.isdigit() and hear(int(number)):
                return
        super().dataReceived(data)
        if compression is not None and not self.inside_message:
            compression._decompressor = None  # noqa: SLF001 # autobahn would keep 40 kB

    def push(self, head: bytes, body: bytes) -> bool:
        """Send one text message of two parts, now if the client keeps up. Return False if the socket is not open."""
        if self.state != self.STATE_OPEN:
            return False
        transport: Any = self.transport
        first = _TEXT
        if self._perMessageCompress is not None and isinstance(body, Shared) and len(body) >= _PACKED_FROM:
            first, head, body = _PACKED_TEXT, stored_block(head), pack(body)
        size = len(head) + len(body)
        if size < 126:
            start = bytes((first, size)) + head
        elif size < 65_536:
            start = bytes((first, 126)) + size.to_bytes(2, "big") + head
        else:
            start = bytes((first, 127)) + size.to_bytes(8, "big") + head
        sent = 0
        # Twisted's buffers would copy both parts, and ask the reactor to be woken, and to be left alone again.
        if isinstance(transport, Connection) and not unsent(transport):
            try:
                sent = transport.socket.sendmsg((start, body))
            except OSError:  # would block, or worse: Twisted finds out
                sent = 0
        if sent < len(start):
            transport.write(start[sent:] + body)
        elif sent < len(start) + len(body):
            transport.write(body[sent - len(start) :])
        self._check_unsent()
        return True


def _unpacked(text: bytes) -> bytes:
    """Return what a short message says. Nothing when it is damaged or more than an acknowledgement."""
    try:
        return zlib.decompressobj(-_WINDOW).decompress(text + _TAIL, _MOST)
    except zlib.error:
        return b""
