"""Isolation of live sockets: an error in one closes that one only."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Close code: an error of the server's own.
BROKEN = 1011


class Closable(Protocol):
    """A socket that can be closed."""

    def end(self, code: int) -> None:
        """Close the socket with this code."""


Socket = TypeVar("Socket", bound=Closable)


def isolate(socket: Socket, do: Callable[[Socket], object]) -> None:
    """Do something for one socket; if that fails, log why and close this socket."""
    try:
        do(socket)
    except Exception as error:  # any error is this socket's
        _limited.warn(type(error), "A live socket was closed: %s: %s", type(error).__name__, error, exc_info=True)
        with contextlib.suppress(Exception):  # there is nothing more to do for it
            socket.end(BROKEN)
