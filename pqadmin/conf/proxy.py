"""X-Forwarded-For and X-Forwarded-Proto, which only trusted proxies may set.

A request with such headers from another address has most likely come through a proxy that is not declared. Then
cookies are not Secure, and all users share one address and its limits: a warning is logged once, and shown on the pages
of an admin. Any client can send the headers, so nothing else follows.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from pqadmin.conf import ip
from pqadmin.conf.environment import Network

Application = Callable[[Any, Any, Any], Awaitable[None]]

log = logging.getLogger(__name__)

_FORWARDED = {b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port", b"forwarded"}
#: The key in a request's scope for a proxy that is not declared.
UNDECLARED = "pqadmin.undeclared_proxy"
#: Headers that a proxy adds; any program may send the rest.
_TELLING = {b"x-forwarded-for", b"x-forwarded-proto", b"forwarded"}
#: An address in X-Forwarded-For, as some proxies write it: with the client's port, IPv6 in brackets then.
_HOP = re.compile(r"\[(?P<v6>[^\]]*)\](?::\d+)?|(?P<v4>[\d.]+):\d+")
_SECURE = {"http": "https", "websocket": "wss"}


class TrustedProxy:
    """An ASGI application that sets a request's client and scheme from its trusted proxy's headers.

    The headers are removed afterwards, so that no other code uses them by mistake.
    """

    def __init__(self, application: Application, *, trusted: Sequence[Network]) -> None:
        self._application = application
        self._trusted = trusted
        self._said = self._said_odd = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request or socket on."""
        if scope["type"] in _SECURE:
            scope = self.believed(scope)
        await self._application(scope, receive, send)

    def believed(self, scope: Mapping[str, Any]) -> dict[str, Any]:
        """Return a scope with the client and scheme that a trusted proxy names, without the headers of proxies."""
        scope = dict(scope)
        headers: Iterable[tuple[bytes, bytes]] = scope.get("headers", ())
        peer, *port = scope.get("client") or [""]
        peer = ip.plain(peer)
        if port:
            scope["client"] = [peer, *port]
        if self._is_trusted(peer):
            hops = ",".join(_all(headers, b"x-forwarded-for")).split(",")
            client = next((hop for hop in map(_address, reversed(hops)) if not self._is_trusted(hop)), "")
            if ip.parse(client) is not None:
                scope["client"] = [ip.plain(client), 0]
            elif client:
                self._say_odd(peer, client)
            proto = ",".join(_all(headers, b"x-forwarded-proto")).split(",")[-1].strip().lower()
            if proto in {"https", "wss"}:
                scope["scheme"] = _SECURE[scope["type"]]
        elif peer and any(name.lower() in _TELLING for name, _ in headers):
            scope[UNDECLARED] = peer
            self._say(peer)
        scope["headers"] = [(name, value) for name, value in headers if name.lower() not in _FORWARDED]
        return scope

    def _say(self, peer: str) -> None:
        if not self._said:
            self._said = True
            log.warning(
                "A request came from %s with the headers of a proxy, which are not believed: cookies are not Secure, "
                "and all visitors share one address and its limits. If it is your proxy, set PQADMIN_TRUSTED_PROXY=%s.",
                peer,
                peer,
            )

    def _say_odd(self, peer: str, hop: str) -> None:
        if not self._said_odd:
            self._said_odd = True
            log.warning(
                "The proxy %s names a client by %r in X-Forwarded-For, which is no address: all visitors that it names "
                "so share one address and its limits.",
                peer,
                hop[:60],
            )

    def _is_trusted(self, address: str) -> bool:
        return is_in(address, self._trusted)


def is_in(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of these networks. What is no address is in none."""
    parsed = ip.parse(address)
    return parsed is not None and any(parsed in network for network in networks)


def _address(hop: str) -> str:
    """Return the address of a hop, without its port and brackets."""
    found = _HOP.fullmatch(hop.strip())
    return hop.strip() if found is None else found["v6"] or found["v4"] or hop.strip()


def _all(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name.lower() == wanted]
