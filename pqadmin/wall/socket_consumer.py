"""A wall's socket: opened by a link's cookie or by a signed-in person. Read-only, told which queues are the worst."""

import asyncio
import logging

from channels.db import database_sync_to_async
from django.db import DatabaseError

from pqadmin.live import requests
from pqadmin.live.frame_json import hello
from pqadmin.live.guard import NOT_ALLOWED
from pqadmin.live.hub import RESTARTING
from pqadmin.live.requests import BadRequest, Watch
from pqadmin.live.socket_consumer import STALE_AFTER, LiveConsumer
from pqadmin.live.sockets import Pass
from pqadmin.live.subscription import BEAT
from pqadmin.store import store_now
from pqadmin.wall import frame_json, links
from pqadmin.wall.picture import Picture, choose, cut
from pqadmin.wall.specs import read
from pqadmin.wall.subscription import WallSubscription
from queues.admin import LogLimit
from queues.errors import StoreError

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Seconds between two choices of what is shown.
CHOOSE_EVERY = 1.0


class WallConsumer(LiveConsumer):
    """One screen's socket."""

    subscription: WallSubscription
    _slug = ""
    _chooser: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Let the screen in; `pqadmin.server.origin` has checked its origin."""
        self._slug = str(self.scope["url_route"]["kwargs"]["slug"])
        await super().connect()
        if self._joined:
            self._chooser = asyncio.create_task(self._keep_choosing())

    def _new_subscription(self, now: float) -> WallSubscription:
        return WallSubscription(now, self.badge.scope)

    def _hello(self, now: float) -> str:
        return hello(
            now=now, beat=BEAT, stale_after=STALE_AFTER, release=frame_json.release(), protocol=frame_json.PROTOCOL
        )

    async def _refusal(self) -> int | None:
        link = await database_sync_to_async(self._linked)()
        if link is None:
            return await super()._refusal()
        if self._monitor.closed:
            return RESTARTING
        self.badge = link
        return None

    def _linked(self) -> Pass | None:
        spec, link = read(self._slug), links.find(self._slug, self.scope.get("cookies", {}).get(links.COOKIE, ""))
        return None if spec is None or link is None else Pass(scope=spec.scope, link=str(link.pk))

    async def _obey(self, request: requests.Request) -> None:
        if isinstance(request, Watch):
            raise BadRequest("unknown-message", "A wall is told what to show.")
        await super()._obey(request)

    async def _keep_choosing(self) -> None:
        """Choose the picture once a second, and when another board's turn begins."""
        while not self._ending:
            try:
                picture = await database_sync_to_async(self._choose, thread_sensitive=False)()
            except Exception as error:  # what is shown stays, and ages
                ours = not isinstance(error, StoreError | DatabaseError)
                why = "Walls stay as they are: %s: %s. Tried again."
                _limited.warn(type(error), why, type(error).__name__, error, exc_info=ours)
                await asyncio.sleep(CHOOSE_EVERY)
                continue
            if picture is None:  # the board was removed, or has nothing for him any more
                self.end(NOT_ALLOWED)
                return
            if picture != self.subscription.picture:
                self.subscription.show_picture(picture)
                self._show()
            until = picture.turn.until
            left = CHOOSE_EVERY if until is None else min(CHOOSE_EVERY, max(0.01, until - store_now().timestamp()))
            await asyncio.sleep(left)

    def _choose(self) -> Picture | None:
        spec = read(self._slug)
        if spec is None:
            return None
        if self._monitor.board.empty:
            self._monitor.refresh()
        viewer, now = self.badge.scope, store_now().timestamp()
        if not self.badge.link:
            spec = cut(spec, self._monitor, viewer=viewer)
        return None if spec is None else choose(spec, self._monitor, viewer=viewer, now=now)

    def _let_go(self) -> None:
        super()._let_go()
        if self._chooser is not None:
            self._chooser.cancel()
            self._chooser = None
