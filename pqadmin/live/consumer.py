"""The live socket: who may open it, what it understands, and how frames leave it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth.models import User

from pqadmin.accounts.roles import Right, can
from pqadmin.live import requests, wire
from pqadmin.live.guard import NOT_ALLOWED, SIGNED_OUT, Pass
from pqadmin.live.hub import RESTARTING
from pqadmin.live.monitor import Monitor, get_monitor
from pqadmin.live.requests import Ack, BadRequest, Resync, Visible, Watch
from pqadmin.live.slot import BEAT, Slot
from queues.errors import StoreError

#: Close code of a client that keeps sending nonsense; RFC 6455 leaves 4000 to 4999 to applications.
ABUSE = 4400
#: Bad messages after which a socket is closed.
MAX_BAD = 20
#: Messages per second that a client may send, counted over bursts of as many seconds.
MAX_RATE, BURST = 50, 4
#: Seconds without a word from the server after which the screen calls itself stale.
STALE_AFTER = 5.0


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc] # channels is not typed
    """One viewer's socket."""

    slot: Slot
    badge: Pass
    _monitor: Monitor
    _wake: asyncio.Event
    _sender: asyncio.Task[None] | None = None
    _joined = False
    _ending = False
    _bad = 0
    _allowance = float(MAX_RATE * BURST)
    _counted = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket until it is closed, and let go of it whatever happens."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._let_go()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle one event without the base class's visit to the database threads, which each frame would pay."""
        match message["type"]:
            case "websocket.receive":
                await self.websocket_receive(message)
            case "websocket.connect":
                await self.websocket_connect(message)
            case "websocket.disconnect":
                await self.websocket_disconnect(message)

    async def connect(self) -> None:
        """Let the socket in if somebody is signed in who may read; `pqadmin.server.origin` has checked its origin."""
        loop = asyncio.get_running_loop()
        self._wake, self._counted = asyncio.Event(), loop.time()
        self._monitor = get_monitor()
        code = await self._refusal()
        if code is not None:
            await self.close(code)
            return
        self.slot = Slot(loop.time())
        await self.accept()
        await self.send(wire.hello(now=time.time(), beat=BEAT, stale_after=STALE_AFTER))
        self._sender = loop.create_task(self._send_frames())
        self._joined = True
        self._monitor.hub.join(self)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Understand one message, or answer what was wrong with it."""
        if self._ending:
            return
        try:
            if text_data is None:
                raise BadRequest("not-json", "A message is text, one JSON object.")
            request = requests.parse(text_data)
            if isinstance(request, Ack) and self.slot.ack(request.seq):
                self.wake()  # there are never more of these than frames
            elif self._within_rate():
                await self._obey(request)
            else:
                await self._complain("too-fast", "Too many messages.", fatal=True)
        except BadRequest as error:
            self._bad += 1
            await self._complain(error.code, str(error), fatal=self._bad >= MAX_BAD)

    async def disconnect(self, code: int) -> None:
        """Leave the hub."""
        self._let_go()

    # For the hub

    def wake(self) -> None:
        """Have the sender look at the slot."""
        self._wake.set()

    def end(self, code: int) -> None:
        """Close the socket with this code."""
        if not self._ending:
            self._ending = True
            self._closing = asyncio.get_running_loop().create_task(self.close(code))

    # Inside

    async def _refusal(self) -> int | None:
        user, session = self.scope.get("user"), self.scope.get("session")
        if user is None or not user.is_authenticated or session is None or not session.session_key:
            return SIGNED_OUT
        if not await database_sync_to_async(can)(user, Right.READ):
            return NOT_ALLOWED
        if self._monitor.closed:
            return RESTARTING
        person = cast(User, user)
        self.badge = Pass(session_key=session.session_key, user_id=person.pk, password=person.password)
        return None

    async def _obey(self, request: requests.Request) -> None:
        match request:
            case Ack(seq=seq):
                if not self.slot.sent(seq):
                    raise BadRequest("bad-ack", "That frame was never sent.")
            case Watch():
                self.slot.watch(request, await self._ids(request))
                self._monitor.hub.screens_changed(self)
                self.wake()
            case Resync():
                self.slot.resync()
                self.wake()
            case Visible(visible=visible):
                self.slot.show(visible)
                self._monitor.hub.screens_changed(self)
                self.wake()

    async def _ids(self, watch: Watch) -> frozenset[int]:
        board = self._monitor.board
        if board.empty or (watch.queue is not None and watch.queue not in board.directory):
            try:
                await asyncio.to_thread(self._monitor.refresh)
            except StoreError as error:
                raise BadRequest("store", f"The store can not be read now: {error}") from None
        if watch.queue is not None:
            found = board.directory.get(watch.queue)
            if found is None:
                raise BadRequest("unknown-queue", "There is no queue of that name.")
            return frozenset([found])
        ids = frozenset(watch.ids)
        if watch.complete and len(board.ids) <= requests.MAX_SCREEN:
            # Those that are gone may fill what room is left, and no more.
            ids = board.ids.union(sorted(ids - board.ids)[: requests.MAX_SCREEN - len(board.ids)])
        return ids

    async def _send_frames(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while not self._ending and (text := self._next()) is not None:
                await self.send(text)

    def _next(self) -> str | None:
        now, wall = asyncio.get_running_loop().time(), time.time()
        tick = self._monitor.hub.tick
        text = self.slot.take(tick, now=now, wall=wall)
        if text is not None or tick is None:
            return text
        return self.slot.beat(
            now=now,
            wall=wall,
            checked=self._monitor.checked,
            version=tick.cuts[0].version,
            ready=self._title_depth(tick.ready),
            as_of=tick.as_of,
        )

    def _title_depth(self, total: int) -> int | None:
        return self._monitor.board.ready(next(iter(self.slot.ids), 0)) if self.slot.single else total

    def _within_rate(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._allowance = min(MAX_RATE * BURST, self._allowance + (now - self._counted) * MAX_RATE)
        self._counted = now
        self._allowance -= 1
        return self._allowance >= 0

    async def _complain(self, code: str, message: str, *, fatal: bool) -> None:
        await self.send(wire.error(code, message, fatal=fatal))
        if fatal:
            self.end(ABUSE)

    def _let_go(self) -> None:
        if self._joined:
            self._joined = False
            self._monitor.hub.leave(self)
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
