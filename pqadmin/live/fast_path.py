"""A fast path to a client that a server may offer beside ASGI: see `pqadmin.server.site_socket`."""

from collections.abc import Callable
from typing import Protocol

#: The name of the extension in an ASGI scope.
PIPE = "pqadmin.pipe"


class Shared(bytes):
    """A part of a message that many sockets send."""

    #: The same compressed, once it was computed.
    packed: bytes | None = None


class Pipe(Protocol):
    """A socket that takes finished messages and reports acknowledgements."""

    acknowledged: Callable[[int], bool] | None

    def push(self, head: bytes, body: bytes) -> bool:
        """Send one text message made of two parts. Return False if the socket is not open."""
