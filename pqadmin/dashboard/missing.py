"""Answers for queues that are not there, wherever a view or what stands before it finds none."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from pqadmin.dashboard.views import frame
from queues.errors import QueueNotFound


class MissingQueueMiddleware:
    """Answer 404 to whatever a view let through, and to queues that the person may not see."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page about a queue that is not there; None leaves other exceptions alone."""
        return frame.queue_missing(request, exception) if isinstance(exception, QueueNotFound) else None
