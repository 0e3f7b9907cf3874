"""Django's ASGI handler, with middleware and view in one step on one thread."""

import logging
import threading

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.pages import error_pages

log = logging.getLogger(__name__)


_one_form = threading.Lock()


class OneFormAtATime(ASGIRequest):
    """A request whose form is parsed alone: 1 MB of `%41` takes 50 MB until it is parsed."""

    def _load_post_and_files(self) -> None:
        with _one_form:  # the whole body has arrived: this waits for no client
            super()._load_post_and_files()


class SyncHandler(ASGIHandler):
    """Runs the whole sync stack in one step; Django's own changes threads for every middleware."""

    request_class = OneFormAtATime

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware in its sync form."""
        super().load_middleware(is_async=False)

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response to one request."""
        try:
            response: HttpResponseBase = await sync_to_async(self.get_response, thread_sensitive=True)(request)
        except Exception:  # the error pages failed too, or cannot be found
            log.exception("no answer to %s %s", request.method, request.path)
            response = error_pages.plain(500, "Something went wrong")
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # noqa: SLF001 # Django reads it
        return response
