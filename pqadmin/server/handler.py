"""Django's ASGI handler, with middleware and view in one step on one thread, and the threads that run it.

Django runs the sync code of one request on one thread. asgiref makes that thread anew for each request unless
it is given an executor; here a request is given the one with the fewest requests at that moment.
"""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.conf.proxy import Application
from pqadmin.pages import error_pages

log = logging.getLogger(__name__)


_one_form = threading.Lock()


class OneFormAtATime(ASGIRequest):
    """A request with a form that is parsed alone: 1 MB of `%41` takes 50 MB until it is parsed."""

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
        return response


class ThreadPool:
    """An ASGI application that gives each http request one of `threads` persistent threads."""

    def __init__(self, application: Application, *, threads: int) -> None:
        self._application = application
        self._executors = [ThreadPoolExecutor(1, thread_name_prefix=f"view-{n}") for n in range(threads)]
        self._busy = [0] * threads

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Run one request."""
        lane = self._busy.index(min(self._busy))
        self._busy[lane] += 1
        try:
            async with ThreadSensitiveContext(executor=self._executors[lane]):
                await self._application(scope, receive, send)
        finally:
            self._busy[lane] -= 1

    def close(self) -> None:
        """Let the threads end after what they are running; requests after this fail."""
        for executor in self._executors:
            executor.shutdown(wait=False)
