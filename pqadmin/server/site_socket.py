"""The server's end of a websocket: Daphne's, and beside ASGI a short way for what is said thousands of times a second.

Frames go out in one system call, in two parts of which many sockets share the second; acknowledgements come in without
a task, a queue and a parser. Everything else goes Daphne's way. Without this server (tests, another one) the consumer
does without it: `pqadmin.live.pipe.PIPE` is then not in the scope's extensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.tcp import Connection

_TEXT = 0x81
_ACK, _END = b'{"t":"ack","seq":', b"}"
#: Bytes of the longest acknowledgement, and of what stands before the text in a short frame of a client.
_MOST, _BEFORE = 40, 6


class SiteSocket(WebSocketProtocol):  # type: ignore[misc]
    """A websocket with a short way, which may be closed with the protocol's own codes, 1001 to 1014."""

    #: Hears acknowledgements; says whether that was the end of it.
    acknowledged: Callable[[int], bool] | None = None

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802 # Daphne's name
        """Close with `code`, 1000 unless given."""
        if code is not None and 1001 <= code <= 1014:
            self.sendCloseFrame(code=code)
        else:
            super().serverClose(code)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 # Twisted's name
        """Take in bytes: an acknowledgement that came alone and whole at once, anything else as ever."""
        hear = self.acknowledged
        size = len(data) - _BEFORE
        if (
            hear is not None
            and 0 < size <= _MOST
            and data[0] == _TEXT
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
            number = text[len(_ACK) : -1]
            if text.startswith(_ACK) and text.endswith(_END) and number.isdigit() and hear(int(number)):
                return
        super().dataReceived(data)

    def push(self, head: bytes, body: bytes) -> bool:
        """Send one text message made of two parts, now if the client keeps up; say False if the socket is not open."""
        if self.state != self.STATE_OPEN:
            return False
        transport: Any = self.transport
        size = len(head) + len(body)
        if size < 126:
            start = bytes((_TEXT, size)) + head
        elif size < 65_536:
            start = b"\x81\x7e" + size.to_bytes(2, "big") + head
        else:
            start = b"\x81\x7f" + size.to_bytes(8, "big") + head
        sent = 0
        # Twisted's buffers would copy both parts, and ask the reactor to be woken, and to be left alone again.
        if isinstance(transport, Connection) and not transport._tempDataBuffer and not _unsent(transport):  # noqa: SLF001
            try:
                sent = transport.socket.sendmsg((start, body))
            except OSError:  # would block, or worse: Twisted finds out
                sent = 0
        if sent < len(start):
            transport.write(start[sent:] + body)
        elif sent < len(start) + len(body):
            transport.write(body[sent - len(start) :])
        return True


def _unsent(transport: Any) -> int:
    unsent: int = len(transport.dataBuffer) - transport.offset
    return unsent
