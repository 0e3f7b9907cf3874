"""Django's ASGI handler, with all middleware and the view in one step on the request's thread."""

import logging

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.server import errors

log = logging.getLogger(__name__)


class SyncHandler(ASGIHandler):
    """Runs the whole sync stack at once: Django's own hops between threads for every middleware."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware in its sync form."""
        super().load_middleware(is_async=False)

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response to one request."""
        try:
            response: HttpResponseBase = await sync_to_async(self.get_response, thread_sensitive=True)(request)
        except Exception:  # the pages for errors failed too, or there is no way to find them
            log.exception("no answer to %s %s", request.method, request.path)
            response = errors.plain(500, "Something went wrong")
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # noqa: SLF001
        return response
