"""Open sockets as the hub and the guard of rights see them. An error in one closes that one only."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pqadmin.accounts.scope import Scope
from pqadmin.live.subscription import Subscription
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Close code: an error of the server's own.
BROKEN = 1011


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The credentials of a socket and what it may see: a user's session, or a wall's link."""

    scope: Scope
    session_key: str = ""
    user_id: int = 0
    #: The stored hash: a changed password ends other sessions.
    password: str = ""
    #: What names a wall's link to the app that keeps it; never the link's token itself.
    link: str = ""


class Socket(Protocol):
    """One open socket. Used in its own event loop only."""

    subscription: Subscription
    badge: Pass

    def wake(self) -> None:
        """Look at the subscription and send what is due."""

    def admit(self, badge: Pass) -> None:
        """Go on with this pass: its scope is another one."""

    def end(self, code: int) -> None:
        """Close the socket with this code."""


def isolate(socket: Socket, do: Callable[[Socket], object]) -> None:
    """Do something for one socket; if that fails, log why and close this socket."""
    try:
        do(socket)
    except Exception as error:  # any error is this socket's
        _limited.warn(type(error), "A live socket was closed: %s: %s", type(error).__name__, error, exc_info=True)
        with contextlib.suppress(Exception):  # there is nothing more to do for it
            socket.end(BROKEN)
