"""Opens sockets only to pages of this very site: same scheme, host and port."""

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from pqadmin.conf.proxy import Application

_PORTS = {"http": "80", "https": "443"}


class SameOrigin:
    """An ASGI application that refuses websockets of another origin.

    The browser sends cookies with any page's sockets, also from another port of this machine; only Origin
    tells them apart. The host itself must be one of ALLOWED_HOSTS.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one socket on, or refuse it."""
        accepted = is_same_origin(scope)
        await (self._application if accepted else WebsocketDenier())(scope, receive, send)


def is_same_origin(scope: Any) -> bool:
    """Return whether the handshake's Origin is the page's own site."""
    headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
    scheme = "https" if scope.get("scheme") == "wss" else "http"
    try:
        origin = urlsplit(headers.get(b"origin", ""))
        port = str(origin.port or _PORTS.get(origin.scheme, ""))
    except ValueError:
        return False
    domain, host_port = split_domain_port(headers.get(b"host", ""))
    return (
        bool(domain)
        and validate_host(domain, settings.ALLOWED_HOSTS)
        and origin.scheme == scheme
        and _unbracketed(origin.hostname or "") == _unbracketed(domain)
        and port == (host_port or _PORTS[scheme])
    )


def _unbracketed(domain: str) -> str:
    return domain.lower().strip("[]")
