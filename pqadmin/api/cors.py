"""Cross-origin requests: pages of declared origins may call the API with a token, never with a session's cookie."""

from collections.abc import Collection, Mapping
from typing import Any

from pqadmin.conf.proxy import Application

_METHODS = b"GET, POST, PATCH, PUT, DELETE"
#: Headers of answers that such a page may read.
_EXPOSED = (
    b"ETag, Location, Retry-After, RateLimit, RateLimit-Policy, Idempotent-Replay, PQ-Id, PQ-Priority, PQ-Count, "
    b"PQ-State, PQ-Pushed-At, PQ-Attempts, PQ-Lease, PQ-Expires-At, PQ-Worker, PQ-Time"
)
#: Headers that such a page may send: no cookie among them, as credentials are never allowed.
_ACCEPTED = (
    b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, PQ-Priority, PQ-Delay, "
    b"PQ-Due, PQ-Queue-ID"
)
#: Seconds for which a browser keeps the answer to its question before a request.
_MAX_AGE = b"600"


class Cors:
    """An ASGI application that lets pages of the origins read answers; without origins it changes nothing."""

    def __init__(self, application: Application, origins: Collection[str]) -> None:
        self._application = application
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Run one request."""
        sent = dict(scope["headers"])
        allowed = self.headers_for(sent)
        if not allowed:
            await self._application(scope, receive, send)
            return
        if len(allowed) > 1 and scope["method"] == "OPTIONS" and b"access-control-request-method" in sent:
            allowed += [
                (b"access-control-allow-methods", _METHODS),
                (b"access-control-allow-headers", _ACCEPTED),
                (b"access-control-max-age", _MAX_AGE),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": allowed})
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_allowing(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *allowed]}
            await send(message)

        await self._application(scope, receive, send_allowing)

    def headers_for(self, sent: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Return the headers that the answer to a request has more; none without origins."""
        if not self._origins:
            return []
        origin = sent.get(b"origin", b"")
        allowed = [(b"vary", b"Origin")]
        if origin.lower() in self._origins:
            allowed += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _EXPOSED)]
        return allowed
