"""A request of the API."""

from typing import IO, Any

from django.core.handlers.asgi import ASGIRequest

from pqadmin.accounts.caller import Caller


class ApiRequest(ASGIRequest):
    """A request with a body that the server and its view bound, not by the setting for forms."""

    #: Its caller, once that is known.
    auth: Caller
    #: Whether the event loop may execute it itself: see `pqadmin.server.lone_client`.
    in_loop = False

    def __init__(self, scope: Any, body: IO[bytes], receive: Any) -> None:
        super().__init__(scope, body)
        self._body: bytes
        #: Brings what else comes from the client, at last that it went away.
        self.receive = receive

    @property
    def body(self) -> bytes:
        """The whole body."""
        if not hasattr(self, "_body"):
            self._body = self._stream.read()
        return self._body

    def set_body(self, body: bytes) -> None:
        """Set the whole body."""
        self._body = body

    @property
    def body_file(self) -> IO[bytes]:
        """The body as a file."""
        file: IO[bytes] = self._stream
        return file
