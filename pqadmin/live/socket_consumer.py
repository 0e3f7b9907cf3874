"""The live socket, a Channels consumer: admission, requests and frames."""

import asyncio
import logging
from typing import Any, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import User

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import scope_of
from pqadmin.limits.concurrency import Places
from pqadmin.limits.token_bucket import Allowance
from pqadmin.live import frame_json, requests
from pqadmin.live.asset_version import release
from pqadmin.live.fast_path import PIPE, Pipe
from pqadmin.live.guard import NOT_ALLOWED, SIGNED_OUT
from pqadmin.live.hub import RESTARTING
from pqadmin.live.monitor import Monitor, get_monitor
from pqadmin.live.requests import Ack, BadRequest, Resync, Visible, Watch
from pqadmin.live.sockets import Pass
from pqadmin.live.subscription import BEAT, Subscription
from pqadmin.store import store_now
from queues.admin import LogLimit
from queues.errors import StoreError

#: Close code of a client that keeps sending nonsense; RFC 6455 leaves 4000 to 4999 to applications.
ABUSE = 4400
#: Bad messages after which a socket is closed.
MAX_BAD = 20
#: Messages per second that a client may send, counted over bursts of as many seconds.
MAX_RATE, BURST = 50, 4
#: The user has too many sockets.
TOO_MANY = 4429
#: Seconds without a word from the server after which the screen calls itself stale.
STALE_AFTER = 5.0

log = logging.getLogger(__name__)
_limited = LogLimit(log)
#: Sockets open at once, by person and by link of a wall.
_places = Places(settings.PQADMIN_SOCKETS_PER_PERSON)


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc] # channels is not typed
    """One viewer's socket."""

    subscription: Subscription
    badge: Pass
    _monitor: Monitor
    #: The fast path to the client, where the server has one; elsewhere messages that are being sent.
    _pipe: Pipe | None = None
    _sends: set[asyncio.Task[None]]
    _joined = False
    _ending = False
    _bad = 0
    _allowance: Allowance
    #: The user or link that this socket is counted for.
    _place: tuple[str, object] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket until it is closed, and release it in any case."""
        self._sends = set()
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._let_go()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle one event, without the base class's step through a database thread."""
        match message["type"]:
            case "websocket.receive":
                await self.websocket_receive(message)
            case "websocket.connect":
                await self.websocket_connect(message)
            case "websocket.disconnect":
                await self.websocket_disconnect(message)

    async def connect(self) -> None:
        """Accept the socket of a user with the right to read; `pqadmin.server.origin` has checked its origin."""
        loop = asyncio.get_running_loop()
        self._allowance = Allowance(rate=MAX_RATE, burst=MAX_RATE * BURST, now=loop.time())
        self._monitor = get_monitor()
        code = await self._refusal()
        if code is None and not self._take_place():
            code = TOO_MANY
        if code is not None:
            await self.close(code)
            return
        self.subscription = self._new_subscription(loop.time())
        await self.accept()
        await self.send(self._hello(store_now().timestamp()))
        self._pipe = (self.scope.get("extensions") or {}).get(PIPE)
        if self._pipe is not None:
            self._pipe.acknowledged = self._acknowledged
        self._joined = True
        self._monitor.hub.join(self)

    def _new_subscription(self, now: float) -> Subscription:
        return Subscription(now, self.badge.scope)

    def _hello(self, now: float) -> str:
        return frame_json.hello(now=now, beat=BEAT, stale_after=STALE_AFTER, release=release())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one message, or answer with its error."""
        if self._ending:
            return
        try:
            if text_data is None:
                raise BadRequest("not-json", "A message is text, one JSON object.")
            request = requests.parse(text_data)
            if isinstance(request, Ack) and self.subscription.ack(request.seq):
                self.wake()  # there are never more of these than frames
            elif self._allowance.take(asyncio.get_running_loop().time()):
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
        """Send the subscription's message. One at most, as what comes after it wakes the socket again."""
        if self._ending or (message := self._next()) is None:
            return
        if self._pipe is not None:
            self._pipe.push(*message)
            return
        sent = asyncio.get_running_loop().create_task(self.send((message[0] + message[1]).decode()))
        self._sends.add(sent)
        sent.add_done_callback(self._sends.discard)

    def end(self, code: int) -> None:
        """Close the socket with this code."""
        if not self._ending:
            self._ending = True
            self._closing = asyncio.get_running_loop().create_task(self.close(code))

    def admit(self, badge: Pass) -> None:
        """Go on with this pass: its scope is another one."""
        self.badge = badge
        self.subscription.see(badge.scope, self._monitor.board.in_sight(badge.scope))
        self._show()

    # Inside

    def _show(self) -> None:
        """Have the monitor read what is on the screen now, and send what is due."""
        self._monitor.hub.screens_changed(self)
        self.wake()

    async def _refusal(self) -> int | None:
        user, session = self.scope.get("user"), self.scope.get("session")
        if user is None or not user.is_authenticated or session is None or not session.session_key:
            return SIGNED_OUT
        may_see = await database_sync_to_async(scope_of)(user)
        if not may_see.anywhere(Right.READ):
            return NOT_ALLOWED
        if self._monitor.closed:
            return RESTARTING
        person = cast(User, user)
        self.badge = Pass(scope=may_see, session_key=session.session_key, user_id=person.pk, password=person.password)
        return None

    async def _obey(self, request: requests.Request) -> None:
        match request:
            case Ack(seq=seq):
                if not self.subscription.sent(seq):
                    raise BadRequest("bad-ack", "That frame was never sent.")
                return
            case Watch():
                ids = await self._ids(request)
                sight = self.subscription.sight
                # An invisible queue is reported as gone, as a missing one is.
                seen = ids if sight.everything else ids & self._monitor.board.in_sight(sight)
                self.subscription.watch(request, seen, ids - seen)
            case Resync():
                self.subscription.resync()
            case Visible(visible=visible):
                self.subscription.show(visible)
        self._show()

    async def _ids(self, watch: Watch) -> frozenset[int]:
        board = self._monitor.board
        if board.empty or watch.queue is not None:
            # A queue of this name may have gone, and another come, since the list of all queues was read.
            try:
                await asyncio.to_thread(self._monitor.refresh if board.empty else self._monitor.read_directory)
            except StoreError as error:
                if board.empty or watch.queue not in board.directory:
                    raise BadRequest("store", f"The store cannot be read now: {error}") from None
        if watch.queue is not None:
            found = board.directory.get(watch.queue)
            if found is None or not self.subscription.sight.sees(watch.queue):
                raise BadRequest("unknown-queue", "There is no queue of that name.")
            return frozenset([found])
        ids = watch.ids
        everything = watch.complete and not watch.filter
        there = board.in_sight(self.subscription.sight) if everything else frozenset()
        if everything and len(there) <= requests.MAX_SCREEN:
            # Those that are gone may fill what room is left, and no more.
            ids = there.union(sorted(ids - there)[: requests.MAX_SCREEN - len(there)])
        return ids

    def _acknowledged(self, seq: int) -> bool:
        subscription = self.subscription
        waited = subscription.waits
        if self._ending or not subscription.ack(seq):
            return False
        if waited:  # else it has been told everything already
            self.wake()
        return True

    def _next(self) -> tuple[bytes, bytes] | None:
        now, wall = asyncio.get_running_loop().time(), store_now().timestamp()
        hub, subscription = self._monitor.hub, self.subscription
        tick, as_of = hub.tick, hub.as_of.get(subscription.sight, 0)
        if subscription.match(tick):
            hub.screens_changed(self)
        message = subscription.take(tick, now=now, wall=wall, as_of=as_of)
        if message is not None or tick is None or (total := tick.sums.get(subscription.sight)) is None:
            return message
        beat = subscription.beat(
            now=now,
            wall=wall,
            checked=self._monitor.checked,
            version=tick.cuts[0].version,
            standing=lambda: self._standing(next(iter(subscription.ids), 0)) if subscription.single else total.standing,
            as_of=as_of,
        )
        return None if beat is None else (beat, b"")

    def _standing(self, queue_id: int) -> frame_json.Standing:
        board = self._monitor.board
        return frame_json.Standing(ready=board.ready(queue_id), level=board.level(queue_id))

    async def _complain(self, code: str, message: str, *, fatal: bool) -> None:
        await self.send(frame_json.error(code, message, fatal=fatal))
        if fatal:
            self.end(ABUSE)

    def _take_place(self) -> bool:
        place = ("link", self.badge.link) if self.badge.link else ("person", self.badge.user_id)
        if not _places.take(place):
            _limited.warn(place, "%s %s has too many live sockets open; one more was refused.", *place)
            return False
        self._place = place
        return True

    def _let_go(self) -> None:
        if self._place is not None:
            _places.give_back(self._place)
            self._place = None
        if self._joined:
            self._joined = False
            self._monitor.hub.leave(self)
        if self._pipe is not None:
            self._pipe.acknowledged = None
            self._pipe = None
        for sent in self._sends:
            sent.cancel()
