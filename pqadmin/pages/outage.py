"""Pages for what views let through: no store, no database, no such queue, and an empty refusal of a method."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from pqadmin.display import format as write
from pqadmin.display.addresses import queue_url
from pqadmin.display.errors import said
from pqadmin.pages import error_pages, visibility
from queues.errors import QueueNotFound, QueueUnreadable, display_name


class StoreErrorMiddleware:
    """Answer 503 for errors of store and database, 404 for queues that the person may not see."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; an empty 405 becomes a page."""
        response = self._get_response(request)
        if response.status_code == 405 and not getattr(response, "content", b"."):
            return error_pages.not_allowed(request, response.headers["Allow"])
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for an outage or such a queue; None leaves other exceptions alone."""
        if isinstance(exception, QueueUnreadable):
            return _queue_unreadable(request, exception)
        if isinstance(exception, QueueNotFound):
            return _queue_missing(request, exception)
        return error_pages.outage(request, exception)


def _queue_missing(request: HttpRequest, missing: QueueNotFound) -> HttpResponse:
    """Say that no queue has this name, and which ones have a similar one."""
    if "HX-Request" in request.headers:  # a whole page has no place inside another: go to it instead
        return HttpResponse(status=404, headers={"HX-Redirect": queue_url(missing.name)})
    suggestions = visibility.scope(request).of_those(missing.suggestions)
    context = {
        "section": "queues",
        "name": write.shorten(display_name(missing.name), 200),
        "suggestions": [(display_name(name), queue_url(name)) for name in suggestions],
        "can_create": visibility.may_name(visibility.scope(request), missing.name),
    }
    return render(request, "dashboard/no_queue.html", context, status=404)


def _queue_unreadable(request: HttpRequest, error: QueueUnreadable) -> HttpResponse:
    """Say that this one queue cannot be read, why, and what can be done."""
    if "HX-Request" in request.headers:
        return HttpResponse(status=409, headers={"HX-Redirect": queue_url(error.queue)})
    context = {"section": "queues", "name": write.shorten(display_name(error.queue), 200), "why": said(error.why)}
    return render(request, "dashboard/unreadable_queue.html", context, status=409)
