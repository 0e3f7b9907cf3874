"""Daphne, run in this process on an open socket, and stopped without cutting off requests."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Collection
from typing import Any, cast

from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import reactor as installed_reactor
from twisted.logger import LogEvent, LogLevel, formatEvent, globalLogBeginner

from pqadmin.commands.stop_signals import stop_signals
from pqadmin.limits.body_size import BODY
from pqadmin.live.fast_path import PIPE
from pqadmin.server.http_channel import FastPath, Limits, SiteFactory
from pqadmin.server.http_request import SiteRequest
from pqadmin.server.receive_rate import Pace, unsent
from pqadmin.server.site_socket import MAX_MESSAGE, SiteSocket, accept_compression
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

reactor: Any = installed_reactor  # the asyncio one; its type depends on what was installed
# Twisted counts by the wall clock: set back an hour, it would delay every timer by an hour.
reactor.seconds = time.monotonic
GOING_AWAY = 1012  # "service restart": the page reconnects with a back-off
REQUESTS_FINISH_WITHIN = 5.0  # seconds
SOCKETS_CLOSE_WITHIN = 1.0
_LOOK_EVERY = 0.02
#: Bytes of an answer that may wait for the client.
MOST_UNSENT = 1_000_000


class DaphneServer(Server):  # type: ignore[misc]
    """Daphne's server on an open socket. The first signal drains it, the second ends the process at once."""

    def __init__(
        self,
        application: Any,
        listener: socket.socket,
        limits: Limits,
        *,
        fast: FastPath | None = None,
        on_drain: Callable[[], None],
    ) -> None:
        super().__init__(
            application,
            endpoints=["none: the socket is open already"],
            signal_handlers=False,
            websocket_max_message_size=MAX_MESSAGE,
            websocket_max_frame_size=MAX_MESSAGE,
            websocket_timeout=-1,
            application_close_timeout=5,
            server_name="pqadmin",
        )
        self._listener = listener
        self._limits = limits
        self._fast = fast
        self._on_drain = on_drain
        self._draining: asyncio.Task[None] | None = None
        self.connections: dict[Any, dict[str, Any]] = {}

    def run(self) -> None:
        """Serve until a signal; returns when everything is drained."""
        self.http_factory = SiteFactory(self, self._limits, self._fast)
        self.ws_factory = WebSocketFactory(self, server=self.server_name)
        self.ws_factory.protocol = SiteSocket
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,
            openHandshakeTimeout=self.websocket_handshake_timeout,
            perMessageCompressionAccept=accept_compression,
            maxMessagePayloadSize=self.websocket_max_message_size,
            maxFramePayloadSize=self.websocket_max_frame_size,
        )
        globalLogBeginner.beginLoggingTo([cast(Any, log_event)], redirectStandardIO=False, discardBuffer=True)
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        self._port = reactor.adoptStreamPort(self._listener.fileno(), self._listener.family, self.http_factory)
        self._listener.close()  # Twisted has its own copy
        loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop  # noqa: SLF001 # none public
        asyncio.set_event_loop(loop)
        for number in stop_signals():
            loop.add_signal_handler(number, self._signalled)
        reactor.addSystemEventTrigger("before", "shutdown", self.kill_all_applications)
        reactor.run(installSignalHandlers=False)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Begin an application. The scope of a websocket has its fast path, that of a request its body."""
        if isinstance(protocol, SiteSocket):
            scope.setdefault("extensions", {})[PIPE] = protocol
        elif protocol.body is not None:
            scope.setdefault("extensions", {})[BODY] = protocol.body
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send a part of an answer. Return once the client has received most of the parts before.

        Otherwise an answer that is made faster than it is received would wait in memory. A client that receives next to
        nothing for a minute is cut off.
        """
        before = _unsent(protocol)
        await super().handle_reply(protocol, message)
        if message.get("more_body") and protocol in self.connections:
            pace = self.connections[protocol].setdefault("pace", Pace())
            pace.sending(before, _unsent(protocol))
            await self._until_taken(protocol, pace)

    async def _until_taken(self, protocol: Any, pace: Pace) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while _unsent(protocol) > MOST_UNSENT and "disconnected" not in self.connections.get(
            protocol, {"disconnected": True}
        ):
            await asyncio.sleep(_LOOK_EVERY)
            now = loop.time()
            pace.waited(now - looked, _unsent(protocol))
            looked = now
            if pace.too_slow:
                protocol.channel.forceAbortClient()
                return

    def kill_all_applications(self) -> Any:
        """Cancel applications that still run when the time to drain is over."""
        for protocol, details in list(self.connections.items()):
            if "application_instance" not in details:  # finished, not yet swept: Daphne would fail on it
                del self.connections[protocol]
        self.http_factory.cancel_answers()
        return super().kill_all_applications()

    def protocol_disconnected(self, protocol: Any) -> None:
        """Note when a connection ended; one that was dropped as the server ends is known no more."""
        if protocol in self.connections:
            super().protocol_disconnected(protocol)

    def _signalled(self) -> None:
        if self._draining is not None:
            os._exit(130)
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            self._port.stopListening()
            told = asyncio.create_task(asyncio.to_thread(self._on_drain))
            for protocol in self._open(SiteSocket):
                with contextlib.suppress(Exception):  # a half-open one cannot be closed by a code
                    protocol.serverClose(GOING_AWAY)
            await _until_none(lambda: self._open(SiteRequest) or self.http_factory.answering, REQUESTS_FINISH_WITHIN)
            await _until_none(lambda: self._open(SiteSocket), SOCKETS_CLOSE_WITHIN)
            await asyncio.wait([told], timeout=SOCKETS_CLOSE_WITHIN)
        finally:
            self.stop()

    def _open(self, kind: type) -> list[Any]:
        return [
            protocol
            for protocol, details in self.connections.items()
            if isinstance(protocol, kind) and "disconnected" not in details
        ]


async def _until_none(found: Callable[[], Collection[Any]], seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while found() and loop.time() < deadline:
        await asyncio.sleep(_LOOK_EVERY)


def _unsent(protocol: Any) -> int:
    return unsent(getattr(getattr(protocol, "channel", None), "transport", None))


def log_event(event: LogEvent) -> None:
    """Log one event of Twisted's if it matters: errors, and refused connections for want of descriptors."""
    level = event.get("log_level")
    text = formatEvent(event) or ""
    if "EMFILE" in text or "Could not accept new connection" in text:
        _limited.warn("EMFILE", "The process has no file descriptor left: connections are reset (%s).", text)
    elif level is not None and level >= LogLevel.error:
        failure = event.get("log_failure")
        what = f"{failure.type.__name__}: {failure.getErrorMessage()}" if failure is not None else text
        where = f" at {failure.frames[-1][1]}:{failure.frames[-1][2]}" if failure is not None and failure.frames else ""
        _limited.warn((event.get("log_namespace"), what[:80]), "A connection failed: %s%s", what, where)
