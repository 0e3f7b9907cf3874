"""What the live suite shares: a store, a monitor of its own, signed-in people, and a client that checks every frame."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from pqadmin.accounts.roles import Role, grant
from pqadmin.accounts.scope import Scope
from pqadmin.live import guard
from pqadmin.live import monitor as monitors
from pqadmin.live.monitor import Monitor
from pqadmin.live.sockets import Pass
from queues import Store, open_store
from tests.conftest import store_url
from tests.schemas import CLIENT, Message, validate

#: Seconds that a test waits for what must come; reached only when something hangs.
PATIENCE = 120.0


class Viewer:
    """One socket through the whole ASGI stack; every message is checked against the schema."""

    def __init__(self, cookie: str = "", *, origin: str = "http://testserver", host: str = "testserver") -> None:
        from pqadmin.asgi import application

        headers = [(b"host", host.encode()), (b"origin", origin.encode())]
        if cookie:
            headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
        self.socket = WebsocketCommunicator(application, "/live/", headers=headers)
        self.seen: list[Message] = []
        self.rows: dict[str, Message] = {}
        self.auto_ack = True

    async def open(self) -> Message:
        """Connect and return the greeting."""
        accepted, code = await self.socket.connect(timeout=PATIENCE)
        assert accepted, code
        return await self.next()

    async def refused(self) -> int:
        """Connect in vain and return the close code."""
        accepted, code = await self.socket.connect(timeout=PATIENCE)
        assert not accepted
        return int(code or 0)

    async def next(self, timeout: float = PATIENCE) -> Message:
        """Return the next message, valid and acknowledged."""
        event = await self.socket.receive_output(timeout)
        assert event["type"] == "websocket.send", event
        message: Message = json.loads(event["text"])
        validate(message)
        self.seen.append(message)
        if message["t"] == "frame":
            if message["full"]:
                self.rows.clear()
            self.rows |= {row["id"]: row for row in message["rows"]}
            for gone in message["gone"]:
                self.rows.pop(gone, None)
        if self.auto_ack and "seq" in message:
            await self.send({"t": "ack", "seq": message["seq"]})
        return message

    async def until(self, wanted: Callable[[Message], bool], timeout: float = PATIENCE) -> Message:
        """Return the next message that is wanted; other messages are skipped."""
        async with asyncio.timeout(timeout):
            while True:
                message = await self.next(timeout)
                if wanted(message):
                    return message

    async def frame(self, wanted: Callable[[Message], bool] = lambda _: True) -> Message:
        """Return the next frame that is wanted."""
        return await self.until(lambda message: message["t"] == "frame" and wanted(message))

    async def closed(self, timeout: float = PATIENCE) -> int:
        """Wait until the server closes the socket and return the code."""
        async with asyncio.timeout(timeout):
            while True:
                event = await self.socket.receive_output(timeout)
                if event["type"] == "websocket.close":
                    return int(event.get("code") or 1000)

    async def send(self, message: Message) -> None:
        """Send a message that the schema allows."""
        CLIENT.validate(message)
        await self.socket.send_to(text_data=json.dumps(message))

    async def raw(self, text: str) -> None:
        """Send any text."""
        await self.socket.send_to(text_data=text)

    async def watch(self, *ids: int, **more: Any) -> Message:
        """Put queues on the overview's screen and return the whole frame."""
        await self.send({"t": "watch", "topic": "overview", "queues": [str(i) for i in ids], **more})
        return await self.frame(lambda frame: frame["full"])

    async def watch_queue(self, name: str) -> Message:
        """Open a queue's page and return the whole frame."""
        await self.send({"t": "watch", "topic": f"queue:{name}"})
        return await self.frame(lambda frame: frame["full"])

    async def leave(self) -> None:
        """Close the socket."""
        await self.socket.disconnect(timeout=PATIENCE)


@pytest.fixture
def store(engine: str, tmp_path: Any) -> Iterator[Store]:
    """A fresh store on each engine, with the real clock."""
    with open_store(store_url(engine, tmp_path)) as opened:
        yield opened


@pytest.fixture
def monitor(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """The process's monitor, reading the test's store."""
    made = Monitor(lambda: store)
    monkeypatch.setattr(monitors, "_monitor", made)
    yield made
    made.shutdown()


SignIn = Callable[[str], str]


@pytest.fixture
def sign_in(transactional_db: None) -> SignIn:
    """Create a viewer of this name, sign in, and return the session cookie."""

    def make(name: str) -> str:
        user = User.objects.create_user(name)
        grant(user, Role.VIEWER)
        client = Client()
        client.force_login(user)
        return str(client.cookies[settings.SESSION_COOKIE_NAME].value)

    return make


class Looks:
    """Records the results of rights checks that began after some moment."""

    def __init__(self, stored: Callable[[Collection[Pass]], dict[Pass, Scope | int]]) -> None:
        self._standing = stored
        self._noting = False
        self._found: list[dict[Pass, Scope | int]] = []

    def __call__(self, badges: Collection[Pass]) -> dict[Pass, Scope | int]:
        """Look, and note it."""
        noting = self._noting
        found = self._standing(badges)
        if noting:
            self._found.append(found)
        return found

    def from_now_on(self) -> None:
        """Note the looks that begin from now on."""
        self._noting = True

    def let_stay(self, whom: Callable[[Pass], bool]) -> int:
        """Return how many of the noted looks let a person go on as before; looks are twice a second."""
        return sum(whom(badge) and now == badge.scope for found in self._found for badge, now in found.items())


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """The results of rights checks."""
    made = Looks(guard.stored)
    monkeypatch.setattr(guard, "stored", made)
    return made


Join = Callable[..., Awaitable[Viewer]]


@pytest.fixture
async def join(sign_in: SignIn, monitor: Monitor) -> AsyncIterator[Join]:
    """Open sockets of signed-in viewers; they are closed after the test."""
    viewers: list[Viewer] = []
    cookie = await asyncio.to_thread(sign_in, "vera")

    async def opened() -> Viewer:
        viewer = Viewer(cookie)
        viewers.append(viewer)
        await viewer.open()
        return viewer

    yield opened
    for viewer in viewers:
        if not viewer.socket.future.done():
            await viewer.leave()
