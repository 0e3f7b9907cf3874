"""Event streams of the API without a server: what a client of server-sent events gets."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pqadmin.api.handler import ApiHandler

PATIENCE = 60.0  # seconds; reached only when something hangs


class Stream:
    """A client that follows events."""

    def __init__(self, secret: str, query: str = "", last: str = "") -> None:
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())]
        if last:
            headers.append((b"last-event-id", last.encode()))
        self._scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/api/v1/events",
            "raw_path": b"/api/v1/events",
            "query_string": query.encode(),
            "headers": headers,
            "client": ["127.0.0.1", 1],
            "server": ["localhost", 80],
        }
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._left = asyncio.Event()
        self._asked = False
        self._text = ""
        self.status = 0
        #: The id of the last event that had one.
        self.last = last

    async def __aenter__(self) -> "Stream":
        self._task = asyncio.ensure_future(ApiHandler()(self._scope, self._receive, self._sent.put))
        started = await asyncio.wait_for(self._sent.get(), PATIENCE)
        self.status = started["status"]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._left.set()
        await self._task

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def block(self) -> dict[str, str] | None:
        """Return the fields of the next block, an event or an id alone; None at the end of the stream."""
        while "\n\n" not in self._text:
            message = await asyncio.wait_for(self._sent.get(), PATIENCE)
            self._text += message.get("body", b"").decode()
            if not message.get("more_body"):
                return None
        block, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        self.last = fields.get("id", self.last)
        return fields

    async def event(self) -> tuple[str, Any]:
        """Return kind and data of the next event; ("", None) at the end of the stream."""
        while (fields := await self.block()) is not None:
            if "event" in fields:
                return fields["event"], json.loads(fields["data"])
        return "", None

    async def until(self, kind: str, fits: Callable[[Any], bool] = lambda data: True) -> list[tuple[str, Any]]:
        """Return the events up to the next one of a kind that fits, with it."""
        found = [await self.event()]
        while found[-1][0] != kind or not fits(found[-1][1]):
            assert found[-1][0], f"the stream ended before {kind}"
            found.append(await self.event())
        return found
