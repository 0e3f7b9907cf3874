"""Requests and sockets under way at once, counted by address and by session."""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.http import parse_cookie

from pqadmin.conf import ip
from pqadmin.conf.proxy import Application
from pqadmin.limits.concurrency import Places
from pqadmin.server import plain_page
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)


class Admission:
    """ASGI application that refuses what is over a limit; behind `TrustedProxy`, which knows the address."""

    def __init__(
        self, application: Application, *, per_address: int, per_session: int, sockets_per_address: int, cookie: str
    ) -> None:
        self._application = application
        self._cookie = cookie
        self._addresses, self._sessions = Places(per_address), Places(per_session)
        self._sockets = Places(sockets_per_address)

    @contextmanager
    def place(self, address: str) -> Iterator[bool]:
        """Take a place for a request without a session, if one is free; give whether."""
        client = ip.client(address)
        taken = self._addresses.take(client)
        try:
            yield taken
        finally:
            if taken:
                self._addresses.give_back(client)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request or socket on, or refuse it."""
        address = ip.client(str((scope.get("client") or [""])[0]))
        if scope["type"] == "websocket":
            wanted = [(self._sockets, address)]
        elif scope["type"] == "http":
            wanted = [(self._addresses, address)]
            if session := self._session(scope):
                wanted.append((self._sessions, session))
        else:
            await self._application(scope, receive, send)
            return
        taken = [(places, key) for places, key in wanted if places.take(key)]
        try:
            if len(taken) == len(wanted):
                await self._application(scope, receive, send)
            else:
                _limited.warn(("429", address), "%s has too much under way at once; more was refused.", address)
                await (WebsocketDenier() if scope["type"] == "websocket" else _refuse)(scope, receive, send)
        finally:
            for places, key in taken:
                places.give_back(key)

    def _session(self, scope: Any) -> str:
        """Return a name for the session; as an unknown one is as good as none, nothing is looked up."""
        found = parse_cookie(_header(scope, b"cookie")).get(self._cookie)
        return hashlib.sha256(found.encode()).hexdigest() if found else ""


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    headers = {"accept-language": _header(scope, b"accept-language"), "cookie": _header(scope, b"cookie")}
    content, kind = plain_page.told(scope["path"], 429, plain_page.language_of(headers))
    await plain_page.send_answer(send, 429, content, content_type=kind)


def _header(scope: Any, wanted: bytes) -> str:
    return b";".join(value for name, value in scope.get("headers", ()) if name.lower() == wanted).decode("latin-1")
