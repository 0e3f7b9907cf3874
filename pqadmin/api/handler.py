"""The ASGI application of the API: its views without the middleware and the threads of pages.

A request that waits, or that has a slow client, is a coroutine. A client that goes away cancels it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from tempfile import SpooledTemporaryFile
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.http.response import HttpResponse, HttpResponseBase
from django.urls import ResolverMatch, get_resolver

from pqadmin.api import limits, long_polls, problems
from pqadmin.api.application import answer_error
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.conf.proxy import Application
from pqadmin.limits.body_size import API, BODY
from pqadmin.server.security import HEADERS
from pqadmin.server.whole_request import Answer
from pqadmin.store import opened_store, store_now

URLS = "pqadmin.api.urls"
_SECURITY = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store, private",
}
_SECURITY_LINES = {name.encode("ascii"): value.encode("ascii") for name, value in _SECURITY.items()}
#: Statuses without a body, and so without its length.
_EMPTY = (204, 304)


@lru_cache(maxsize=1_000)
def _match(path: str) -> ResolverMatch:
    return get_resolver(URLS).resolve(path)


def resolved(request: ApiRequest) -> ResolverMatch:
    """Return the view of a request; raise what is wrong with its host or the form of its body, or Http404."""
    request.get_host()
    if request.content_type == "multipart/form-data":
        raise Problem("UnsupportedMediaType", "The API takes no forms.")
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() not in ("identity", ""):
        words = "The API takes no compressed bodies: send it without Content-Encoding."
        raise Problem("UnsupportedMediaType", words, headers={"Accept-Encoding": "identity"})
    request.resolver_match = match = _match(request.path_info)
    return match


def whole_answer(response: HttpResponse, scope: Mapping[str, Any]) -> Answer:
    """Return what is sent of an answer that is no stream, with its length."""
    content = response.content
    headers = dict(_SECURITY_LINES)
    for name, value in (*response.headers.items(), *_of_answer(scope).items()):
        headers[name.encode("ascii")] = value.encode("latin-1")
    if response.status_code not in _EMPTY:
        headers[b"Content-Length"] = b"%d" % len(content)
    return Answer(response.status_code, headers.items(), content)


def _of_answer(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of rates and of the time."""
    headers: dict[str, str] = dict(scope.get(limits.HEADERS, ()))
    if opened_store() is not None:
        headers["PQ-Time"] = store_now().isoformat(timespec="milliseconds")
    return headers


class ApiHandler(ASGIHandler):
    """Runs one request of the API."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Load none."""

    async def read_body(self, receive: Any) -> Any:
        """Return the body as a file, on the disk if it is large; other requests go on meanwhile.

        Django leaves the file open when the request is canceled.
        """
        with contextlib.ExitStack() as unless_whole:
            body = unless_whole.enter_context(SpooledTemporaryFile(settings.FILE_UPLOAD_MAX_MEMORY_SIZE))
            more = True
            while more:
                await asyncio.sleep(0)
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestAborted
                body.write(message.get("body", b""))
                more = message.get("more_body", False)
            body.seek(0)
            unless_whole.pop_all()
        return body

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Run one request; one that waits or streams ends when its client goes away."""
        body = scope.get("extensions", {}).get(BODY)
        if body is None:  # another server than ours
            try:
                body = await self.read_body(receive)
            except RequestAborted:  # the client has gone
                return
        with contextlib.closing(body):
            try:
                await self._answer(scope, body, receive, send)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise  # it is the server that ends

    async def _answer(self, scope: Any, body: Any, receive: Any, send: Any) -> None:
        response, head = await self._response(scope, body, receive), scope["method"] == "HEAD"
        if not isinstance(response, HttpResponse):
            for name, value in {**_of_answer(scope), **_SECURITY}.items():
                response.headers.setdefault(name, value)
            try:
                if head:
                    lines = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
                    await send({"type": "http.response.start", "status": response.status_code, "headers": lines})
                    await send({"type": "http.response.body", "body": b""})
                    return
                async with long_polls.while_there(receive):
                    await self.send_response(response, send)
            finally:
                response.close()
            return
        # Nothing is to be closed, and with its length it is one write.
        status, headers, content = whole_answer(response, scope)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head else content})

    async def _response(self, scope: Any, body: Any, receive: Any) -> HttpResponseBase:
        try:
            request = ApiRequest(scope, body, receive)
        except UnicodeDecodeError:
            return problems.answer(problems.shape("BadRequest", "The address is not valid UTF-8."))
        try:
            match = resolved(request)
            if request.method == "HEAD":  # as GET, without the content
                request.method = "GET"
            view: Awaitable[HttpResponseBase] = match.func(request, *match.args, **match.kwargs)
            response = await view
        except DisallowedHost:
            return problems.answer(problems.shape("BadRequest", "The site does not answer under this host name."))
        except Exception as error:  # each has an answer: an unknown one is logged, and answered with 500
            return answer_error(request, error)
        if response.status_code == 405 and response.headers["Content-Type"] != problems.CONTENT_TYPE:
            allowed = response.headers["Allow"]
            words = f"This address takes {allowed}, not {request.method}."
            return problems.answer(problems.shape("MethodNotAllowed", words), {"Allow": allowed})
        return response


def beside(pages: Application, api: Application) -> Application:
    """Return the application that hands requests of the API to `api`, and the rest to `pages`."""

    async def route(scope: Any, receive: Any, send: Any) -> None:
        await (api if scope["path"].startswith(API) else pages)(scope, receive, send)

    return route
