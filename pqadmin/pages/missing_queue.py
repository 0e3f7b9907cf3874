"""Answers for queues that are not there, or cannot be read, wherever a view or what stands before it meets one."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from pqadmin.pages import act_view
from queues.errors import QueueNotFound, QueueUnreadable


class MissingQueueMiddleware:
    """Answer for what a view let through: 404 also for queues that the person may not see."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page about such a queue; None leaves other exceptions alone."""
        if isinstance(exception, QueueUnreadable):
            return act_view.queue_unreadable(request, exception)
        return act_view.queue_missing(request, exception) if isinstance(exception, QueueNotFound) else None
