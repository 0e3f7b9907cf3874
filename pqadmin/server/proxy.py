"""Believes X-Forwarded-For and X-Forwarded-Proto from trusted proxies, and from nobody else."""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Any

from pqadmin.server.environment import Network
from pqadmin.server.pool import Application

_FORWARDED = {b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port", b"forwarded"}
_SECURE = {"http": "https", "websocket": "wss"}


class TrustedProxy:
    """An ASGI application that sets a request's client and scheme from its trusted proxy's headers.

    The headers are taken away afterwards, so that nothing behind this can believe them by mistake.
    """

    def __init__(self, application: Application, *, trusted: Sequence[Network]) -> None:
        self._application = application
        self._trusted = trusted

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request or socket on."""
        if scope["type"] in _SECURE:
            scope = self._believe(dict(scope))
        await self._application(scope, receive, send)

    def _believe(self, scope: dict[str, Any]) -> dict[str, Any]:
        headers: Iterable[tuple[bytes, bytes]] = scope.get("headers", ())
        peer = (scope.get("client") or [""])[0]
        if self._is_trusted(peer):
            hops = ",".join(_all(headers, b"x-forwarded-for")).split(",")
            client = next((hop for hop in map(str.strip, reversed(hops)) if not self._is_trusted(hop)), "")
            if _is_address(client):
                scope["client"] = [client, 0]
            proto = ",".join(_all(headers, b"x-forwarded-proto")).split(",")[-1].strip().lower()
            if proto in {"https", "wss"}:
                scope["scheme"] = _SECURE[scope["type"]]
        scope["headers"] = [(name, value) for name, value in headers if name.lower() not in _FORWARDED]
        return scope

    def _is_trusted(self, address: str) -> bool:
        return is_in(address, self._trusted)


def is_in(address: str, networks: Sequence[Network]) -> bool:
    """Say whether an address is in one of these networks; what is no address is in none."""
    return _is_address(address) and any(ip_address(address) in network for network in networks)


def _all(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name.lower() == wanted]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
