"""How large a request's body may be, by its path; and bodies handed to the application part by part."""

import re
from collections.abc import Callable
from typing import IO, Any, TypeVar
from urllib.parse import unquote

from django.conf import settings
from django.urls import Resolver404, resolve

from pqadmin.conf.proxy import Application

View = TypeVar("View", bound=Callable[..., Any])

#: The name of the extension in an ASGI scope: a file with the whole body.
BODY = "pqadmin.body"
_PART = 65_536
_MARK = "_pqadmin_takes_uploads"
#: Where the API is.
API = "/api/v1/"
#: The addresses of the API that take many items; the rest of the API takes as much as a page.
_ITEMS = re.compile(r"/api/v1/queues/[^/]+/items(?:/chunk)?")


def takes_uploads(view: View) -> View:
    """Let requests for a view have bodies of PQADMIN_MAX_UPLOAD bytes instead of PQADMIN_MAX_BODY."""
    setattr(view, _MARK, True)
    return view


def most(target: bytes) -> int:
    """Return the bytes that a request for this target (path and query) may bring."""
    path = unquote(target.partition(b"?")[0].decode("latin-1"))
    if path.startswith(API):
        return int(settings.PQADMIN_MAX_UPLOAD if _ITEMS.fullmatch(path) else settings.PQADMIN_MAX_BODY)
    try:
        view = resolve(path).func
    except Resolver404:
        return int(settings.PQADMIN_MAX_BODY)
    return int(settings.PQADMIN_MAX_UPLOAD if getattr(view, _MARK, False) else settings.PQADMIN_MAX_BODY)


class Bodies:
    """ASGI application that reads a body from the server's file, part by part.

    Daphne would put all of it into a queue first, in memory, for every request that waits.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request or socket on."""
        content: IO[bytes] | None = (scope.get("extensions") or {}).get(BODY)
        if content is None:
            await self._application(scope, receive, send)
            return
        ended = False

        async def read() -> Any:
            nonlocal ended
            if content.closed:  # the client has gone
                return {"type": "http.disconnect"}
            if not ended:
                part = content.read(_PART)
                ended = len(part) < _PART
                return {"type": "http.request", "body": part, "more_body": not ended}
            while (message := await receive())["type"] == "http.request":
                pass  # Daphne's, with the nothing that was left to it
            return message

        with content:
            await self._application(scope, read, send)
