"""HTTP request of the site: its body is read before the application, and a whole answer is one write."""

import asyncio
import re
from io import BytesIO
from typing import IO, Any
from urllib.parse import unquote

from daphne.http_protocol import WebRequest
from daphne.utils import HEADER_NAME_RE

from pqadmin.limits.body_size import API, BODY
from pqadmin.server.whole_request import Answer

#: Bytes that no header may hold.
_BAD = re.compile(rb"[\0\r\n]")
_API = API.encode("ascii")


class SiteRequest(WebRequest):  # type: ignore[misc] # daphne is not typed
    """A request with a body that the application reads first."""

    content: Any  # the body until all of it has come
    #: What came as the body, once all of it has come.
    body: IO[bytes] | None = None
    #: Bytes of the body so far.
    brought = 0
    #: The head of an answer before its body has come.
    _head: Any = None
    _left: asyncio.Event | None = None

    def __init__(self, channel: Any, queued: object = False) -> None:
        # Twisted would parse forms here, in the event loop, before any check of address or login.
        super().__init__(channel, queued, parsePOSTFormSubmission=False)

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a part of the body, or refuse the request if it is too large."""
        if not self.channel.takes(self, len(data)):
            return
        try:
            super().handleContentChunk(data)
        except OSError as error:  # larger bodies are kept in a file
            self.channel.cannot_keep(error)

    def process(self) -> Any:
        """Begin the application; the body goes another way than Daphne's (`pqadmin.limits.body_size`)."""
        self.requestHeaders.removeHeader(b"daphne-root-path")  # Daphne would believe any client
        self.content.seek(0)
        self.body, self.content = self.content, BytesIO()
        scope = self._scope() if self.uri.startswith(_API) else None
        if scope is None:
            return super().process()
        application = self.server.application(scope, self._receive, self._send)
        self.server.connections[self]["application_instance"] = asyncio.ensure_future(application)
        return None

    def connectionLost(self, reason: Any) -> None:
        """Let go of a body that no application has taken."""
        super().connectionLost(reason)
        if self._left is not None:
            self._left.set()
        if self.body is not None:
            self.body.close()

    def _scope(self) -> dict[str, Any] | None:
        """Return the scope as Daphne would make it; None: what is unusual is left to Daphne."""
        path, _, query = self.uri.partition(b"?")
        headers = []
        for name, values in self.requestHeaders.getAllRawHeaders():
            lower = name.lower()
            if lower == b"upgrade" or b"_" in name or not HEADER_NAME_RE.fullmatch(name):
                return None
            for value in values:
                if _BAD.search(value):
                    return None
                headers.append((lower, value))
        if not self.uri.isascii():
            return None
        self.client_addr = [str(self.client.host), self.client.port]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": self.clientproto.partition(b"/")[2].decode("ascii"),
            "method": self.method.decode("ascii"),
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "root_path": self.server.root_path,
            "scheme": "https" if self.isSecure() else "http",
            "query_string": query,
            "headers": headers,
            "client": self.client_addr,
            "server": [str(self.host.host), self.host.port],
            "extensions": {BODY: self.body},
        }

    async def _receive(self) -> dict[str, Any]:
        """Return when the client has gone: the body goes another way."""
        if self._left is None:
            self._left = asyncio.Event()
        if not (self.finished or self.channel is None):
            await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        """Send a whole answer as one write; the parts of a longer one as Daphne does."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        head, self._head = self._head, None
        if head is not None and not message.get("more_body") and self._write_whole(head, message.get("body", b"")):
            return
        if head is not None:
            await self.server.handle_reply(self, head)
        await self.server.handle_reply(self, message)

    def _write_whole(self, head: dict[str, Any], body: bytes) -> bool:
        """Write an answer; return False if it does not tell its length."""
        if self.finished or self.channel is None:
            return True  # the client has gone
        headers = [*head["headers"]]
        if not any(name.lower() == b"content-length" for name, _ in headers):
            return False
        for name, values in self.responseHeaders.getAllRawHeaders():  # that the connection ends
            headers.append((name, values[0]))
        body = b"" if self.method == b"HEAD" else body
        self.code, self.startedWriting, self._response_started = head["status"], 1, True
        self.channel.answer(Answer(head["status"], headers, body), self.clientproto)
        self.finish()
        return True
