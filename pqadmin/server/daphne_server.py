"""Daphne, run in this process on a socket that is already open, and stopped without cutting anybody off."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet import reactor as installed_reactor
from twisted.logger import globalLogBeginner

reactor: Any = installed_reactor  # the asyncio one; its type depends on what was installed
GOING_AWAY = 1012  # "service restart": the page reconnects with a back-off
REQUESTS_FINISH_WITHIN = 5.0  # seconds
SOCKETS_CLOSE_WITHIN = 1.0
_LOOK_EVERY = 0.02
#: Bytes of an answer that may wait for the client, and seconds in which it takes some of them.
MOST_UNSENT, TAKEN_WITHIN = 1_000_000, 60.0


class SiteSocket(WebSocketProtocol):  # type: ignore[misc]
    """A websocket that may be closed with the protocol's own codes, 1001 to 1014."""

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802 # Daphne's name
        """Close with `code`, 1000 unless given."""
        if code is not None and 1001 <= code <= 1014:
            self.sendCloseFrame(code=code)
        else:
            super().serverClose(code)


class DaphneServer(Server):  # type: ignore[misc]
    """Daphne's server on an open socket; the first signal drains it, the second ends the process at once."""

    def __init__(self, application: Any, listener: socket.socket, *, on_drain: Callable[[], None]) -> None:
        super().__init__(
            application,
            endpoints=["none: the socket is open already"],
            signal_handlers=False,
            websocket_max_message_size=64 * 1024,
            websocket_max_frame_size=64 * 1024,
            websocket_timeout=-1,
            application_close_timeout=5,
            server_name="pqadmin",
        )
        self._listener = listener
        self._on_drain = on_drain
        self._draining: asyncio.Task[None] | None = None
        self.connections: dict[Any, dict[str, Any]] = {}

    def run(self) -> None:
        """Serve until a signal; returns when everything is drained."""
        self.http_factory = HTTPFactory(self)
        self.ws_factory = WebSocketFactory(self, server=self.server_name)
        self.ws_factory.protocol = SiteSocket
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=self.websocket_max_message_size,
            maxFramePayloadSize=self.websocket_max_frame_size,
        )
        globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        self._port = reactor.adoptStreamPort(self._listener.fileno(), self._listener.family, self.http_factory)
        self._listener.close()  # Twisted has its own copy
        loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop  # noqa: SLF001
        asyncio.set_event_loop(loop)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled)
        reactor.addSystemEventTrigger("before", "shutdown", self.kill_all_applications)
        reactor.run(installSignalHandlers=False)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send a part of an answer; return once the client has taken most of what was sent before.

        Without this an answer that is made faster than it is taken would wait in memory. A client that takes nothing
        for a minute is cut off.
        """
        await super().handle_reply(protocol, message)
        if message.get("more_body"):
            await self._until_taken(protocol)

    async def _until_taken(self, protocol: Any) -> None:
        loop = asyncio.get_running_loop()
        left = _unsent(protocol)
        until = loop.time() + TAKEN_WITHIN
        while left > MOST_UNSENT and "disconnected" not in self.connections.get(protocol, {"disconnected": True}):
            await asyncio.sleep(_LOOK_EVERY)
            now_left = _unsent(protocol)
            if now_left < left:
                left, until = now_left, loop.time() + TAKEN_WITHIN
            elif loop.time() > until:
                protocol.channel.forceAbortClient()

    def kill_all_applications(self) -> Any:
        """Cancel what is still running when the time to drain is over."""
        for protocol, details in list(self.connections.items()):
            if "application_instance" not in details:  # finished, not yet swept: Daphne would stumble over it
                del self.connections[protocol]
        return super().kill_all_applications()

    def _signalled(self) -> None:
        if self._draining is not None:
            os._exit(130)
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            self._port.stopListening()
            told = asyncio.create_task(asyncio.to_thread(self._on_drain))
            for protocol in self._open(SiteSocket):
                with contextlib.suppress(Exception):  # one that is half open has nothing to be told
                    protocol.serverClose(GOING_AWAY)
            await self._until_none(WebRequest, REQUESTS_FINISH_WITHIN)
            await self._until_none(SiteSocket, SOCKETS_CLOSE_WITHIN)
            await asyncio.wait([told], timeout=SOCKETS_CLOSE_WITHIN)
        finally:
            self.stop()

    async def _until_none(self, kind: type, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._open(kind) and loop.time() < deadline:
            await asyncio.sleep(_LOOK_EVERY)

    def _open(self, kind: type) -> list[Any]:
        return [
            protocol
            for protocol, details in self.connections.items()
            if isinstance(protocol, kind) and "disconnected" not in details
        ]


def _unsent(protocol: Any) -> int:
    """Return the bytes that wait for a client in Twisted's buffers; 0 when it is gone."""
    transport = getattr(getattr(protocol, "channel", None), "transport", None)
    if transport is None or not hasattr(transport, "_tempDataLen"):
        return 0
    unsent: int = len(transport.dataBuffer) - transport.offset + transport._tempDataLen  # noqa: SLF001 # none public
    return unsent
