"""Asks the site's health checks without a server."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from pqadmin.server.health import Health


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a probe receives."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> dict[str, Any]:
        """Return the body as JSON."""
        found: dict[str, Any] = json.loads(self.content)
        return found


def probe(path: str = "/readyz", method: str = "GET") -> Answer:
    """Ask once."""
    return asyncio.run(ask(Health(elsewhere), path, method))


async def ask(application: Health, path: str = "/readyz", method: str = "GET") -> Answer:
    """Ask within an event loop."""
    said: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await application({"type": "http", "path": path, "method": method}, None, send)
    headers = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return Answer(status=said[0]["status"], headers=headers, content=said[1]["body"])


async def elsewhere(scope: object, receive: object, send: object) -> None:
    """Stand for the application, which no probe reaches."""
    raise AssertionError("passed on")
