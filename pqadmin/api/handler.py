"""The ASGI application of the API: its views without the middleware and the threads of pages.

A request that waits, or whose client is slow, is a coroutine. A client that goes away cancels it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import IO, Any

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http.response import HttpResponseBase
from django.urls import get_resolver

from pqadmin.api import limits, problems
from pqadmin.api.problems import Problem
from pqadmin.api.site import answer_error
from pqadmin.conf.proxy import Application
from pqadmin.server.security import HEADERS

#: Where the API is.
PREFIX = "/api/v1/"
URLS = "pqadmin.api.urls"
_SECURITY = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store, private",
}


class ApiRequest(ASGIRequest):
    """A request whose body is bounded by the server and by its view, not by the setting for forms."""

    @property
    def body(self) -> bytes:
        """The whole body."""
        if not hasattr(self, "_body"):
            self._body: bytes = self._stream.read()
        return self._body

    @property
    def body_file(self) -> IO[bytes]:
        """The body as a file."""
        file: IO[bytes] = self._stream
        return file


class ApiHandler(ASGIHandler):
    """Runs one request of the API."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Load none."""

    async def read_body(self, receive: Any) -> Any:
        """Return the body as a file, on the disk if it is large; other requests go on meanwhile."""

        async def receive_in_turn() -> Any:
            await asyncio.sleep(0)
            return await receive()

        return await super().read_body(receive_in_turn)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Run one request; it ends when its client goes away."""
        try:
            body = await self.read_body(receive)
        except Exception:  # the client has gone
            return
        with contextlib.closing(body):
            answering = asyncio.ensure_future(self._answer(scope, body, send))
            leaving = asyncio.ensure_future(receive())
            try:
                await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (leaving, answering):
                    if not task.done():
                        task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await answering
                with contextlib.suppress(asyncio.CancelledError):
                    await leaving

    async def _answer(self, scope: Any, body: Any, send: Any) -> None:
        response = await self._response(scope, body)
        for name, value in {**_SECURITY, **scope.get(limits.HEADERS, {})}.items():
            response.headers.setdefault(name, value)
        try:
            await self.send_response(response, send)
        finally:
            response.close()

    async def _response(self, scope: Any, body: Any) -> HttpResponseBase:
        try:
            request = ApiRequest(scope, body)
        except UnicodeDecodeError:
            return problems.answer(problems.shape("BadRequest", "The address is not valid UTF-8."))
        try:
            request.get_host()
            if request.content_type == "multipart/form-data":
                raise Problem("UnsupportedMediaType", "The API takes no forms.")
            match = get_resolver(URLS).resolve(request.path_info)
            request.resolver_match = match
            view: Awaitable[HttpResponseBase] = match.func(request, *match.args, **match.kwargs)
            response = await view
        except DisallowedHost:
            return problems.answer(problems.shape("BadRequest", "The site does not answer under this host name."))
        except Exception as error:
            return answer_error(request, error)
        if response.status_code == 405 and response.headers["Content-Type"] != problems.CONTENT_TYPE:
            allowed = response.headers["Allow"]
            words = f"This address takes {allowed}, not {request.method}."
            return problems.answer(problems.shape("MethodNotAllowed", words), {"Allow": allowed})
        return response


def beside(pages: Application, api: Application) -> Application:
    """Return the application that hands requests of the API to `api`, and the rest to `pages`."""

    async def route(scope: Any, receive: Any, send: Any) -> None:
        await (api if scope["path"].startswith(PREFIX) else pages)(scope, receive, send)

    return route
