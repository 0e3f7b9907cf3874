"""Refusal of a connection over a limit, with the reason as its answer."""

from collections.abc import Callable
from typing import Any

from twisted.internet import protocol
from twisted.protocols import policies

_Protocol: Any = protocol.Protocol  # half of Twisted is typed, not this half
_TimeoutMixin: Any = policies.TimeoutMixin

#: Seconds that a connection has to send its request.
TOLD_WITHIN = 3.0


class Refusal(_TimeoutMixin, _Protocol):  # type: ignore[misc]
    """A connection over a limit: its request is answered with why, unread."""

    def __init__(self, answer: bytes, ended: Callable[[], None]) -> None:
        self._answer, self._ended = answer, ended

    def connectionMade(self) -> None:
        """Wait for the request, as an answer before it would be lost; not for long."""
        self.setTimeout(TOLD_WITHIN)

    def dataReceived(self, data: bytes) -> None:
        """Answer once, and read past the rest."""
        if self._answer:
            self.transport.write(self._answer)
            self._answer = b""
            self.transport.loseWriteConnection()

    def timeoutConnection(self) -> None:
        """Close it."""
        self.transport.abortConnection()

    def connectionLost(self, reason: Any = None) -> None:
        """Let the next one be told."""
        self.setTimeout(None)
        self._ended()
